"""Reports as text and as HTML: units, and tables with aligned columns.

Units are those of the command: the largest one of which there is at least one.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = [
    "Part", "change", "count", "cut_text", "html_of", "offset", "share", "size", "text_of", "time",
]  # fmt: skip

#: The most letters that a cell of a table shows.
CELL_LIMIT = 100


class Part(NamedTuple):
    """A table with its title and remarks. A column whose name starts with `>` is aligned to the right."""

    title: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    remarks: Sequence[str] = ()


def time(nanos: float) -> str:
    """A duration.

    >>> time(1_500_000), time(-21.7)
    ('1.50 ms', '-21 ns')
    """
    # Parts of a nanosecond are cut off, as the command does it.
    whole = int(nanos)
    for limit, unit, digits in ((10**9, "s", 3), (10**6, "ms", 2), (10**3, "µs", 2)):
        if abs(whole) >= limit:
            return f"{whole / limit:,.{digits}f} {unit}"
    return f"{whole} ns"


def offset(nanos: float) -> str:
    """A moment, from the start of the trace."""
    return "+" + time(nanos)


def size(amount: float) -> str:
    """An amount of bytes."""
    for limit, unit in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if abs(amount) >= limit:
            return f"{amount / limit:,.1f} {unit}"
    return f"{amount:,.0f} B"


def share(part: float | None) -> str:
    """A share of 0 to 1, in percent."""
    return "" if part is None else f"{part * 100:.1f} %"


def count(number: int, one: str, many: str) -> str:
    """A number of things."""
    return f"{number:,} {one if number == 1 else many}"


def change(nanos: float, part: float | None) -> str:
    """A change of a time, and its share."""
    sign = "+" if nanos >= 0 else ""
    relative = "" if part is None else f" ({part * 100:+.1f} %)"
    return f"{sign}{time(nanos)}{relative}"


def cut_text(text: str) -> str:
    """A text that fits into a cell."""
    return text if len(text) <= CELL_LIMIT else text[: CELL_LIMIT - 1] + "…"


def text_of(parts: Iterable[Part]) -> str:
    """Tables as plain text, with an empty line between them."""
    return "\n\n".join("\n".join(_lines(part)) for part in parts)


def _lines(part: Part) -> list[str]:
    lines = [part.title] if part.title else []
    if part.rows:
        rows = [
            [name.lstrip(">") for name in part.head],
            *([cut_text(cell) for cell in row] for row in part.rows),
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(part.head))]
        for row in rows:
            cells = (
                cell.rjust(width) if name.startswith(">") else cell.ljust(width)
                for cell, width, name in zip(row, widths, part.head)
            )
            lines.append("  ".join(cells).rstrip())
    return [*lines, *part.remarks]


def html_of(parts: Iterable[Part]) -> str:
    """Tables as HTML without scripts. All texts are escaped."""
    return "".join(_html(part) for part in parts)


def _html(part: Part) -> str:
    title = f"<h4>{html.escape(part.title)}</h4>" if part.title else ""
    remarks = "".join(f"<p>{html.escape(remark)}</p>" for remark in part.remarks)
    if not part.rows:
        return title + remarks
    styles = ["text-align:right" if name.startswith(">") else "text-align:left" for name in part.head]
    head = "".join(
        f'<th style="{style}">{html.escape(name.lstrip(">"))}</th>' for name, style in zip(part.head, styles)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{style}">{html.escape(cut_text(cell))}</td>' for cell, style in zip(row, styles)
        )
        + "</tr>"
        for row in part.rows
    )
    return f"{title}<table style='color:inherit'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remarks}"
