"""Kernels, memcpys and memsets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, share, size, time
from tracesmith._reports.quality import DataQuality
from tracesmith._reports.steps import Distribution

__all__ = ["CopiesReport", "CopyRow", "KernelRow", "KernelsReport"]


@dataclass(frozen=True, slots=True)
class KernelRow(Distribution):
    """The kernels of one name, or of another key. Durations are those of its kernels."""

    name: str
    """What the kernels have in common."""
    class_: str
    """`compute` or `communication`; `class` in JSON."""
    step_ns: float | None
    """Their mean time per step on one GPU, without warm-up; `None` without steps."""
    step_spread: float | None
    """How much that time varies over steps: standard deviation / mean."""
    share: float
    """Their share of the time of all kernels."""
    longest_row: int
    """The row of the longest one in `trace.kernels`."""
    longest_start_ns: int
    """Start of the longest one."""


@dataclass(frozen=True, slots=True, repr=False)
class KernelsReport(Report):
    """Kernels by total time.

    ```python
    for row in trace.kernel_stats(by="short").rows[:3]:
        print(row.name, row.count, row.total_ns)
    ```
    """

    by: str
    """What a row stands for: `name`, `short_name`, `shape`, `stack` (a line of code), `ranges` and others."""
    count: int
    """The number of kernels."""
    total_ns: int
    """The time of all kernels. Kernels that overlap count fully."""
    steps: int
    """The number of steps behind `step_ns`; 0 if there are too few."""
    rows: Items[KernelRow]
    """The rows, the longest total first."""
    doubts: DataQuality
    """How certain the numbers are."""
    places_problem: str | None = None
    """Why ranges or operators could not be read."""

    def _parts(self) -> Iterator[Part]:
        head = (">share", ">total", ">count", ">mean", ">min", ">p50", ">p95", ">max", ">per step", "name")
        rows = [
            (
                share(row.share),
                time(row.total_ns),
                f"{row.count:,}",
                time(row.mean_ns),
                time(row.min_ns),
                time(row.p50_ns),
                time(row.p95_ns),
                time(row.max_ns),
                "" if row.step_ns is None else f"{time(row.step_ns)} ± {share(row.step_spread)}",
                row.name,
            )
            for row in self.rows[:10]
        ]
        more = [f"{len(self.rows) - 10:,} more rows"] if len(self.rows) > 10 else []
        title = f"Kernels: {self.count:,} with {time(self.total_ns)} of GPU time"
        yield Part(title, head, rows, [*more, *([self.places_problem] if self.places_problem else [])])


@dataclass(frozen=True, slots=True)
class CopyRow(Distribution):
    """Memcpys of one direction between two kinds of memory, or memsets, on one GPU."""

    device: int
    """The `id` of the GPU."""
    device_name: str
    """Its name."""
    direction: str
    """`host to device` and others; `set` for memsets."""
    source_device: int | None
    """Between GPUs: the GPU that was read."""
    source_device_name: str | None
    """Its name."""
    destination_device: int | None
    """Between GPUs: the GPU that was written."""
    destination_device_name: str | None
    """Its name."""
    source: str
    """The kind of memory that was read, such as `pageable` or `pinned`."""
    destination: str
    """The kind of memory that was written."""
    bytes: int
    """The bytes of all of them."""
    gigabytes_per_second: float | None
    """Bytes / total duration."""
    best_gigabytes_per_second: float | None
    """The fastest one of at least 1 MiB."""
    peak_gigabytes_per_second: float | None
    """The theoretical limit, if the trace has the facts for it."""
    peak_of: str | None
    """What limits: `memory`, `pcie` or `nvlink`."""
    small: int
    """Those of less than 64 KiB."""
    longest_row: int
    """The row of the longest one, in `trace.copies` or `trace.sets`."""
    longest_start_ns: int
    """Start of the longest one."""
    is_pageable: bool
    """Whether host memory was not pinned."""


@dataclass(frozen=True, slots=True, repr=False)
class CopiesReport(Report):
    """Memcpys and memsets, with their bandwidth."""

    rows: Items[CopyRow]
    """By GPU, direction and kinds of memory, the longest total first."""
    doubts: DataQuality
    """How certain the numbers are."""

    def _parts(self) -> Iterator[Part]:
        head = (
            "device",
            "direction",
            "from",
            "to",
            ">count",
            ">small",
            ">bytes",
            ">total",
            ">speed",
            ">limit",
        )
        rows = [
            (
                row.device_name,
                row.direction,
                row.source,
                row.destination,
                f"{row.count:,}",
                f"{row.small:,}",
                size(row.bytes),
                time(row.total_ns),
                _speed(row.gigabytes_per_second),
                _speed(row.peak_gigabytes_per_second),
            )
            for row in self.rows
        ]
        yield Part("Memcpys and memsets", head, rows, [] if rows else ["none"])


def _speed(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f} GB/s"
