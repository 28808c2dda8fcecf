"""What got slower from one trace to another, as text for a failed test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracesmith._reports._text import Part, cut_text, text_of, time
from tracesmith._reports.idle import CAUSES

if TYPE_CHECKING:
    from tracesmith._reports import Comparison, DiffReport

__all__ = ["slower"]

#: Rows of the table.
SHOWN = 12


def slower(report: DiffReport, limit: str) -> str:
    """A comparison as a table of what takes longer, the most first."""
    one = report.time
    growth = "" if one.change is None else f" by {one.change:.1%}"
    samples = f"{report.steps_a} and {report.steps_b} {report.unit}s"
    lines = [
        f"slower than the baseline{growth}: {time(one.a_ns)} → {time(one.b_ns)} per {report.unit} (limit {limit}, {samples})"
    ]
    lines += [
        f"{run.what} differs: {run.a or 'unknown'} → {run.b or 'unknown'}"
        for run in report.runs
        # That of pytest says which tests ran.
        if run.what != "command"
    ]
    rows = sorted(
        ((name, row) for name, row in _rows(report) if row.change_ns > 0), key=lambda row: -row[1].change_ns
    )
    cells = [
        (
            time(row.a_ns),
            time(row.b_ns),
            f"+{time(row.change_ns)}",
            "" if row.is_significant else "not certain",
            name,
        )
        for name, row in rows[:SHOWN]
    ]
    more = [f"{len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    table = Part(
        f"What takes longer, per {report.unit}", (">before", ">now", ">change", "", "what"), cells, more
    )
    return "\n".join(lines) + "\n\n" + text_of([table])


def _rows(report: DiffReport) -> Iterator[tuple[str, Comparison]]:
    yield "GPU busy", report.busy
    for idle in report.idle:
        yield f"idle: {CAUSES.get(idle.cause, idle.cause)}", idle
    for copy in report.copies:
        yield f"copies: {copy.direction}", copy
    for kernel in report.kernels:
        remark = "" if kernel.fate == "kept" else f" ({kernel.fate})"
        if kernel.count_a != kernel.count_b and kernel.fate != "new":
            remark += f" ({kernel.count_a:g} → {kernel.count_b:g} launches)"
        yield cut_text(kernel.renamed_to or kernel.name) + remark, kernel
