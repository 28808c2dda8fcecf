"""What a recording contains, as the collector reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CaptureReport", "Loss", "RowCounts"]


@dataclass(frozen=True)
class RowCounts:
    """Rows per table.

    >>> RowCounts(kernels=3).kernels
    3
    """

    kernels: int = 0
    #: Copies and sets of memory.
    copies: int = 0
    api_calls: int = 0
    #: Waits and event records.
    syncs: int = 0
    #: Allocations and frees.
    allocations: int = 0
    #: Ranges and marks.
    markers: int = 0
    graph_launches: int = 0
    host_calls: int = 0
    counters: int = 0
    #: Calls, bytes and time of a recording for replay.
    recorded_calls: int = 0
    recorded_bytes: int = 0
    recorded_ns: int = 0


@dataclass(frozen=True)
class Loss:
    """One cause of lost or doubtful data."""

    cause: str
    count: int
    bytes: int
    detail: str
    #: Whether records are missing. Otherwise it is only a remark.
    missing: bool


@dataclass(frozen=True)
class CaptureReport:
    """What a recording contains.

    >>> import tracesmith as ts
    >>> with ts.profile() as p:
    ...     pass
    >>> p.report.rows.kernels, p.report.lost
    (0, 0)
    """

    #: The traces and their sizes: one, or one for each dump of a flight recorder.
    files: tuple[tuple[str, int], ...]
    #: Whether the trace has everything that was recorded.
    whole: bool
    #: Why the trace could not be completed.
    failure: str | None
    processes: int
    rows: RowCounts
    losses: tuple[Loss, ...]

    @property
    def lost(self) -> int:
        """Records that are missing. A loss that cannot be counted counts as one."""
        return sum(max(loss.count, 1) for loss in self.losses if loss.missing)


def report_of(answer: Mapping[str, Any]) -> CaptureReport:
    """The report in an answer of the collector."""
    rows = {name: answer["rows"][name] for name in RowCounts.__dataclass_fields__}
    return CaptureReport(
        files=tuple((file["path"], file["bytes"]) for file in answer["files"]),
        whole=answer["whole"],
        failure=answer["failure"],
        processes=answer["processes"],
        rows=RowCounts(**rows),
        losses=tuple(
            Loss(loss["cause"], loss["count"], loss["bytes"], loss["detail"], loss["missing"])
            for loss in answer["losses"]
        ),
    )
