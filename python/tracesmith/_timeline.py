"""Draws GPUs and streams over time: as text, and as SVG for notebooks.

The numbers are those of `tracesmith view --timeline`. A bar is as high as the share of its time in which work ran. The
picture has no scripts, and its colors follow those of the page, light or dark.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracesmith import _command
from tracesmith._errors import TraceError
from tracesmith._reports._text import share, time

__all__ = ["TimelinePicture", "TimelineRow", "timeline_from_command"]

#: The columns of the drawing as text.
TEXT_COLUMNS = 80

# Sizes of the picture, in pixels.
LABELS = 190
SHARES = 60
BARS = 700
ROW = 26
AXIS = 26

#: What fills a cell of a text drawing: an eighth of it and more.
BLOCKS = " ▁▂▃▄▅▆▇█"

# Colors that can be read on white and on black.
COLORS = {"device": "#3b82f6", "stream": "#14b8a6", "waits": "#a855f7", "marker": "#f59e0b"}
OTHER_COLOR = "#9ca3af"


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row of a timeline: a GPU, a stream, or a thread."""

    row: str
    """What it is: `device`, `stream`, `waits`, `marker`, `host` or `api`."""
    device: int | None
    """The driver's number of the GPU."""
    process: int | None
    """The `id` of the process."""
    pid: int | None
    """Its pid."""
    context: int | None
    """The context."""
    stream: int | None
    """The ID of the stream in its context."""
    thread: int | None
    """The thread's number in the operating system."""
    events: int
    """The number of events."""
    busy_ns: int
    """Time in which something ran. Work that overlaps counts once."""
    utilization: float
    """Its share of the range."""
    busy_ns_by_kind: dict[str, int]
    """The same by kind of event."""
    busy_ns_by_cell: tuple[int, ...]
    """The same for each cell of the range."""

    @property
    def label(self) -> str:
        """Its name in the picture."""
        if self.row == "device":
            return f"GPU {self.device}"
        if self.stream is not None:
            return f"  {'waits of ' if self.row == 'waits' else ''}stream {self.stream}"
        if self.thread is not None:
            return f"{self.row} thread {self.thread}"
        return self.row if self.pid is None else f"{self.row} pid {self.pid}"


