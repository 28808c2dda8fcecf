"""What keeps results from being certain, and what was lost of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, count, size, time

__all__ = ["DamagedPart", "DataQuality", "Health", "HealthEntry"]


@dataclass(frozen=True, slots=True, repr=False)
class DataQuality(Report):
    """Missing and contradictory data: how certain a result is."""

    without_time: int
    """GPU operations without a start or an end. All numbers leave them out."""
    backwards: int
    """GPU operations that end before they start. They count with a duration of 0."""
    calls_without_time: int
    """API calls without usable times."""
    without_call: int
    """GPU operations whose launch is not in the trace."""
    before_its_call: int
    """GPU operations that start before their launch: the clocks of CPU and GPU disagree."""
    before_its_call_by: int
    """By how much at most, in nanoseconds."""
    lost_records: int
    """Records that were lost while recording."""
    truncated: int
    """Places at which an imported or repaired file was truncated."""
    damaged_blocks: int
    """Parts of the file that cannot be read."""
    unlinked_clocks: int
    """Clocks that cannot be aligned with the others. Their times are used unchanged."""
    uncertainty: int
    """The largest possible error between GPU times of different clocks, in nanoseconds."""

    @property
    def warnings(self) -> list[str]:
        """What is in doubt, in sentences."""
        counted = (
            (self.without_time, "operations have no start or no end; they are left out"),
            (self.backwards, "operations end before they start; their duration counts as 0"),
            (self.calls_without_time, "calls have no usable times"),
            (self.without_call, "operations have no launch in the trace"),
            (
                self.before_its_call,
                f"operations start up to {time(self.before_its_call_by)} before their launch",
            ),
            (self.lost_records, "records were lost while recording"),
            (self.truncated, "files were truncated"),
            (self.damaged_blocks, "blocks of the file cannot be read"),
            (self.unlinked_clocks, "clocks cannot be aligned with the others"),
        )
        lines = [f"{amount:,} {words}" for amount, words in counted if amount]
        if self.uncertainty:
            lines.append(f"times of different clocks can be off by {time(self.uncertainty)}")
        return lines

    def _parts(self) -> Iterator[Part]:
        yield Part("Data quality", remarks=self.warnings or ["nothing is missing"])


@dataclass(frozen=True, slots=True)
class HealthEntry:
    """One cause of loss or doubt that the recorder noted."""

    cause: str
    """What happened: `ring full`, `vendor dropped`, `process died`, …"""
    table: str | None
    """The table that it concerns, if it is one."""
    count: int
    """The number of records."""
    bytes: int
    """The number of bytes."""
    detail: str
    """More about it, in words."""

    def __str__(self) -> str:
        table = f" ({self.table})" if self.table else ""
        records = f": {count(self.count, 'record', 'records')}" if self.count else ""
        volume = f", {size(self.bytes)}" if self.bytes else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.cause}{table}{records}{volume}{detail}"


@dataclass(frozen=True, slots=True)
class DamagedPart:
    """A part of the file that cannot be read."""

    offset_bytes: int
    """Where it starts in the file."""
    length_bytes: int
    """Its length."""
    rows: int
    """The rows that it had, if its header can be read."""
    kind: str | None
    """The table that it belongs to, if its header can be read."""
    sequence: int | None
    """Its number among all blocks."""
    problem: str
    """What is wrong with it."""

    def __str__(self) -> str:
        where = "the file" if self.sequence is None else f"block {self.sequence}"
        kind = f" ({self.kind})" if self.kind else ""
        rows = f", {self.rows} rows" if self.rows else ""
        extent = f" ({self.length_bytes} bytes{rows})" if self.length_bytes else ""
        return f"{where}{kind} at byte {self.offset_bytes}: {self.problem}{extent}"


@dataclass(frozen=True, slots=True, repr=False)
class Health(Report):
    """Whether a trace is whole: what was lost while recording, and what cannot be read of the file.

    ```python
    if not trace.health.is_good:
        print(trace.health)
    ```
    """

    good: bool
    """The same as `is_good`, as JSON names it."""
    checked: bool
    """Whether the whole file was read: see `Trace.verify`."""
    recorded: Items[HealthEntry]
    """What the recorder noted."""
    damage: Items[DamagedPart]
    """What cannot be read of the file."""
    mended_strings: int
    """Texts that were not UTF-8 and were corrected."""
    unlinked_clocks: tuple[str, ...]
    """Clocks whose times cannot be aligned with the others."""

    @property
    def is_good(self) -> bool:
        """Whether no loss is known. Damage of the file is known once it was read: see `Trace.verify`."""
        return self.good

    @property
    def problems(self) -> list[str]:
        """What was lost or is in doubt, one sentence each, as `tracesmith info` prints them."""
        lines = [str(part) for part in self.damage]
        lines += [str(entry) for entry in self.recorded]
        if self.mended_strings:
            lines.append(f"{count(self.mended_strings, 'string is', 'strings are')} not UTF-8")
        for clock in self.unlinked_clocks:
            lines.append(f"times of {clock} cannot be aligned with the others: no clock pairs link them")
        return lines

    def _parts(self) -> Iterator[Part]:
        state = "incomplete" if not self.good else "good" if self.checked else "no known loss"
        yield Part(f"health: {state}", remarks=self.problems)
