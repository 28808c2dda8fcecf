"""Launch calls and queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, share, time
from tracesmith._reports.quality import DataQuality
from tracesmith._reports.steps import Distribution

__all__ = ["LaunchBound", "LaunchesReport", "Queue", "QueuePoint", "ShortKernels"]


@dataclass(frozen=True, slots=True)
class ShortKernels:
    """Kernels that took less time than their launch call, without kernels of graphs."""

    count: int
    """How many."""
    blocked: int
    """Others, left out because their call waited for a full queue."""
    launched: int
    """The kernels that `share` is of: those with a call of their own."""
    share: float
    """Their share of these."""
    kernel_ns: int
    """Their time on the GPU."""
    call_ns: int
    """The time of their calls, without profiler overhead."""
    call_share: float
    """The share of the analyzed time that the thread with most of these calls spent in them."""
    step_call_share: float | None
    """The same as a share of the steps; `None` if no step has such calls."""
    worst_row: int | None
    """The kernel whose call took most more than itself: its row in `trace.kernels`."""
    worst_start_ns: int
    """Its start."""
    worst_end_ns: int
    """Its end."""


@dataclass(frozen=True, slots=True)
class QueuePoint:
    """The queue of a GPU in a short interval."""

    start_ns: int
    """Start of the interval."""
    mean: float
    """The mean number of operations in the queue."""
    max: int
    """The largest number."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Operations that were launched on a GPU and had not started."""

    device: int
    """The `id` of the GPU."""
    name: str
    """Its name."""
    max: int
    """The most in the queue."""
    max_at_ns: int
    """When that was first so."""
    mean: float
    """The mean over time."""
    empty_share: float
    """The share of the analyzed time with an empty queue."""
    series: Items[QueuePoint]
    """The queue over time."""


@dataclass(frozen=True, slots=True)
class LaunchBound:
    """A time in which a GPU waited for every launch."""

    device: int
    """The `id` of the GPU."""
    device_name: str
    """Its name."""
    from_ns: int
    """Start."""
    offset_ns: int
    """The same, from the start of the trace."""
    to_ns: int
    """End."""
    ops: int
    """The operations in it."""
    idle_ns: int
    """The idle time in it."""


@dataclass(frozen=True, slots=True, repr=False)
class LaunchesReport(Report):
    """Launch calls, their latency, and the depth of the queues."""

    latency: Distribution
    """From the start of a call to the start of its first operation."""
    delay: Distribution
    """From the end of a call to the start of its first operation; 0 if that started earlier."""
    call: Distribution
    """Durations of the calls."""
    graph_launches: int
    """Calls that launch graphs."""
    graph_kernels: int
    """Kernels that came from graphs."""
    short_kernels: ShortKernels
    """Kernels that took less time than their call."""
    queues: Items[Queue]
    """The queue of each GPU."""
    launch_bound: Items[LaunchBound]
    """The ten intervals with the most idle time in which a GPU waited for every launch."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        named = (
            ("duration of the call", self.call),
            ("start of the call to start of its first GPU operation", self.latency),
            ("end of the call to start of its first GPU operation", self.delay),
        )
        rows = [
            (name, *(time(value) for value in (one.mean_ns, one.p50_ns, one.p95_ns, one.p99_ns, one.max_ns)))
            for name, one in named
        ]
        short = self.short_kernels
        lines = []
        if short.launched:
            lines.append(
                f"{short.count:,} of {short.launched:,} kernels outside graphs ({share(short.share)}) "
                "took less time than the call that launched them"
            )
        lines += [
            f"{queue.name}: on average {queue.mean:.1f} GPU operations queued, at most {queue.max:,}; "
            f"queue empty {share(queue.empty_share)} of the time"
            for queue in self.queues
        ]
        title = f"Launches: {self.call.count:,} calls that launched kernels, graphs, memcpys or memsets"
        yield Part(
            title, ("", ">mean", ">p50", ">p95", ">p99", ">max"), rows if self.call.count else [], lines
        )
