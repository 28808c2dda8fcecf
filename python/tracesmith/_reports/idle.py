"""Why GPUs were idle, and what the CPU did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, share, time
from tracesmith._reports.quality import DataQuality

__all__ = [
    "CAUSES", "CauseTotal", "DeviceIdle", "Gap", "HostActivityReport", "HostRow", "HostTime", "IdleReport",
    "StreamIdle",
]  # fmt: skip

#: Idle causes in words, as the command prints them.
CAUSES = {
    "host_busy": "CPU busy between calls",
    "host_sync": "CPU waits for the GPU",
    "host_allocation": "CPU in cudaMalloc/cudaFree",
    "host_copy": "CPU in a memcpy or memset call",
    "host_lock": "CPU waits for a lock",
    "host_module": "CPU loads a module",
    "host_call": "CPU in another call",
    "profiler_overhead": "profiler overhead",
    "launch_gap": "launch (call to GPU start)",
    "dispatch": "launched, not started by the GPU",
    "other_stream": "waits for another stream",
    "communication": "waits for communication",
    "unknown": "call not recorded",
    "before_recording": "work from before the recording",
    "start": "before its first GPU work",
    "end": "after its last GPU work",
}


@dataclass(frozen=True, slots=True)
class CauseTotal:
    """Idle time with one cause."""

    cause: str
    """The cause: `host_busy`, `host_sync`, `launch_gap`, `dispatch` and others."""
    total_ns: int
    """The time."""
    share: float
    """Its share of the analyzed time."""
    gaps: int
    """The number of gaps that it contributed to."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a GPU was idle."""

    from_ns: int
    """Start of the gap."""
    offset_ns: int
    """The same, from the start of the trace."""
    to_ns: int
    """End of the gap."""
    cause: str
    """Its main cause."""
    cause_ns: int
    """How much of the gap had this cause."""
    next: str
    """The operation that ended it."""
    next_table: str
    """The table of that operation."""
    next_row: int
    """Its row in the table."""
    overhead_ns: int
    """Profiler overhead in the gap."""
    launch_call_ns: int
    """Time in the launch call of `next`."""


@dataclass(frozen=True, slots=True)
class DeviceIdle:
    """Why a GPU was idle."""

    device: int
    """The `id` of the GPU."""
    name: str
    """Its name, with the CUDA ordinal."""
    span_ns: int
    """The analyzed time."""
    idle_ns: int
    """Idle time in it."""
    gaps: int
    """The number of gaps."""
    causes: Items[CauseTotal]
    """The causes, the longest first. They add up to `idle_ns`."""
    slow_launches: int
    """Gaps in which one launch call took 100 µs or more."""
    slow_launches_ns: int
    """Their time, which is a part of `launch_gap`."""
    slowest_launch: Gap | None
    """The gap with the slowest of them."""
    launches_after_sync_ns: int
    """The part of `launch_gap` in gaps in which the CPU also waited for a GPU."""
    longest: Items[Gap]
    """The ten longest gaps."""
    by_cause: Items[Gap]
    """For each cause, the gap with its largest part."""


@dataclass(frozen=True, slots=True)
class StreamIdle:
    """Why a stream was idle, from its first to its last operation."""

    device: int
    """The `id` of the GPU."""
    process: int
    """The `id` of the process."""
    context: int
    """The context."""
    stream: int
    """The ID of the stream in its context."""
    span_ns: int
    """From its first to its last operation."""
    idle_ns: int
    """Idle time in it."""
    gaps: int
    """The number of gaps."""
    causes: Items[CauseTotal]
    """The causes, the longest first."""


@dataclass(frozen=True, slots=True, repr=False)
class IdleReport(Report):
    """Why GPUs and streams were idle.

    ```python
    gpu = trace.idle().devices[0]
    {cause.cause: cause.total_ns for cause in gpu.causes}
    ```
    """

    devices: Items[DeviceIdle]
    """The GPUs."""
    streams: Items[StreamIdle]
    """The streams. Empty in the report of `Trace.analyze`."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        for row in self.devices:
            total = share(row.idle_ns / row.span_ns if row.span_ns else 0.0)
            yield Part(
                f"Idle time of {row.name}: {time(row.idle_ns)} ({total})",
                (">time", ">share", ">gaps", "cause"),
                [
                    (time(one.total_ns), share(one.share), f"{one.gaps:,}", CAUSES.get(one.cause, one.cause))
                    for one in row.causes
                ],
            )


@dataclass(frozen=True, slots=True)
class HostRow:
    """CPU time at one place of the program."""

    name: str
    """The operator, range, function or line."""
    total_ns: int
    """The time there."""
    share: float
    """Its share of the whole CPU time."""


@dataclass(frozen=True, slots=True, repr=False)
class HostTime(Report):
    """Where CPU threads were in some time."""

    total_ns: int
    """The time. If several GPUs are idle at once, each gap counts."""
    operators: Items[HostRow]
    """By outermost framework operator, such as `aten::linear`."""
    ranges: Items[HostRow]
    """By innermost NVTX or framework range. Numbers at the end of names are left out."""
    functions: Items[HostRow]
    """By innermost Python function that is not in an installed package."""
    lines: Items[HostRow]
    """By source line of the next CUDA call."""

    def _parts(self) -> Iterator[Part]:
        yield from self._titled("CPU code that GPUs waited for (CPU busy between calls)")

    def _titled(self, title: str) -> Iterator[Part]:
        lists = (
            ("outermost framework operator", self.operators),
            ("innermost NVTX or framework range", self.ranges),
            ("innermost function of the program", self.functions),
            ("line of the next CUDA call", self.lines),
        )
        yield Part(f"{title}: {time(self.total_ns)}")
        for name, rows in lists:
            if rows:
                shown = [(time(row.total_ns), share(row.share), row.name) for row in rows[:10]]
                yield Part("", (">time", ">share", name), shown)


@dataclass(frozen=True, slots=True, repr=False)
class HostActivityReport(Report):
    """What the CPU did while GPUs waited for it."""

    idle: HostTime
    """While a GPU was idle and the CPU was busy between calls."""
    critical_path: HostTime
    """In the CPU's part of the critical path."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        yield from self.idle._parts()
        yield from self.critical_path._titled("CPU code on the critical path")
