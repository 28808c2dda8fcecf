"""Recording of this process, as programs for the earlier TraceSmith do it."""

from __future__ import annotations

import enum
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tracesmith._errors import CaptureError, NotAvailableError
from tracesmith._machine import Device, devices
from tracesmith._profile import profile
from tracesmith.compat._events import TraceEvents
from tracesmith.compat._platform import PlatformType, is_cuda_available

if TYPE_CHECKING:
    from typing_extensions import Self

    from tracesmith._options import Kind
    from tracesmith._trace import Trace

__all__ = [
    "CUPTIProfiler",
    "MCPTIProfiler",
    "MetalProfiler",
    "OverflowPolicy",
    "Profiler",
    "ProfilerConfig",
    "create_profiler",
]

#: Sizes below are numbers of events, as the earlier version counted. The least buffer has as many bytes.
_LEAST_BYTES = 4 << 20
_BYTES_PER_EVENT = 64

#: What works where recording from Python does not.
_ELSEWHERE = {
    PlatformType.ROCm: "record with rocprofv3, and open its files with tracesmith.open",
    PlatformType.Metal: "record with Instruments: tracesmith.xctrace, or tracesmith profile --xctrace",
    PlatformType.MACA: "record with mcTracer: tracesmith profile --mctracer -- PROGRAM",
    PlatformType.Unknown: "tracesmith doctor says what is missing here",
}


class OverflowPolicy(enum.Enum):
    """What happens when the buffers are full."""

    #: Keep the latest events: a flight recorder.
    DropOldest = 0
    #: Keep what is there. The trace counts what is lost.
    DropNewest = 1
    #: Not available: TraceSmith never stops the program that it records.
    Block = 2


@dataclass
class ProfilerConfig:
    """What a profiler records.

    >>> config = ProfilerConfig()
    >>> config.capture_memcpy = False
    """

    #: The memory for records, in bytes. A number below 4 MiB is a number of events. `None`: as much as is usual.
    buffer_size: int | None = None
    overflow_policy: OverflowPolicy = OverflowPolicy.DropNewest
    capture_callstacks: bool = True
    #: How many frames events show. Stacks are recorded whole.
    callstack_depth: int | None = None
    capture_kernels: bool = True
    #: Copies and sets are recorded together, if either is wanted.
    capture_memcpy: bool = True
    capture_memset: bool = True
    capture_sync: bool = True
    capture_alloc: bool = True

    def _kinds(self) -> list[Kind]:
        wanted: list[tuple[bool, Kind]] = [
            (self.capture_kernels, "kernels"),
            (self.capture_memcpy or self.capture_memset, "copies"),
            (self.capture_sync, "sync"),
            (self.capture_alloc, "memory"),
            # The calls say which thread launched the work, and when.
            (True, "api"),
            (True, "nvtx"),
        ]
        return [kind for is_wanted, kind in wanted if is_wanted]

    def _bytes(self) -> int | None:
        if self.buffer_size is None or self.buffer_size >= _LEAST_BYTES:
            return self.buffer_size
        warnings.warn(
            f"buffer_size={self.buffer_size} is taken as a number of events; give bytes, from {_LEAST_BYTES} on",
            RuntimeWarning,
            stacklevel=4,
        )
        return max(self.buffer_size * _BYTES_PER_EVENT, _LEAST_BYTES)


