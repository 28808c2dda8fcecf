"""The rows of a trace as events, as old programs read them, and events as a trace."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Union, overload

from tracesmith._errors import TraceError
from tracesmith._event_rows import EVENT_TABLES, event_of
from tracesmith._events import EventType, TraceEvent
from tracesmith._trace import Trace
from tracesmith._trace import open as open_trace

__all__ = ["Source", "TraceEvents", "file_of", "trace_of"]

#: What analyses of the old names take.
Source = Union[Trace, str, "os.PathLike[str]", Iterable[TraceEvent]]


class TraceEvents(Sequence[TraceEvent]):
    """The events of a trace, in the order of their start. They are read when the first one is needed.

    A kernel is two events: `KernelLaunch` is the call, if it was recorded, and `KernelComplete` the time on the
    GPU. Both have the stack of the launch. A copy, a set, a sync, an allocation, a range and a collective is one
    event. Other calls are no events: see `trace.api_calls`. For millions of events, the tables of `trace` are
    faster.

    >>> import tracesmith as ts
    >>> events = TraceEvents(ts.open("fixtures/train-h200.sbt"))
    >>> kernel = next(event for event in events if event.type is ts.EventType.KernelComplete)
    >>> kernel.name, kernel.duration, kernel.kernel_params.grid
    ('triton_tem_fused_addmm_t_0', 7072, (1, 1, 1))
    """

    def __init__(self, trace: Trace, limit: int | None = None, depth: int | None = None) -> None:
        """`limit` is the number of events, and `depth` that of the frames in their stacks; `None` for all."""
        self.trace = trace
        self._limit = limit
        self._depth = depth

    @cached_property
    def _events(self) -> list[TraceEvent]:
        events = list(_Reader(self.trace, self._depth).events())
        events.sort(key=lambda event: event.timestamp)
        return events[: self._limit]

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, index: int) -> TraceEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceEvent]: ...
    def __getitem__(self, index: int | slice) -> TraceEvent | list[TraceEvent]:
        return self._events[index]

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self._events)

    def __repr__(self) -> str:
        return f"TraceEvents({self.trace!r})"


def trace_of(source: Source) -> Trace:
    """The trace of what old programs have: events, a file, or a trace."""
    if isinstance(source, Trace):
        return source
    if isinstance(source, (str, os.PathLike)):
        return open_trace(source)
    if isinstance(source, TraceEvents) and source._limit is None:
        return source.trace
    from tracesmith._sbt import SBTWriter

    folder = tempfile.mkdtemp(prefix="tracesmith-")
    try:
        file = os.path.join(folder, "events.sbt")
        writer = SBTWriter(file)
        writer.write_events(list(source))
        writer.finalize()
        trace = open_trace(file)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(trace, shutil.rmtree, folder, ignore_errors=True)
    return trace


def file_of(trace: Trace) -> str:
    """The file of a trace, for the command."""
    if trace.path is None:
        raise TraceError(
            "the trace is not one file", hint="merge the files first: tracesmith merge -o job.sbt RANK0.sbt …"
        )
    return os.fspath(trace.path)


class _Reader:
    """Makes events of rows, with the stacks and threads of their calls."""

    def __init__(self, trace: Trace, depth: int | None) -> None:
        self._trace = trace
        self._depth = depth
        self._stacks: dict[int, list[str]] = {}
        self._ordinals = {row["id"]: row["ordinal"] or 0 for row in trace.table("devices")}

    def events(self) -> Iterator[TraceEvent]:
        """The events, table by table."""
        for table in EVENT_TABLES:
            if table == "api_calls":
                continue  # The launches among them come with their kernels.
            for row in self._trace.table(table):
                event = event_of(table, row, self._ordinals)
                call = self._calls.get((row["process"], row.get("correlation") or 0))
                event.call_stack = self._stack(row["stack"])
                if call is not None and not event.thread_id:
                    event.thread_id = call["thread"] or 0
                if table == "kernels":
                    event.name = row["readable_name"] or event.name
                    if call is not None:
                        yield _launch_of(event, call)
                yield event

    @cached_property
    def _calls(self) -> dict[tuple[int, int], Mapping[str, Any]]:
        """The calls that launched work. Of two calls with one ID, the outer one comes later."""
        calls = self._trace.table("api_calls").select("process", "correlation", "thread", "start", "duration")
        return {(row["process"], row["correlation"]): row for row in calls if row["correlation"]}

    @cached_property
    def _nodes(self) -> dict[int, tuple[int | None, int]]:
        return {row["id"]: (row["parent"], row["frame"]) for row in self._trace.table("stacks")}

    @cached_property
    def _frames(self) -> dict[int, list[str]]:
        """Frames by their ID: with inlined functions, one has several."""
        named: dict[int, list[str]] = {}
        for row in sorted(self._trace.table("symbols"), key=lambda row: int(row["inline_depth"])):
            if row["function"]:
                named.setdefault(row["frame"], []).append(_place(row["function"], row))
        images = {row["id"]: os.path.basename(row["path"] or "") for row in self._trace.table("images")}
        frames = {}
        for row in self._trace.table("frames"):
            address = f"{images.get(row['image'], '')}+{row['address'] or 0:#x}"
            frames[row["id"]] = named.get(row["id"]) or [_place(row["function"] or address, row)]
        return frames

    def _stack(self, stack: int | None) -> list[str]:
        """The frames of a stack, innermost first; empty where no stack was recorded."""
        if not stack:
            return []
        if stack not in self._stacks:
            frames: list[str] = []
            node: int | None = stack
            while node:
                node, frame = self._nodes[node]
                frames.extend(self._frames.get(frame, ()))
            self._stacks[stack] = frames[: self._depth]
        return list(self._stacks[stack])


def _launch_of(event: TraceEvent, call: Mapping[str, Any]) -> TraceEvent:
    """The call that launched a kernel."""
    return dataclasses.replace(
        event,
        type=EventType.KernelLaunch,
        timestamp=call["start"] or 0,
        duration=call["duration"] or 0,
        call_stack=list(event.call_stack),
        metadata={},
    )


def _place(function: str, row: Mapping[str, Any]) -> str:
    return f"{function} ({row['file']}:{row['line']})" if row["file"] else function
