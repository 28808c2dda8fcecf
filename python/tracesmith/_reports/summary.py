"""The report of all analyses together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Report
from tracesmith._reports._text import Part, time
from tracesmith._reports.findings import Findings
from tracesmith._reports.idle import HostTime, IdleReport
from tracesmith._reports.kernels import CopiesReport, KernelsReport
from tracesmith._reports.launches import LaunchesReport
from tracesmith._reports.quality import DataQuality
from tracesmith._reports.steps import StepsReport
from tracesmith._reports.utilization import UtilizationReport

__all__ = ["Summary"]


@dataclass(frozen=True, slots=True, repr=False)
class Summary(Report):
    """What `Trace.analyze` returns: all that a first look wants.

    ```python
    report = trace.analyze()
    print(report)
    report.utilization.devices[0].busy_ns
    ```
    """

    span_ns: tuple[int, ...] | None
    """The first and last moment; `None` for a trace without events."""
    analyzed_ns: tuple[int, ...]
    """Start and end of the time that all shares refer to."""
    doubts: DataQuality
    """How certain the numbers are."""
    utilization: UtilizationReport
    """How busy GPUs were."""
    idle: IdleReport | None
    """Why they were idle. `None` if a GPU has work that is not selected."""
    host: HostTime | None
    """What the CPU did while GPUs waited for it. `None` if a GPU has work that is not selected."""
    steps: StepsReport
    """The steps."""
    kernels: KernelsReport
    """The kernels."""
    copies: CopiesReport
    """The memcpys and memsets."""
    launches: LaunchesReport
    """The launches."""
    findings: Findings | None
    """Problems, with advice. `None` if a GPU has work that is not selected."""
    gpu_bound: str | None
    """Which kernels take the time, if GPUs are busy with them nearly all the time."""

    def _parts(self) -> Iterator[Part]:
        yield Part(
            f"Analyzed time: {time(self.analyzed_ns[1] - self.analyzed_ns[0])}. Percentages of time refer to it"
        )
        yield from self.utilization._parts()
        if self.idle is not None:
            yield from self.idle._parts()
        if self.host is not None and self.host.total_ns:
            yield from self.host._parts()
        for report in (self.steps, self.kernels, self.copies, self.launches):
            yield from report._parts()
        if self.findings is not None:
            yield Part("Findings")
            yield from self.findings._parts()
        if self.gpu_bound:
            yield Part(self.gpu_bound)
        if self.doubts.warnings:
            yield Part("", remarks=[f"warning: {line}" for line in self.doubts.warnings])