@dataclass(frozen=True, slots=True)
class TimelinePicture:
    """GPUs and streams over time. `print(timeline)` draws it as text; a notebook shows it as a picture."""

    from_ns: int | None
    """Start of the range; `None` if it has no events."""
    to_ns: int | None
    """End of the range; `None` if it has no events."""
    cells: int
    """The number of cells of the range."""
    without_time: int
    """Events without a time, which are not shown."""
    without_end: int
    """Events without an end, which are shown as instants."""
    backwards: int
    """Events that end before they start, which are shown as instants."""
    has_more_rows: bool
    """Whether there are more streams and threads than rows."""
    rows: tuple[TimelineRow, ...]
    """The GPUs, streams and threads."""

    @property
    def span_ns(self) -> int:
        """Length of the range."""
        if self.from_ns is None or self.to_ns is None:
            return 0
        return self.to_ns - self.from_ns

    def __str__(self) -> str:
        if not self.rows:
            return "no events"
        width = max((len(row.label) for row in self.rows), default=0)
        lines = [
            f"{row.label:<{width}}  {_blocks(self._loads(row))}  {share(row.utilization):>7}"
            for row in self.rows
        ]
        ends = time(self.span_ns)
        axis = f"{'':<{width}}  0{ends:>{TEXT_COLUMNS - 1}}"
        return "\n".join([*lines, axis])

    def _loads(self, row: TimelineRow) -> list[float]:
        """How busy a row is in each cell, from 0 to 1."""
        cell = self.span_ns / max(self.cells, 1)
        return [min(busy / cell, 1.0) if cell else 0.0 for busy in row.busy_ns_by_cell]

    def _repr_svg_(self) -> str:
        height = AXIS + ROW * max(len(self.rows), 1) + 4
        width = LABELS + BARS + SHARES
        parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" role="img" aria-label="timeline" font-family="sans-serif" font-size="12" '
                'fill="currentColor" style="max-width:100%">'
            )
        ]
        parts += self._axis(height)
        for number, row in enumerate(self.rows):
            parts += self._bars(row, AXIS + number * ROW)
        return "".join([*parts, "</svg>"])

    def _repr_html_(self) -> str:
        return self._repr_svg_()

    def _axis(self, height: int) -> list[str]:
        parts = []
        for moment in _ticks(self.span_ns):
            x = LABELS + BARS * moment / max(self.span_ns, 1)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{AXIS - 6}" y2="{height}" stroke="currentColor" '
                f'stroke-opacity="0.15"/><text x="{x:.1f}" y="14" text-anchor="middle" '
                f'fill-opacity="0.7">{html.escape(_tick(moment))}</text>'
            )
        return parts

    def _bars(self, row: TimelineRow, top: int) -> list[str]:
        room = ROW - 6
        bottom = top + room
        cell = BARS / max(self.cells, 1)
        color = COLORS.get(row.row, OTHER_COLOR)
        path = []
        for at, load in enumerate(self._loads(row)):
            if load > 0:
                # Work that is short still shows.
                high = max(load * room, 1.0)
                path.append(f"M{LABELS + at * cell:.1f} {bottom}v-{high:.1f}h{cell:.2f}v{high:.1f}z")
        title = (
            f"{row.label.strip()}: {row.events:,} events, busy {time(row.busy_ns)} ({share(row.utilization)})"
        )
        label = html.escape(row.label)
        indent = 8 + 6 * (len(row.label) - len(row.label.lstrip()))
        return [
            f"<g><title>{html.escape(title)}</title>",
            f'<text x="{indent}" y="{bottom - 5}">{label.strip()}</text>',
            f'<rect x="{LABELS}" y="{top}" width="{BARS}" height="{room}" fill-opacity="0.05"/>',
            f'<path d="{"".join(path)}" fill="{color}" shape-rendering="crispEdges"/>' if path else "",
            f'<text x="{LABELS + BARS + SHARES - 4}" y="{bottom - 5}" text-anchor="end">',
            f"{html.escape(share(row.utilization))}</text></g>",
        ]


def timeline_from_command(file: Path, args: Sequence[str], cells: int) -> TimelinePicture:
    """The timeline of a file, from the command."""
    command = ["--quiet", "view", "--timeline", "--width", str(cells), *args, os.fspath(file)]
    answer: dict[str, Any] = _command.query(command, error=TraceError)
    rows = tuple(
        TimelineRow(**{**row, "busy_ns_by_cell": tuple(row["busy_ns_by_cell"])}) for row in answer.pop("rows")
    )
    return TimelinePicture(**answer, rows=rows)


def _blocks(loads: Sequence[float]) -> str:
    """Loads as blocks of text, the mean of those that share a column."""
    columns = min(TEXT_COLUMNS, max(len(loads), 1))
    text = ""
    for column in range(columns):
        part = loads[column * len(loads) // columns : (column + 1) * len(loads) // columns]
        load = sum(part) / len(part) if part else 0.0
        text += BLOCKS[math.ceil(load * (len(BLOCKS) - 1))]
    return text.ljust(TEXT_COLUMNS)


def _ticks(span: int) -> list[int]:
    """Round moments in a range, about six."""
    if span <= 0:
        return [0]
    rough = span / 6
    power = 10 ** math.floor(math.log10(rough))
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)
    return [round(number * step) for number in range(int(span / step) + 1)]


def _tick(moment: int) -> str:
    for limit, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if moment >= limit:
            return f"{moment / limit:g} {unit}"
    return f"{moment:g} ns" if moment else "0"
