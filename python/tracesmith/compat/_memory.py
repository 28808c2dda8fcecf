"""Memory of a window: peak, snapshots, leaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tracesmith import _native
from tracesmith._errors import CaptureError, NotAvailableError
from tracesmith._profile import profile

if TYPE_CHECKING:
    from typing_extensions import Self

    from tracesmith._events import MemoryEvent
    from tracesmith._trace import Trace

__all__ = [
    "MemoryLeak",
    "MemoryProfiler",
    "MemoryProfilerConfig",
    "MemorySummary",
    "format_bytes",
    "format_duration",
]


@dataclass
class MemoryProfilerConfig:
    """Options of the earlier version. The trace has every allocation, so only `detect_double_free` has a meaning."""

    snapshot_interval_ms: int = 100
    leak_threshold_ns: int = 0
    detect_double_free: bool = True
    max_timeline_samples: int = 10_000


@dataclass(frozen=True)
class MemoryLeak:
    """Memory that was allocated in the window and not freed in it."""

    #: Who allocated it: a source line or a function.
    place: str
    allocations: int
    size: int


@dataclass(frozen=True)
class MemorySummary:
    """What `tracesmith analyze --only memory` prints. `pools` has the JSON of it, one pool of memory each."""

    pools: tuple[Mapping[str, Any], ...]
    double_frees: tuple[Any, ...]
    unknown_frees: tuple[Any, ...]

    @property
    def peak_usage(self) -> int:
        """The most bytes of a pool that were allocated at once, for all pools together."""
        return sum(pool["peak_bytes"] for pool in self.pools)

    @property
    def leaks(self) -> tuple[MemoryLeak, ...]:
        """Memory that was allocated in the window and not freed in it, the most first."""
        found = [
            MemoryLeak(one["stack"], one["count"], one["bytes"])
            for pool in self.pools
            for one in pool["never_freed"]
        ]
        return tuple(sorted(found, key=lambda leak: -leak.size))

    def summary(self) -> str:
        """The report as text."""
        lines = [f"peak: {format_bytes(self.peak_usage)}"]
        lines += [f"never freed: {format_bytes(leak.size)}, allocated at {leak.place}" for leak in self.leaks]
        lines += [f"freed twice: {len(self.double_frees)}"] if self.double_frees else []
        return "\n".join(lines)


class MemoryProfiler:
    """Records the allocations of this process between `start` and `stop`.

    ```python
    with tracesmith.MemoryProfiler() as memory:
        train_step()
    print(memory.get_peak_usage(), memory.detect_leaks())
    ```
    """

    def __init__(self, config: MemoryProfilerConfig | None = None) -> None:
        self.config: MemoryProfilerConfig = config or MemoryProfilerConfig()
        self._profile: profile | None = None

    def start(self) -> None:
        """Opens a window."""
        self._profile = profile(kinds=["memory", "kernels", "copies"], stacks=True)
        self._profile.start()

    def stop(self) -> None:
        """Closes the window."""
        if self._profile is not None:
            self._profile.stop()

    @property
    def trace(self) -> Trace:
        """The trace of the window."""
        if self._profile is None:
            raise CaptureError("nothing has been recorded yet", hint="call start() and stop() first")
        return self._profile.trace

    def generate_report(self) -> MemorySummary:
        """Use of memory in the window."""
        return report_of(self.trace)

    def get_peak_usage(self) -> int:
        """The most bytes that were allocated at once."""
        return self.generate_report().peak_usage

    def detect_leaks(self) -> list[MemoryLeak]:
        """Memory that was allocated in the window and not freed in it, by the place of the allocation."""
        return list(self.generate_report().leaks)

    def to_memory_events(self) -> list[MemoryEvent]:
        """Each allocation and each free."""
        from tracesmith._events import MemoryEvent

        events = []
        for row in self.trace.table("allocations"):
            if row["operation"] in ("allocate", "free"):
                event = MemoryEvent()
                event.timestamp, event.bytes, event.ptr = row["time"], row["bytes"] or 0, row["address"] or 0
                event.is_allocation = row["operation"] == "allocate"
                event.allocator_name = row["allocator"] or ""
                events.append(event)
        return events

    def take_snapshot(self) -> None:
        """Raises: records of an open window are in another process."""
        raise NotAvailableError(
            "memory cannot be looked at while the window is open",
            hint="stop() it first, or use tracesmith.profile(flight_recorder=…).snapshot()",
        )

    def record_alloc(self, *arguments: object, **options: object) -> None:
        """Raises: allocations are recorded, not reported by the program."""
        raise NotAvailableError(
            "allocations are recorded by themselves, between start() and stop()",
            hint="emit MemoryEvents of your own with tracesmith.TracingSession",
        )

    record_free = record_alloc

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def report_of(trace: Trace) -> MemorySummary:
    """The use of memory in a trace."""
    answer = json.loads(_native.Analysis(trace._native).report("memory", "{}"))
    return MemorySummary(
        tuple(answer["pools"]), tuple(answer["double_frees"]), tuple(answer["unknown_frees"])
    )


def format_bytes(count: int) -> str:
    """A size for people.

    >>> format_bytes(80072)
    '78.2 KiB'
    """
    from tracesmith._replay import _bytes

    return _bytes(count)


def format_duration(nanos: int) -> str:
    """A time for people.

    >>> format_duration(3500)
    '3.50 µs'
    """
    from tracesmith._replay import _time

    return _time(nanos)
