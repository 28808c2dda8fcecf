"""The critical path, slack, and predictions of changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, share, time
from tracesmith._reports.idle import HostTime
from tracesmith._reports.quality import DataQuality

__all__ = [
    "CriticalPathReport", "MedianStep", "OpSlack", "PathTotal", "PredictedPath", "PredictedStep", "Segment",
    "SlackReport", "SlackRow", "WhatIfReport",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class PathTotal:
    """Time of the critical path with one part."""

    part: str
    """`work`, `launch`, `dispatch`, `stream_wait`, `host` or `host_wait`."""
    name: str
    """The name of the work; empty for other parts."""
    total_ns: int
    """The time."""
    share: float
    """Its share of the path."""
    count: int
    """How often."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the critical path."""

    part: str
    """What it is: `work`, `launch`, `dispatch`, `stream_wait`, `host` or `host_wait`."""
    from_ns: int
    """Start."""
    to_ns: int
    """End."""
    name: str
    """The operation or call that it ends with."""
    table: str | None
    """The table of the operation; `None` for calls."""
    row: int | None
    """Its row in the table."""


@dataclass(frozen=True, slots=True)
class SlackRow:
    """Slack of the operations of one name: how much later they could have ended without delaying the end."""

    name: str
    """The name."""
    count: int
    """The number of operations."""
    on_path: int
    """Those without slack."""
    min_slack_ns: int
    """The least slack."""
    mean_slack_ns: float
    """The mean slack."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the dependency graph does not know for certain."""

    assumed_records: int
    """Event waits for which the stream of the event record was assumed."""
    unknown_records: int
    """Event waits whose event record was not found."""
    unknown_waits: int
    """CPU waits whose target is unknown. They are left out."""
    unordered_graphs: int
    """Graph launches whose node order is unknown."""
    blocked_launches: int
    """Launches that blocked because the queue of their stream was full."""
    assumed_waits: int
    """CPU waits without a call, assumed from the times."""
    assumed_edges: int
    """Waits of a stream for another one that no row states, assumed from the times."""
    cpu_ahead_ns: int
    """CPU code on the path during which launched work had not started, if that makes the path doubtful; else 0."""


@dataclass(frozen=True, slots=True)
class CriticalPathReport(Assumptions, Report):
    """The chain of operations and calls that determined the end time.

    ```python
    path = trace.critical_path(step=1)
    path.path_ns, path.totals[0].part, path.totals[0].share
    ```
    """

    path_ns: int
    """From the start of the path to its end."""
    span_ns: int
    """The time range of the analysis."""
    totals: Items[PathTotal]
    """Time on the path by part, for work also by name; the most first."""
    segments: Items[Segment]
    """The path, in the order of time."""
    slack: Items[SlackRow]
    """Slack by name, the least first."""
    contradicted: int
    """Dependencies that the times contradict. They are left out."""
    assumed_edges: int
    """Waits of a stream for another one that no row states, assumed from the times."""
    cpu_ahead_ns: int
    """CPU code on the path during which launched work had not started, if that makes the path doubtful; else 0."""
    host: HostTime
    """Where the CPU was in its part of the path."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        yield _path_part(f"Critical path: {time(self.path_ns)} of {time(self.span_ns)}", self.totals)
        if self.host.total_ns:
            yield from self.host._titled("CPU code on the critical path")


@dataclass(frozen=True, slots=True)
class OpSlack:
    """An operation and its slack."""

    slack_ns: int
    """How much later it could have ended; 0 on the critical path."""
    start_ns: int
    """Its start."""
    end_ns: int
    """Its end."""
    table: str
    """Its table."""
    row: int
    """Its row in the table."""
    name: str
    """Its name."""


@dataclass(frozen=True, slots=True, repr=False)
class SlackReport(Report):
    """The slack of every operation."""

    slack: Items[OpSlack]
    """The operations, the least slack first."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        rows = [(time(row.slack_ns), time(row.end_ns - row.start_ns), row.name) for row in self.slack[:20]]
        yield Part(f"Slack: {len(self.slack):,} operations", (">slack", ">duration", "name"), rows)


@dataclass(frozen=True, slots=True)
class MedianStep:
    """The median of all steps after the warm-up that are not cut off."""

    count: int
    """How many steps there are."""
    measured_ns: int
    """The median of their measured times."""
    changed_ns: int
    """The median of their times with the change."""
    path: Items[PathTotal]
    """Time on the critical path in these steps with the change, by part; the most first."""


@dataclass(frozen=True, slots=True)
class PredictedStep:
    """A step as it was, and as it would be."""

    number: int
    """Its place among all steps of the trace."""
    name: str
    """Its name."""
    measured_ns: int
    """The measured time."""
    changed_ns: int
    """The time with the change."""


@dataclass(frozen=True, slots=True)
class PredictedPath:
    """The critical path with the change: what limits the time then."""

    path_ns: int
    """From its start to its end."""
    totals: Items[PathTotal]
    """Time on the path by part, for work also by name; the most first."""
    host: HostTime
    """Where the CPU is in its part of the path."""


@dataclass(frozen=True, slots=True)
class WhatIfReport(Assumptions, Report):
    """The predicted time with a change.

    ```python
    trace.what_if(speedup={"triton*": 2}).speedup
    ```
    """

    measured_ns: int
    """The measured time."""
    unchanged_ns: int
    """The simulated time without a change: how well the simulation explains the measured time."""
    changed_ns: int
    """The simulated time with the change."""
    speedup: float
    """`measured_ns` / `changed_ns`."""
    scaled_ops: int
    """Operations whose duration was changed."""
    scaled_on_path: int
    """Those of them on the measured critical path."""
    scaled_on_path_ns: int
    """Their measured time."""
    left_waits: int
    """CPU waits that were removed."""
    path_work_share: float
    """The share of the critical path that is GPU work."""
    explanation: str | None
    """Why the change brings less than 0.1 %; `None` if it brings more."""
    step: MedianStep | None
    """The median step; `None` without steps after the warm-up."""
    steps: Items[PredictedStep]
    """All steps that are as a whole in the time range."""
    path: PredictedPath
    """The critical path with the change."""
    doubts: DataQuality
    """How certain the numbers are."""

    @property
    def saved_ns(self) -> int:
        """The time that the change saves."""
        return self.measured_ns - self.changed_ns

    def _parts(self) -> Iterator[Part]:
        rows = [
            ("measured", time(self.measured_ns)),
            ("simulated without the change", time(self.unchanged_ns)),
            ("with the change", f"{time(self.changed_ns)} ({self.speedup:.2f} times as fast)"),
        ]
        if self.step:
            rows.append(("a step, measured", time(self.step.measured_ns)))
            rows.append(("a step with the change", time(self.step.changed_ns)))
        yield Part("What if", ("", ">time"), rows, [self.explanation] if self.explanation else [])
        yield _path_part(f"Critical path with the change: {time(self.path.path_ns)}", self.path.totals)


def _path_part(title: str, totals: Items[PathTotal]) -> Part:
    head = (">time", ">share", ">count", "part", "name")
    rows = [
        (time(row.total_ns), share(row.share), f"{row.count:,}", row.part, row.name) for row in totals[:20]
    ]
    return Part(title, head, rows)
