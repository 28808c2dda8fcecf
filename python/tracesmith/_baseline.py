"""What got slower from one trace to another, as text for a failed test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracesmith._duration import readable

__all__ = ["table_of"]

#: Rows of the table.
SHOWN = 12

#: Letters of a kernel's name.
_WIDTH = 60

_CAUSES = "idle: "


def table_of(report: Mapping[str, Any], limit: str) -> str:
    """The answer of `tracesmith diff --format json` as a table of what takes longer, the most first."""
    unit = "step" if report["unit"] == "step" else "trace"
    time = report["time"]
    times = f"{readable(time['a_ns'])} → {readable(time['b_ns'])} per {unit}"
    samples = f"{report['steps_a']} and {report['steps_b']} {unit}s"
    lines = [f"slower than the baseline by {time['change']:.1%}: {times} (limit {limit}, {samples})"]
    lines += [
        f"{run['what']} differs: {run['a'] or 'none'} → {run['b'] or 'none'}"
        for run in report["runs"]
        # That of pytest says which tests ran.
        if run["what"] != "command"
    ]
    rows = sorted(_rows(report), key=lambda row: (-row[1]["change_ns"], row[0]))
    if not rows:
        return "\n".join(lines)
    width = max(len(name) for name, _ in rows[:SHOWN])
    lines += ["", f"{f'per {unit}':<{width}}  {'before':>9}  {'now':>9}  {'change':>9}"]
    for name, one in rows[:SHOWN]:
        remark = "" if one["is_significant"] else "  not certain"
        lines.append(
            f"{name:<{width}}  {readable(one['a_ns']):>9}  {readable(one['b_ns']):>9}  {'+' + readable(one['change_ns']):>9}{remark}"
        )
    if len(rows) > SHOWN:
        lines.append(f"and {len(rows) - SHOWN} more")
    return "\n".join(lines)


def _rows(report: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    named = [("GPU busy", report["busy"])]
    named += [(_CAUSES + row["cause"].replace("_", " "), row) for row in report["idle"]]
    named += [(f"copies {row['direction']}", row) for row in report["copies"]]
    for row in report["kernels"]:
        name = row["renamed_to"] or row["name"]
        remark = "" if row["fate"] == "kept" else f" ({row['fate']})"
        count = ""
        if row["count_a"] != row["count_b"] and row["fate"] != "new":
            count = f" ({row['count_a']:g} → {row['count_b']:g} launches)"
        short = name if len(name) <= _WIDTH else name[: _WIDTH - 1] + "…"
        named.append((short + remark + count, row))
    for name, row in named:
        if row["change_ns"] is not None and row["change_ns"] > 0:
            yield name, row
