"""Events as rows of tables, and rows as events."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from tracesmith._events import (
    CounterEvent,
    Event,
    EventType,
    FlowInfo,
    FlowType,
    KernelParams,
    MemoryCategory,
    MemoryEvent,
    MemoryParams,
    Pairs,
    Row,
    TraceEvent,
    fields_of,
)

__all__ = ["EVENT_TABLES", "NOTES", "Encoder", "counter_of", "event_of", "memory_event_of", "notes_of"]

# Tables whose rows are events, in the order in which events of the same time are read.
EVENT_TABLES = ("api_calls", "kernels", "copies", "sets", "syncs", "allocations", "collectives", "markers")

# The category of the host calls that hold what other tables have no column for.
NOTES = "tracesmith.event"

# The name of the launch call of a kernel that a program emits itself.
LAUNCH = "kernel launch"

_DIRECTIONS = {
    EventType.MemcpyH2D: "host to device",
    EventType.MemcpyD2H: "device to host",
    EventType.MemcpyD2D: "device to device",
}
_SYNCS = {
    EventType.StreamSync: "stream wait",
    EventType.DeviceSync: "device wait",
    EventType.EventRecord: "event record",
    EventType.EventSync: "event wait",
}
_COMMON = {"timestamp", "duration", "device_id", "stream_id", "correlation_id"}


class Encoder:
    """Turns events into rows. Keeps first halves until the second comes."""

    def __init__(self) -> None:
        self._launches = Pairs()
        self._ranges = Pairs()
        self._collectives = Pairs()

    def rows(self, event: Event) -> list[Row]:
        """The rows that are complete with this event."""
        if isinstance(event, CounterEvent):
            return [_counter_row(event)]
        if isinstance(event, MemoryEvent):
            return [_memory_row(event)]
        if not isinstance(event, TraceEvent):
            raise TypeError(
                f"an event is a TraceEvent, MemoryEvent or CounterEvent, not {type(event).__name__}"
            )
        if not isinstance(event.type, EventType):
            raise TypeError(f"the type of an event is an EventType, not {event.type!r}")
        if event.timestamp == 0:
            event = dataclasses.replace(event, timestamp=time.monotonic_ns())
        flow = [_flow_row(event)] if event.flow_info is not None else []
        return flow + self._event_rows(event)

    def finish(self) -> list[Row]:
        """The rows of first halves that stayed alone."""
        rows = [row for event in self._launches.rest() for row in _kernel_rows(event)]
        rows += [row for event in self._ranges.rest() for row in _open_range_rows(event)]
        rows += [row for event in self._collectives.rest() for row in _collective_rows(event, None)]
        return rows

    def _event_rows(self, event: TraceEvent) -> list[Row]:
        kind = event.type
        if kind is EventType.KernelLaunch and event.correlation_id:
            alone = self._launches.begin((event.correlation_id,), event)
            return [row for launch in alone for row in _kernel_rows(launch)]
        if kind is EventType.KernelLaunch:
            return _kernel_rows(event)
        if kind is EventType.KernelComplete:
            launch = self._launches.end((event.correlation_id,)) if event.correlation_id else None
            return _kernel_rows(event) if launch is None else _launched_rows(launch, event)
        if kind is EventType.RangeStart and event.duration == 0:
            alone = self._ranges.begin((_thread(event),), event)
            return [row for start in alone for row in _open_range_rows(start)]
        if kind is EventType.RangeEnd:
            begun = self._ranges.end((_thread(event),))
            return _marker_rows(event) if begun is None else _range_rows(begun, event)
        if kind is EventType.NCCLStart and event.duration == 0:
            alone = self._collectives.begin((event.correlation_id, event.stream_id), event)
            return [row for start in alone for row in _collective_rows(start, None)]
        if kind is EventType.NCCLComplete:
            begun = self._collectives.end((event.correlation_id, event.stream_id))
            return _collective_rows(event, None) if begun is None else _collective_rows(begun, event)
        if kind is EventType.NCCLStart:
            return _collective_rows(event, None)
        if kind in _DIRECTIONS:
            return _copy_rows(event)
        if kind is EventType.MemsetDevice:
            return _set_rows(event)
        if kind in _SYNCS:
            return _noted("syncs", event, {**_device_columns(event), "kind": _SYNCS[kind]}, _COMMON)
        if kind in (EventType.MemAlloc, EventType.MemFree):
            return _allocation_rows(event)
        return _marker_rows(event)


def _thread(event: TraceEvent) -> int:
    return event.thread_id or threading.get_native_id()


def _device_columns(event: TraceEvent) -> dict[str, Any]:
    return {
        "start": event.timestamp,
        "duration": event.duration,
        "device": event.device_id,
        "stream": event.stream_id,
        "correlation": event.correlation_id,
    }


def _leftover(event: TraceEvent, stored: set[str]) -> dict[str, Any]:
    """The fields of an event that its row has no column for, as JSON has them."""
    return {name: _plain(value) for name, value in fields_of(event) if name not in stored}


def _plain(value: Any) -> Any:
    if isinstance(value, FlowInfo):
        return {"id": value.id, "type": value.type.name, "is_start": value.is_start}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def _text(fields: Mapping[str, Any]) -> str:
    # What JSON has no form for is kept as Python shows it.
    return json.dumps(fields, default=repr, ensure_ascii=False)


def _noted(
    table: str,
    event: TraceEvent,
    columns: dict[str, Any],
    stored: set[str],
    kind: EventType | None = None,
) -> list[Row]:
    """A row, and a note of what it has no column for. `kind`: the type as which the row alone would be read."""
    fields = _leftover(event, stored)
    if kind is not None and kind is not event.type:
        fields["type"] = event.type.name
    return [(table, columns), *_note(table, columns, fields)]


def _note(table: str, columns: Mapping[str, Any], fields: dict[str, Any]) -> list[Row]:
    if not fields:
        return []
    note = {
        "start": columns.get("start", columns.get("time")),
        "name": table,
        "correlation": columns.get("correlation", 0),
        "category": NOTES,
        "kind": "custom",
        "detail": _text(fields),
    }
    return [("host_calls", note)]


def _kernel_columns(event: TraceEvent, params: KernelParams | None) -> dict[str, Any]:
    columns = {**_device_columns(event), "name": event.name}
    if params is not None:
        columns.update(zip(("grid_x", "grid_y", "grid_z"), params.grid, strict=True))
        columns.update(zip(("block_x", "block_y", "block_z"), params.block, strict=True))
        columns.update(dynamic_shared=params.shared_mem_bytes, registers=params.registers_per_thread)
    return columns


def _kernel_rows(event: TraceEvent) -> list[Row]:
    """A kernel without a launch call."""
    alone = EventType.KernelComplete if event.correlation_id else EventType.KernelLaunch
    stored = _COMMON | {"name", "kernel_params"}
    return _noted("kernels", event, _kernel_columns(event, event.kernel_params), stored, alone)


def _launched_rows(launch: TraceEvent, complete: TraceEvent) -> list[Row]:
    """A kernel and its launch call."""
    call = {
        "start": launch.timestamp,
        "duration": launch.duration,
        "thread": _thread(launch),
        "correlation": launch.correlation_id,
        "name": LAUNCH,
    }
    fields = _leftover(launch, {"timestamp", "duration", "correlation_id", "thread_id"})
    name = complete.name or launch.name
    params = complete.kernel_params or launch.kernel_params
    kernel = _kernel_columns(dataclasses.replace(complete, name=name), params)
    fields_of_kernel = _leftover(complete, _COMMON | {"name", "kernel_params"})
    if complete.name != name:
        fields_of_kernel["name"] = complete.name
    if complete.kernel_params is None and params is not None:
        fields_of_kernel["kernel_params"] = None
    if complete.duration == 0:
        start = min(launch.timestamp + launch.duration, complete.timestamp)
        kernel.update(start=start, duration=complete.timestamp - start)
        fields_of_kernel.update(timestamp=complete.timestamp, duration=0)
    return [
        ("api_calls", call),
        *_note("api_calls", call, fields),
        ("kernels", kernel),
        *_note("kernels", kernel, fields_of_kernel),
    ]


def _copy_rows(event: TraceEvent) -> list[Row]:
    columns = {**_device_columns(event), "direction": _DIRECTIONS[event.type]}
    stored = set(_COMMON)
    if event.memory_params is not None:
        params = event.memory_params
        columns.update(source=params.src, destination=params.dst, bytes=params.size)
        stored.add("memory_params")
    return _noted("copies", event, columns, stored)


def _set_rows(event: TraceEvent) -> list[Row]:
    columns = _device_columns(event)
    stored = set(_COMMON)
    if event.memory_params is not None:
        columns.update(address=event.memory_params.dst, bytes=event.memory_params.size)
        if event.memory_params.src == 0:
            stored.add("memory_params")
    return _noted("sets", event, columns, stored)


def _allocation_rows(event: TraceEvent) -> list[Row]:
    params = event.memory_params or MemoryParams()
    columns = {
        "time": event.timestamp,
        "address": params.dst or params.src,
        "bytes": params.size,
        "device": event.device_id,
        "stream": event.stream_id,
        "correlation": event.correlation_id,
        "thread": _thread(event),
        "name": event.name,
        "operation": "allocate" if event.type is EventType.MemAlloc else "free",
        "memory": "device",
    }
    stored = {"timestamp", "device_id", "stream_id", "correlation_id", "thread_id", "name"}
    if event.memory_params is None or params.src == 0:
        stored.add("memory_params")
    return _noted("allocations", event, columns, stored)


def _collective_rows(event: TraceEvent, end: TraceEvent | None) -> list[Row]:
    columns = {**_device_columns(event), "name": event.name}
    stored = _COMMON | {"name"}
    fields = _leftover(event, stored)
    if event.type is not EventType.NCCLStart:
        fields["type"] = event.type.name
    if event.memory_params is not None:
        columns.update(
            send_buffer=event.memory_params.src,
            receive_buffer=event.memory_params.dst,
            bytes=event.memory_params.size,
        )
        fields.pop("memory_params", None)
    if end is not None:
        columns["duration"] = max(end.timestamp - event.timestamp, 0)
        same = {"name"} if end.name == event.name else set()
        rest = _leftover(end, {"timestamp", "correlation_id", "stream_id", *same})
        if event.device_id == end.device_id:
            rest.pop("device_id", None)
        if rest:
            fields["end"] = rest
    return [("collectives", columns), *_note("collectives", columns, fields)]


def _marker_columns(event: TraceEvent, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "start": event.timestamp,
        "duration": event.duration,
        "thread": _thread(event),
        "name": event.name,
        "kind": kind,
    }
    if event.type is not EventType.Marker:
        columns["category_name"] = event.type.name
    if fields:
        columns["detail"] = _text(fields)
    return columns


def _marker_rows(event: TraceEvent) -> list[Row]:
    fields = _leftover(event, {"timestamp", "duration", "thread_id", "name"})
    if event.type is EventType.RangeStart:
        kind = "nested range"
    else:
        kind = "free range" if event.duration else "instant"
    return [("markers", _marker_columns(event, kind, fields))]


def _open_range_rows(event: TraceEvent) -> list[Row]:
    fields = _leftover(event, {"timestamp", "duration", "thread_id", "name"})
    return [("markers", _marker_columns(event, "open nested range", fields))]


def _range_rows(start: TraceEvent, end: TraceEvent) -> list[Row]:
    duration = max(end.timestamp - start.timestamp, 0)
    fields = _leftover(start, {"timestamp", "duration", "thread_id", "name"})
    same = {"name"} if end.name == start.name else set()
    rest = _leftover(end, {"timestamp", "thread_id", *same})
    if rest:
        fields["end"] = rest
    event = dataclasses.replace(start, duration=duration)
    return [("markers", _marker_columns(event, "nested range", fields))]


def _flow_row(event: TraceEvent) -> Row:
    flow = event.flow_info
    assert flow is not None
    columns = {
        "time": event.timestamp,
        "flow": flow.id,
        "kind": flow.type.value,
        "phase": "start" if flow.is_start else "end",
        "name": event.name,
        "correlation": event.correlation_id,
        "thread": _thread(event),
    }
    return "flows", columns


def _counter_row(event: CounterEvent) -> Row:
    columns: dict[str, Any] = {
        "name": event.counter_name,
        "value": float(event.value),
        "unit": event.unit,
        "instance": event.track_id,
        "device": event.device_id,
    }
    if event.timestamp:
        columns["time"] = event.timestamp
    return "counters", columns


def _memory_row(event: MemoryEvent) -> Row:
    columns: dict[str, Any] = {
        "address": event.ptr,
        "bytes": event.bytes,
        "operation": "allocate" if event.is_allocation else "free",
        "memory": "device",
        "allocator": event.allocator_name,
        "category": event.category.value if event.category else None,
        "device": event.device_id,
        "stream": event.stream_id,
        "correlation": event.correlation_id,
        "thread": event.thread_id or None,
    }
    if event.timestamp:
        columns["time"] = event.timestamp
    return "allocations", columns


def event_of(
    table: str, row: Mapping[str, Any], devices: Mapping[int, int], note: str | None = None
) -> TraceEvent:
    """The event that a row is. `devices` has the driver's numbers of the trace's devices."""
    event = TraceEvent(timestamp=_number(row, "start") or _number(row, "time"))
    event.duration = _number(row, "duration")
    event.correlation_id = _number(row, "correlation")
    event.stream_id = _number(row, "stream")
    event.device_id = devices.get(_number(row, "device"), 0)
    event.thread_id = _number(row, "thread")
    event.name = row.get("name") or ""
    _READERS[table](event, row)
    if note is not None:
        _add(event, note)
    return event


def _number(row: Mapping[str, Any], column: str) -> int:
    return int(row.get(column) or 0)


def _add(event: TraceEvent, text: str) -> bool:
    """Adds the fields that were kept as JSON. Text of other programs is none of ours."""
    try:
        fields = json.loads(text)
    except ValueError:
        return False
    names = {field.name for field in dataclasses.fields(TraceEvent)} | {"end"}
    if not isinstance(fields, dict) or not fields.keys() <= names:
        return False
    end = fields.pop("end", None)
    for name, value in fields.items():
        if name == "type":
            value = EventType[value]
        elif name == "flow_info":
            value = FlowInfo(value["id"], FlowType[value["type"]], value["is_start"])
        elif name == "kernel_params" and value is not None:
            value = KernelParams(**{**value, "grid": tuple(value["grid"]), "block": tuple(value["block"])})
        elif name == "memory_params" and value is not None:
            value = MemoryParams(**value)
        setattr(event, name, value)
    if end is not None:
        event.metadata = {**event.metadata, "end": _text(end)}
    return True


def _read_call(event: TraceEvent, row: Mapping[str, Any]) -> None:
    name = event.name
    if name == LAUNCH:
        event.type, event.name = EventType.KernelLaunch, ""
    elif "LaunchKernel" in name or "LaunchCooperativeKernel" in name:
        event.type = EventType.KernelLaunch


def _read_kernel(event: TraceEvent, row: Mapping[str, Any]) -> None:
    event.type = EventType.KernelComplete if event.correlation_id else EventType.KernelLaunch
    if _number(row, "grid_x"):
        event.kernel_params = KernelParams(
            (_number(row, "grid_x"), _number(row, "grid_y"), _number(row, "grid_z")),
            (_number(row, "block_x"), _number(row, "block_y"), _number(row, "block_z")),
            _number(row, "dynamic_shared") + _number(row, "static_shared"),
            _number(row, "registers"),
        )


def _read_copy(event: TraceEvent, row: Mapping[str, Any]) -> None:
    kinds = {direction: kind for kind, direction in _DIRECTIONS.items()}
    direction = str(row.get("direction")).replace("_", " ")
    event.type = kinds.get(direction, EventType.MemcpyD2D)
    if direction not in kinds:
        event.metadata = {"direction": direction}
    params = MemoryParams(_number(row, "source"), _number(row, "destination"), _number(row, "bytes"))
    event.memory_params = params if params != MemoryParams() else None


def _read_set(event: TraceEvent, row: Mapping[str, Any]) -> None:
    event.type = EventType.MemsetDevice
    params = MemoryParams(0, _number(row, "address"), _number(row, "bytes"))
    event.memory_params = params if params != MemoryParams() else None


def _read_sync(event: TraceEvent, row: Mapping[str, Any]) -> None:
    kinds = {text: kind for kind, text in _SYNCS.items()}
    text = str(row.get("kind")).replace("_", " ")
    event.type = kinds.get(text, EventType.StreamSync)
    if text not in kinds:
        event.metadata = {"kind": text}


def _read_allocation(event: TraceEvent, row: Mapping[str, Any]) -> None:
    operation = str(row.get("operation"))
    event.type = EventType.MemFree if operation == "free" else EventType.MemAlloc
    params = MemoryParams(0, _number(row, "address"), _number(row, "bytes"))
    event.memory_params = params if params != MemoryParams() else None
    facts = {"allocator": row.get("allocator"), "category": row.get("category")}
    if operation not in ("allocate", "free"):
        facts["operation"] = operation
    event.metadata = {key: str(value) for key, value in facts.items() if value}


def _read_collective(event: TraceEvent, row: Mapping[str, Any]) -> None:
    event.type = EventType.NCCLStart
    params = MemoryParams(_number(row, "send_buffer"), _number(row, "receive_buffer"), _number(row, "bytes"))
    event.memory_params = params if params != MemoryParams() else None


def _read_marker(event: TraceEvent, row: Mapping[str, Any]) -> None:
    kind = str(row.get("kind")).replace("_", " ")
    category = row.get("category_name") or ""
    if category in EventType.__members__:
        event.type = EventType[category]
    else:
        event.type = EventType.RangeStart if kind.endswith("range") else EventType.Marker
        if category:
            event.metadata = {"category": category}
    if kind == "free range" and not category:
        event.type = EventType.Marker
    detail = row.get("detail")
    if detail and not _add(event, detail):
        event.metadata = {**event.metadata, "detail": detail}


_READERS = {
    "api_calls": _read_call,
    "kernels": _read_kernel,
    "copies": _read_copy,
    "sets": _read_set,
    "syncs": _read_sync,
    "allocations": _read_allocation,
    "collectives": _read_collective,
    "markers": _read_marker,
}


def counter_of(row: Mapping[str, Any], devices: Mapping[int, int]) -> CounterEvent:
    """The counter event that a row is."""
    return CounterEvent(
        row.get("name") or "",
        row["value"],
        row.get("unit") or "",
        _number(row, "instance"),
        _number(row, "time"),
        devices.get(_number(row, "device")),
    )


def memory_event_of(row: Mapping[str, Any], devices: Mapping[int, int]) -> MemoryEvent:
    """The memory event that a row of allocations is."""
    categories = {category.value: category for category in MemoryCategory}
    return MemoryEvent(
        bytes=_number(row, "bytes"),
        ptr=_number(row, "address"),
        is_allocation=row.get("operation") == "allocate",
        allocator_name=row.get("allocator") or "",
        category=categories.get(row.get("category") or ""),
        timestamp=_number(row, "time"),
        device_id=devices.get(_number(row, "device"), 0),
        stream_id=_number(row, "stream"),
        thread_id=_number(row, "thread"),
        correlation_id=_number(row, "correlation"),
    )


def notes_of(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int, int], list[str]]:
    """The notes among host calls, by the row that they belong to."""
    notes: dict[tuple[str, int, int], list[str]] = {}
    for row in rows:
        key = (row["name"], _number(row, "start"), _number(row, "correlation"))
        notes.setdefault(key, []).append(row["detail"])
    return notes
