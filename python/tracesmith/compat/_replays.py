"""Replays, as programs for the earlier TraceSmith start them. They really run the recorded calls."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tracesmith._errors import NotAvailableError, ReplayError
from tracesmith._profile import profile
from tracesmith._recording import Call, Recording
from tracesmith._replay import Replay
from tracesmith._trace import open as open_trace
from tracesmith._verdict import Determinism

if TYPE_CHECKING:
    import numpy
    from typing_extensions import Self

__all__ = [
    "DeterminismChecker",
    "FrameCapture",
    "ReplayConfig",
    "ReplayEngine",
    "ReplayMode",
    "ReplayResult",
    "StreamScheduler",
    "replay_trace",
]

Path = str | os.PathLike[str]


class ReplayMode(enum.Enum):
    """What runs."""

    Full = "full"
    #: The calls of `operation_range` or `time_range`.
    Partial = "partial"
    #: Nothing runs, and no GPU is needed.
    DryRun = "dry-run"
    #: The calls of the stream `stream_id`.
    StreamSpecific = "stream"


class StreamScheduler(enum.Enum):
    """In which order calls of several streams run."""

    #: All streams at once, as the program launched them.
    Concurrent = "full"
    #: One call after another, in the program's order.
    RoundRobin = "serial"
    #: All streams at once, with the recorded pauses between calls.
    OriginalTiming = "as-recorded"
    #: Raises: the GPU has no order of priorities but that of its streams.
    PriorityBased = "priority"


@dataclass
class ReplayConfig:
    """How to replay.

    Order, dependencies and the final memory are always checked: the options for them change nothing.
    """

    mode: ReplayMode = ReplayMode.Full
    scheduler: StreamScheduler = StreamScheduler.Concurrent
    #: The first call, and the one after the last.
    operation_range: tuple[int, int] | None = None
    #: The first and last nanosecond of the trace's clock, for calls that begin between them.
    time_range: tuple[int, int] | None = None
    stream_id: int | None = None
    repeat: int = 1
    validate_order: bool = True
    validate_dependencies: bool = True
    #: Also measures each call, which takes one more run.
    validate_timing: bool = False
    #: Also compares memory after every call, in two more runs.
    compute_checksums: bool = False


@dataclass(frozen=True)
class ReplayResult:
    """What a replay found. It is true if the memory is the same as recorded."""

    replay: Replay
    determinism: Determinism | None = None

    @property
    def success(self) -> bool:
        """Whether the memory is the same as recorded, or within a dry run, whether nothing is in the way."""
        if self.replay.verdict == "not run":
            return self.replay.is_replayable
        return bool(self.replay)

    def __bool__(self) -> bool:
        return self.success

    @property
    def deterministic(self) -> bool | None:
        """Whether each call gives the same memory each time. `None` if it was not checked."""
        return None if self.determinism is None else bool(self.determinism)

    @property
    def operations_executed(self) -> int:
        """How many calls ran."""
        return sum(run.commands or 0 for run in self.replay.runs)

    @property
    def operations_total(self) -> int:
        """How many calls the recording has."""
        return len(self.replay.commands)

    @property
    def replay_duration(self) -> int:
        """The time on the GPU in nanoseconds, of the first run."""
        return (self.replay.runs[0].device_ns or 0) if self.replay.runs else 0

    @property
    def errors(self) -> list[str]:
        """What differs, fails or is in the way."""
        if self.replay.failure is not None:
            return [str(self.replay.failure)]
        if self.replay.verdict == "not run":
            return [obstacle.reason for obstacle in self.replay.obstacles]
        return [str(difference) for difference in self.replay.differences]

    def summary(self) -> str:
        """The replay as text."""
        return str(self.replay)


class ReplayEngine:
    """Runs a recording again.

    >>> import tracesmith as ts
    >>> engine = ts.ReplayEngine()
    >>> engine.load_trace("fixtures/replay-h200.sbt")
    True
    >>> engine.replay(ts.ReplayConfig(mode=ts.ReplayMode.DryRun)).success
    True
    """

    def __init__(self) -> None:
        self._recording: Recording | None = None

    def load_trace(self, path: Path) -> bool:
        """Opens a trace that was recorded with `record=True` (`tracesmith profile --record`)."""
        self._recording = Recording(path)
        return len(self._recording.commands) > 0

    def load_events(self, events: object) -> bool:
        """Raises: events do not say what memory contained."""
        raise NotAvailableError(
            "events cannot be replayed: they have no code and no memory",
            hint="record with tracesmith.profile(path, record=True), and load that file",
        )

    def replay(self, config: ReplayConfig | None = None) -> ReplayResult:
        """Replays in a process of its own."""
        if self._recording is None:
            raise ReplayError("no recording is loaded", hint="call load_trace(path) first")
        config = config or ReplayConfig()
        result = self._recording.replay(**_options(config, self._recording))
        checked = None
        if config.compute_checksums and config.mode is not ReplayMode.DryRun:
            checked = self._recording.check_determinism()
        return ReplayResult(result, checked)


def _options(config: ReplayConfig, recording: Recording) -> dict[str, Any]:
    if config.scheduler is StreamScheduler.PriorityBased:
        raise NotAvailableError(
            "a replay cannot change the priorities of streams",
            hint="use Concurrent, RoundRobin or OriginalTiming",
        )
    options: dict[str, Any] = {"repeat": config.repeat, "details": config.validate_timing}
    options["mode"] = "dry-run" if config.mode is ReplayMode.DryRun else config.scheduler.value
    ops = config.operation_range
    if config.time_range is not None:
        ops = _calls_between(recording, *config.time_range)
    if config.mode is ReplayMode.Partial and ops is None:
        raise ValueError("ReplayMode.Partial needs operation_range or time_range")
    if config.mode is ReplayMode.StreamSpecific and config.stream_id is None:
        raise ValueError("ReplayMode.StreamSpecific needs stream_id")
    if ops is not None:
        options["ops"] = ops
    elif config.stream_id is not None:
        options["stream"] = config.stream_id
    return options


def _calls_between(recording: Recording, start: int, end: int) -> tuple[int, int]:
    rows = open_trace(recording.path).table("commands").select("number", "time").to_dicts()
    found = [row["number"] for row in rows if row["time"] is not None and start <= row["time"] < end]
    if not found:
        raise ValueError(f"no call begins from {start} to {end} ns")
    return min(found), max(found) + 1


def replay_trace(path: Path, mode: ReplayMode = ReplayMode.Full) -> ReplayResult:
    """Replays a recording."""
    engine = ReplayEngine()
    engine.load_trace(path)
    return engine.replay(ReplayConfig(mode=mode))


class DeterminismChecker:
    """Finds the first call that does not give the same memory each time, and why."""

    def check(self, path: Path, runs: int = 2) -> Determinism:
        """Runs a recording several times. The answer is true if all runs give the same."""
        return Recording(path).check_determinism(repeat=runs)


class FrameCapture:
    """Records a part of this program such that it can be replayed up to any call.

    ```python
    capture = tracesmith.FrameCapture("frame.sbt")
    with capture:
        train_step()
    print(capture.frame.launches)
    weights = capture.resource_state(0x7F2A40000000, before=40, dtype="f32")
    ```

    A key such as F12 has no meaning here: `tracesmith profile --record --capture-range signal` records between two
    signals.
    """

    def __init__(self, path: Path) -> None:
        self.path: str = os.fspath(path)
        self._profile: profile | None = None

    def trigger_capture(self) -> None:
        """Starts to record."""
        self._profile = profile(self.path, record=True, overwrite=True)
        self._profile.start()

    def end_capture(self) -> None:
        """Stops."""
        if self._profile is not None:
            self._profile.stop()

    def capture(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Records one call of a function, and returns what it returns."""
        with self:
            return function(*arguments, **options)

    @property
    def frame(self) -> Recording:
        """The recording. Waits until it is complete."""
        if self._profile is not None:
            self._profile.wait()
        return Recording(self.path)

    def resource_state(
        self, address: int, *, before: int | Call | None = None, dtype: Any = "uint8"
    ) -> numpy.ndarray[Any, Any]:
        """The memory at an address, as it is before a call."""
        return self.frame.buffer(address, before=before, dtype=dtype)

    def replay_to(self, call: int | Call) -> Replay:
        """Runs all calls before this one."""
        number = call.number if isinstance(call, Call) else call
        first = self.frame.commands[0].number
        return self.frame.replay(ops=(first, number))

    def __enter__(self) -> Self:
        self.trigger_capture()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end_capture()