class Profiler:
    """Records this process between `start_capture` and `stop_capture`: a `tracesmith.profile` with old names.

    ```python
    profiler = tracesmith.create_profiler(tracesmith.PlatformType.CUDA)
    profiler.initialize(tracesmith.ProfilerConfig())
    profiler.start_capture()
    train_step()
    profiler.stop_capture()
    for event in profiler.get_events():
        print(event.name, event.duration, event.call_stack[0])
    ```

    Events are there when the window is closed: while it is open, another process has them.
    """

    def __init__(
        self, config: ProfilerConfig | None = None, path: str | os.PathLike[str] | None = None
    ) -> None:
        self._config = config or ProfilerConfig()
        self._path = path
        self._profile: profile | None = None
        self._is_capturing = False
        self._callback: Callable[[Any], object] | None = None

    def initialize(self, config: ProfilerConfig | None = None) -> bool:
        """Keeps the configuration and prepares this process. Comes back with `True`, or raises."""
        from tracesmith._arm import arm

        if config is not None:
            self._config = config
        if self._config.overflow_policy is OverflowPolicy.Block:
            raise NotAvailableError(
                "OverflowPolicy.Block would stop the program, which TraceSmith never does",
                hint="use DropNewest with a larger buffer_size, or DropOldest",
            )
        arm()
        return True

    def start_capture(self) -> bool:
        """Opens a window."""
        if self._is_capturing:
            raise CaptureError("the profiler is capturing already", hint="call stop_capture() first")
        config = self._config
        is_flight = config.overflow_policy is OverflowPolicy.DropOldest
        size = config._bytes()
        self._profile = profile(
            self._path,
            kinds=config._kinds(),
            stacks=config.capture_callstacks,
            flight_recorder=(size or "64M") if is_flight else None,
            buffer_size=None if is_flight else size,
            overwrite=True,
        )
        self._profile.start()
        self._is_capturing = True
        return True

    def stop_capture(self) -> bool:
        """Closes the window."""
        if self._profile is not None and self._is_capturing:
            self._is_capturing = False
            self._profile.stop()
            if self._callback is not None:
                for event in self.get_events():
                    self._callback(event)
        return True

    def is_capturing(self) -> bool:
        """Whether a window is open."""
        return self._is_capturing

    def get_events(self, max_count: int = 0) -> TraceEvents:
        """The events of the last window, at most `max_count` unless that is 0."""
        return TraceEvents(self.trace, max_count or None, self._config.callstack_depth)

    def set_event_callback(self, callback: Callable[[Any], object]) -> None:
        """Calls a function for each event, when the window is closed."""
        self._callback = callback

    @property
    def trace(self) -> Trace:
        """The trace of the last window."""
        if self._profile is None:
            raise CaptureError(
                "nothing has been captured yet", hint="call start_capture() and stop_capture() first"
            )
        return self._profile.trace

    def events_captured(self) -> int:
        """How many events the last window has."""
        return len(self.get_events())

    def events_dropped(self) -> int:
        """How many records of the last window are missing."""
        return 0 if self._profile is None else self._profile.lost

    def get_device_info(self) -> list[Device]:
        """The GPUs of this machine."""
        return devices()

    def platform_type(self) -> PlatformType:
        """Always CUDA."""
        return PlatformType.CUDA

    def is_available(self) -> bool:
        """Whether a program can use an NVIDIA GPU here."""
        return is_cuda_available()

    def finalize(self) -> None:
        """Closes the window, if one is open."""
        self.stop_capture()

    def __enter__(self) -> Self:
        self.start_capture()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop_capture()


#: The profiler of NVIDIA GPUs.
CUPTIProfiler = Profiler


def create_profiler(platform: PlatformType = PlatformType.CUDA) -> Profiler:
    """A profiler for this process. Raises `NotAvailableError` for platforms that cannot be recorded from Python."""
    if platform is not PlatformType.CUDA:
        raise _elsewhere(platform)
    return Profiler()


class MCPTIProfiler:
    """Raises: MACA programs are recorded with mcTracer, by `tracesmith profile --mctracer -- PROGRAM`."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise _elsewhere(PlatformType.MACA)


class MetalProfiler:
    """Raises: Metal programs are recorded with Instruments, see `tracesmith.xctrace`."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise _elsewhere(PlatformType.Metal)


def _elsewhere(platform: PlatformType) -> NotAvailableError:
    return NotAvailableError(
        f"programs on {platform.name} cannot be recorded from Python", hint=_ELSEWHERE[platform]
    )
