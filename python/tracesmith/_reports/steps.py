"""The steps of a program's loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, time
from tracesmith._reports.quality import DataQuality
from tracesmith._reports.utilization import Breakdown

__all__ = ["Distribution", "StepDevice", "StepPart", "StepRow", "StepSource", "StepsReport"]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Statistics of durations. A percentile is one of the durations (nearest rank)."""

    count: int
    """How many."""
    total_ns: int
    """Their sum."""
    mean_ns: float
    """Their mean."""
    min_ns: int
    """The shortest."""
    p50_ns: int
    """The median."""
    p95_ns: int
    """The 95th percentile."""
    p99_ns: int
    """The 99th percentile."""
    max_ns: int
    """The longest."""


@dataclass(frozen=True, slots=True)
class StepSource:
    """How steps were found."""

    kind: str
    """`markers`, `optimizer`, `data_loader`, `pattern` (kernels that repeat) or `none`."""
    name: str | None = None
    """The name of the ranges, of the optimizer or of the data loader."""
    is_nvtx: bool | None = None
    """Whether the markers are NVTX ranges."""
    anchor: str | None = None
    """The kernel that starts each repetition of a pattern."""
    kernels: int | None = None
    """The GPU operations of a repetition of a pattern."""

    def __str__(self) -> str:
        if self.kind == "markers":
            return f"{'NVTX' if self.is_nvtx else 'profiler'} ranges named {self.name}"
        if self.kind == "pattern":
            return f"{self.kernels} GPU operations that repeat, from {self.anchor}"
        if self.kind == "none":
            return "no steps found"
        return f"{'optimizer' if self.kind == 'optimizer' else 'data loader'} {self.name}"


@dataclass(frozen=True, slots=True)
class StepPart:
    """A step in one process."""

    process: int
    """The `id` of the process."""
    rank: int | None
    """Its rank, if it has one."""
    start_ns: int
    """Start of the step there."""
    end_ns: int
    """End of the step there."""


@dataclass(frozen=True, slots=True)
class StepDevice(Breakdown):
    """What a GPU did during a step."""

    device: int
    """The `id` of the GPU."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step, of all ranks that took part."""

    name: str
    """Its name."""
    start_ns: int
    """Start of its first part."""
    end_ns: int
    """End of its last part."""
    is_warm_up: bool
    """Whether the program still warmed up. Statistics leave the step out."""
    is_cut_off: bool
    """Whether the trace does not show where the step ends. Statistics leave it out."""
    parts: Items[StepPart]
    """The step in each process."""
    offset_ns: int
    """Its start, from the start of the trace."""
    ops: int
    """GPU operations that were launched in it, by all ranks."""
    devices: Items[StepDevice]
    """What each GPU did during the step."""

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True, repr=False)
class StepsReport(Report):
    """The steps of the program's loop."""

    source: StepSource
    """How they were found."""
    processes: int
    """The number of processes that have steps."""
    settled: Distribution
    """Step durations, without warm-up and without steps that are cut off."""
    gpu_period: Distribution
    """From the first GPU work of a step to that of the next. If the CPU runs ahead, that is the time of a step."""
    steps: Items[StepRow]
    """All steps."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        if not self.steps:
            yield Part(f"Steps: {self.source}")
            return
        times = self.settled
        warm_up = sum(row["is_warm_up"] for row in self.steps.to_dicts())
        line = (
            f"{warm_up} warm-up; time of the others: mean {time(times.mean_ns)}, "
            f"min {time(times.min_ns)}, max {time(times.max_ns)}"
        )
        yield Part(f"Steps: {len(self.steps)}, from {self.source}", remarks=[line] if times.count else [])
