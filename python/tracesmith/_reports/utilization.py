"""How busy GPUs and streams were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, share, time
from tracesmith._reports.quality import DataQuality

__all__ = ["Breakdown", "DeviceUtilization", "LoadPoint", "StreamUtilization", "UtilizationReport"]


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """How busy a GPU was in a short interval."""

    start_ns: int
    """Start of the interval."""
    utilization: float
    """The share of it in which at least one operation ran."""
    concurrency: float
    """The mean number of operations that ran at once."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """What a GPU did in some time. Work that overlaps counts once."""

    span_ns: int
    """Length of the time."""
    busy_ns: int
    """At least one operation ran."""
    idle_ns: int
    """Nothing ran."""
    utilization: float
    """`busy_ns` / `span_ns`."""
    compute_ns: int
    """A kernel that computes ran."""
    communication_ns: int
    """A kernel that communicates ran, such as one of NCCL."""
    copy_ns: int
    """A memcpy ran."""
    set_ns: int
    """A memset ran."""
    communication_hidden_ns: int
    """Communication and compute ran together."""
    communication_exposed_ns: int
    """Communication ran without compute."""
    copy_hidden_ns: int
    """Copies or sets ran together with compute."""
    copy_exposed_ns: int
    """Copies or sets ran without any kernel."""
    communication_overlap: float | None
    """`communication_hidden_ns` / `communication_ns`; `None` without communication."""


@dataclass(frozen=True, slots=True)
class DeviceUtilization(Breakdown):
    """How busy a GPU was in the analyzed time."""

    device: int
    """The `id` of the GPU in the trace."""
    name: str
    """Its name, with the CUDA ordinal."""
    ops: int
    """The number of operations."""
    first_ns: int
    """Start of its first operation."""
    last_ns: int
    """End of its last operation."""
    concurrency_ns: tuple[int, ...]
    """Time in which exactly so many operations ran: the first entry is for none."""
    max_concurrency: int
    """The most operations that ran at once."""
    max_concurrency_at_ns: int
    """When that was first so."""
    load: Items[LoadPoint]
    """Utilization over time, in equal intervals."""


@dataclass(frozen=True, slots=True)
class StreamUtilization:
    """How busy a stream was."""

    device: int
    """The `id` of the GPU."""
    device_name: str
    """Its name."""
    process: int
    """The `id` of the process."""
    context: int
    """The context."""
    stream: int
    """The ID of the stream in its context."""
    kind: str
    """The type of the stream, such as `legacy default` or `non-blocking`; empty if unknown."""
    ops: int
    """The number of operations."""
    first_ns: int
    """Start of its first operation."""
    last_ns: int
    """End of its last operation."""
    busy_ns: int
    """Time in which an operation ran."""


@dataclass(frozen=True, slots=True, repr=False)
class UtilizationReport(Report):
    """How busy GPUs and streams were.

    ```python
    report = trace.utilization()
    report.devices[0].busy_ns, report.devices[0].utilization
    ```
    """

    devices: Items[DeviceUtilization]
    """The GPUs."""
    streams: Items[StreamUtilization]
    """The streams."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        head = ("device", ">operations", ">busy", ">compute", ">communication", ">copies", ">concurrent")
        rows = [
            (
                row.name,
                f"{row.ops:,}",
                _of(row.busy_ns, row.span_ns),
                _of(row.compute_ns, row.span_ns),
                _of(row.communication_ns, row.span_ns),
                _of(row.copy_ns + row.set_ns, row.span_ns),
                f"up to {row.max_concurrency}",
            )
            for row in self.devices
        ]
        yield Part("Devices", head, rows)


def _of(nanos: int, span: int) -> str:
    return f"{time(nanos)} ({share(nanos / span if span else 0.0)})"
