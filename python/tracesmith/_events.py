"""Events that a program emits, and how they are stored.

A trace has no events of 22 kinds: it has tables. Each event becomes a row of the table that has its kind, and a row becomes
the event again. Fields that the table has no column for are kept as JSON: those of a marker in its `detail`, those of other
rows in a host call of the category `tracesmith.event`, at the same time.
"""

from __future__ import annotations

import dataclasses
import enum
import threading
from collections.abc import Iterator
from typing import Any, Union

__all__ = [
    "CounterEvent",
    "EventType",
    "FlowInfo",
    "FlowType",
    "KernelParams",
    "MemoryCategory",
    "MemoryEvent",
    "MemoryParams",
    "TraceEvent",
]


class EventType(enum.Enum):
    """The kinds of events.

    ```python
    >>> EventType.MemcpyH2D.table
    'copies'

    ```
    """

    KernelLaunch = "KernelLaunch"
    KernelComplete = "KernelComplete"
    MemcpyH2D = "MemcpyH2D"
    MemcpyD2H = "MemcpyD2H"
    MemcpyD2D = "MemcpyD2D"
    MemsetDevice = "MemsetDevice"
    StreamSync = "StreamSync"
    DeviceSync = "DeviceSync"
    EventRecord = "EventRecord"
    EventSync = "EventSync"
    StreamCreate = "StreamCreate"
    StreamDestroy = "StreamDestroy"
    ContextCreate = "ContextCreate"
    ContextDestroy = "ContextDestroy"
    MemAlloc = "MemAlloc"
    MemFree = "MemFree"
    Marker = "Marker"
    RangeStart = "RangeStart"
    RangeEnd = "RangeEnd"
    NCCLStart = "NCCLStart"
    NCCLComplete = "NCCLComplete"
    Custom = "Custom"

    @property
    def table(self) -> str:
        """The table that has such events."""
        return _TABLES.get(self, "markers")


_TABLES = {
    EventType.KernelLaunch: "kernels",
    EventType.KernelComplete: "kernels",
    EventType.MemcpyH2D: "copies",
    EventType.MemcpyD2H: "copies",
    EventType.MemcpyD2D: "copies",
    EventType.MemsetDevice: "sets",
    EventType.StreamSync: "syncs",
    EventType.DeviceSync: "syncs",
    EventType.EventRecord: "syncs",
    EventType.EventSync: "syncs",
    EventType.MemAlloc: "allocations",
    EventType.MemFree: "allocations",
    EventType.NCCLStart: "collectives",
    EventType.NCCLComplete: "collectives",
}


class FlowType(enum.Enum):
    """What a flow connects. The values are those of the column `kind` of the table `flows`."""

    FwdBwd = "forward backward"
    AsyncCpuGpu = "launch"
    Custom = "custom"


class MemoryCategory(enum.Enum):
    """What memory is for. The values are those of the column `category` of the table `allocations`."""

    Activation = "activation"
    Gradient = "gradient"
    Parameter = "parameter"
    Temporary = "temporary"
    Cached = "cached"


@dataclasses.dataclass
class FlowInfo:
    """A point of a flow: events with the same `id` and `type` belong together."""

    id: int = 0
    type: FlowType = FlowType.Custom
    is_start: bool = True


@dataclasses.dataclass
class KernelParams:
    """How a kernel was launched."""

    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_mem_bytes: int = 0
    registers_per_thread: int = 0


@dataclasses.dataclass
class MemoryParams:
    """The addresses and the size of a copy, a set, an allocation or a free."""

    src: int = 0
    dst: int = 0
    size: int = 0


@dataclasses.dataclass
class TraceEvent:
    """An event. Times are nanoseconds of `time.monotonic_ns()`; a `timestamp` of 0 is the moment of the call.

    - A `KernelLaunch` and the `KernelComplete` with its `correlation_id` are one kernel and its launch call: the first is
      the call, the second the time on the GPU. A `KernelComplete` without a duration ends at its timestamp.
      A `KernelLaunch` without a correlation ID is a kernel by itself.
    - A `RangeStart` and the next `RangeEnd` of the thread are one range, and read as a `RangeStart` with a duration.
    - An `NCCLStart` and the `NCCLComplete` with its `correlation_id` and stream are one collective, and read as an
      `NCCLStart` with a duration.

    ```python
    >>> event = TraceEvent(EventType.MemcpyH2D, duration=1500, memory_params=MemoryParams(size=4096))
    >>> event.type.table
    'copies'

    ```
    """

    type: EventType = EventType.Custom
    timestamp: int = 0
    duration: int = 0
    device_id: int = 0
    stream_id: int = 0
    correlation_id: int = 0
    name: str = ""
    thread_id: int = 0
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    flow_info: FlowInfo | None = None
    kernel_params: KernelParams | None = None
    memory_params: MemoryParams | None = None
    call_stack: list[str] = dataclasses.field(default_factory=list)
    custom_data: Any = None


@dataclasses.dataclass
class MemoryEvent:
    """An allocation or a free, as a framework reports it."""

    bytes: int = 0
    ptr: int = 0
    is_allocation: bool = True
    allocator_name: str = ""
    category: MemoryCategory | None = None
    timestamp: int = 0
    device_id: int = 0
    stream_id: int = 0
    thread_id: int = 0
    correlation_id: int = 0


@dataclasses.dataclass
class CounterEvent:
    """A value of a counter. `track_id` distinguishes counters of the same name."""

    counter_name: str = ""
    value: float = 0.0
    unit: str = ""
    track_id: int = 0
    timestamp: int = 0
    device_id: int | None = None


Event = Union[TraceEvent, MemoryEvent, CounterEvent]

Row = tuple[str, dict[str, Any]]
"""A table, and the columns of a row."""

# Launches and ranges that wait for their other half. The oldest are recorded alone when there are more.
MAX_OPEN = 65_536


class Pairs:
    """Joins events of two halves. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[object, ...], list[TraceEvent]] = {}
        self._count = 0

    def begin(self, key: tuple[object, ...], event: TraceEvent) -> list[TraceEvent]:
        """Keeps a first half. Returns those that there is no more room for."""
        with self._lock:
            self._open.setdefault(key, []).append(event)
            self._count += 1
            return self._take(next(iter(self._open)), 0) if self._count > MAX_OPEN else []

    def end(self, key: tuple[object, ...]) -> TraceEvent | None:
        """The latest first half of this key."""
        with self._lock:
            found = self._take(key, -1) if key in self._open else []
            return found[0] if found else None

    def rest(self) -> list[TraceEvent]:
        """All halves that are alone."""
        with self._lock:
            rest = [event for events in self._open.values() for event in events]
            self._open.clear()
            self._count = 0
            return rest

    def _take(self, key: tuple[object, ...], at: int) -> list[TraceEvent]:
        events = self._open[key]
        event = events.pop(at)
        if not events:
            del self._open[key]
        self._count -= 1
        return [event]


def fields_of(event: TraceEvent) -> Iterator[tuple[str, Any]]:
    """The fields of an event that are not at their default."""
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if field.name != "type" and value not in (None, 0, "", [], {}):
            yield field.name, value
