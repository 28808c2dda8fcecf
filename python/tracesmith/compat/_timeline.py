"""What happened on the GPUs: timelines, states, the order of operations."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracesmith import _command, _native
from tracesmith._errors import TraceError
from tracesmith._trace import Trace
from tracesmith.compat._events import Source, TraceEvents, file_of, trace_of

if TYPE_CHECKING:
    from tracesmith._events import TraceEvent
    from tracesmith._table import Table

__all__ = [
    "GPUStateMachine",
    "InstructionStreamBuilder",
    "Timeline",
    "TimelineBuilder",
    "TimelineDevice",
    "TimelineViewer",
    "build_timeline",
]


@dataclass(frozen=True)
class TimelineDevice:
    """What one GPU did between its first and its last operation."""

    name: str
    ops: int
    span_ns: int
    #: The time in which at least one operation ran.
    busy_ns: int
    #: Its share, from 0 to 1.
    utilization: float
    max_concurrent_ops: int


class Timeline:
    """The work of all GPUs over time.

    Times in which several operations run count once.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @property
    def devices(self) -> tuple[TimelineDevice, ...]:
        """Each GPU."""
        return self._devices

    @cached_property
    def _devices(self) -> tuple[TimelineDevice, ...]:
        answer = json.loads(_native.Analysis(self.trace._native).report("utilization", "{}"))
        return tuple(
            TimelineDevice(
                name=one["name"],
                ops=one["ops"],
                span_ns=one["span_ns"],
                busy_ns=one["busy_ns"],
                utilization=one["utilization"],
                max_concurrent_ops=one["max_concurrency"],
            )
            for one in answer["devices"]
        )

    @property
    def spans(self) -> Table:
        """The operations, as a table: `name`, `start`, `end`, `stream` and more."""
        return self.trace.table("gpu_ops")

    @property
    def gpu_utilization(self) -> float:
        """The share of the time in which the GPUs are busy, from 0 to 1."""
        span = sum(device.span_ns for device in self.devices)
        return sum(device.busy_ns for device in self.devices) / span if span else 0.0

    @property
    def max_concurrent_ops(self) -> int:
        """The most operations that run at once on a GPU."""
        return max((device.max_concurrent_ops for device in self.devices), default=0)

    @property
    def total_duration(self) -> int:
        """From the first to the last moment, in nanoseconds."""
        return self.trace.duration_ns

    def __repr__(self) -> str:
        return f"Timeline({len(self.spans):,} spans, {self.gpu_utilization:.1%} busy)"


def build_timeline(source: Source) -> Timeline:
    """The timeline of events, of a file or of a trace.

    >>> import tracesmith as ts
    >>> timeline = ts.build_timeline("fixtures/train-h200.sbt")
    >>> len(timeline.spans), timeline.max_concurrent_ops, f"{timeline.gpu_utilization:.2%}"
    (180, 1, '0.21%')
    """
    return Timeline(trace_of(source))


class _Collected:
    """Events that are added one by one, or a whole trace."""

    def __init__(self, source: Source | None = None) -> None:
        self._source = source
        self._events: list[TraceEvent] = []

    def add_event(self, event: TraceEvent) -> None:
        """Adds one event."""
        self._events.append(event)

    def add_events(self, events: Source) -> None:
        """Adds events, or takes a whole trace."""
        if self._source is None and not self._events and not isinstance(events, list):
            self._source = events
        else:
            self._events.extend(_listed(events))

    def clear(self) -> None:
        """Forgets all events."""
        self._source, self._events = None, []

    @property
    def _trace(self) -> Trace:
        if self._source is not None and not self._events:
            return trace_of(self._source)
        if self._source is not None:
            return trace_of([*_listed(self._source), *self._events])
        return trace_of(self._events)


class TimelineBuilder(_Collected):
    """Collects events, and makes a timeline of them."""

    def build(self) -> Timeline:
        """The timeline."""
        return Timeline(self._trace)


class TimelineViewer:
    """A timeline as text.

    >>> import tracesmith as ts
    >>> text = ts.TimelineViewer("fixtures/train-h200.sbt").render()
    >>> "gpu 0 NVIDIA H200" in text
    True
    """

    def __init__(self, source: Timeline | Source) -> None:
        self._trace = source.trace if isinstance(source, Timeline) else trace_of(source)

    def render(self) -> str:
        """The picture that `tracesmith view --timeline` prints."""
        return _command.run(
            ["--no-color", "view", file_of(self._trace), "--timeline"], error=TraceError
        ).stdout


class GPUStateMachine(_Collected):
    """What each stream did at each time: it was idle, pending, waiting, running or finished."""

    def process_event(self, event: TraceEvent) -> None:
        """The same as `add_event`."""
        self.add_event(event)

    def process_events(self, events: Source) -> None:
        """The same as `add_events`."""
        self.add_events(events)

    @property
    def states(self) -> Table:
        """The states, as a table: `stream`, `start`, `end`, `state`, and what it waits for."""
        return self._trace.table("states")

    def statistics(self) -> dict[str, int]:
        """The time in each state in nanoseconds, over all streams."""
        rows = self._trace.sql("select state, sum(duration) as ns from states group by state order by state")
        return {row["state"]: row["ns"] for row in rows}

    def state_at(self, time: int, stream: int) -> str | None:
        """The state of a stream at a time, in nanoseconds of the trace's clock."""
        for row in self.states.where(stream=stream):
            if row["start"] <= time < row["end"]:
                return str(row["state"])
        return None


class InstructionStreamBuilder(_Collected):
    """The operations in the order of their execution, and what each of them waits for.

    >>> import tracesmith as ts
    >>> builder = ts.InstructionStreamBuilder("fixtures/train-h200.sbt")
    >>> len(builder.get_execution_order())
    180
    """

    def get_execution_order(self) -> list[dict[str, Any]]:
        """The operations by the time at which they start, as rows of the view `gpu_ops`."""
        rows: list[dict[str, Any]] = self._trace.table("gpu_ops").to_dicts()
        return sorted(rows, key=lambda row: row["start"] if row["start"] is not None else -1)

    def get_dependencies(self) -> list[tuple[str, str]]:
        """Pairs of operations and calls, as in the graph: the second waits for the first."""
        text = self.export_to_dot()
        names = dict(re.findall(r'^\s*(n\d+) \[label="((?:[^"\\]|\\.)*)"', text, re.MULTILINE))
        edges = re.findall(r"^\s*(n\d+) -> (n\d+)", text, re.MULTILINE)
        return [(_label(names[first]), _label(names[second])) for first, second in edges]

    def export_to_dot(self, path: str | os.PathLike[str] | None = None) -> str:
        """The graph of operations, calls and what they wait for, for Graphviz. Use a short trace."""
        file = file_of(self._trace)
        text = _command.run(["export", file, "-f", "dot", "-o", "-"], error=TraceError).stdout
        if path is not None:
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        return text


def _listed(source: Source) -> Iterable[TraceEvent]:
    if isinstance(source, (str, os.PathLike, Trace)):
        return TraceEvents(trace_of(source))
    return source


def _label(text: str) -> str:
    """The name in a node's label, whose second line is the time.

    >>> _label("saxpy\\\\n31.39 µs")
    'saxpy'
    """
    return text.split("\\n")[0].replace('\\"', '"')
