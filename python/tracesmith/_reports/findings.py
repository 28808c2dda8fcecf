"""Problems that rules found, with advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, html_of, offset, share, text_of, time

__all__ = ["Evidence", "Finding", "Findings"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where to look."""

    what: str
    """What is there."""
    table: str
    """The table."""
    row: int | None
    """The row in it, if it is one."""
    start_ns: int
    """Start."""
    offset_ns: int
    """The same, from the start of the trace."""
    end_ns: int
    """End."""
    cause_ns: int | None
    """How much of it has the cause that the finding is about. `None` if all of it has."""

    def __str__(self) -> str:
        row = "" if self.row is None else f", row {self.row} of {self.table}"
        length = time(self.end_ns - self.start_ns)
        share = length if self.cause_ns is None else f"{time(self.cause_ns)} of a gap of {length}"
        return f"{self.what} at {offset(self.offset_ns)}, {share}{row}"


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Report):
    """A problem, what may help, and how much a fix saves at most."""

    rule: str
    """The rule that found it, such as `host_busy` or `small_copies`."""
    sentence: str
    """What is wrong."""
    advice: str
    """What may help."""
    assumption: str
    """What must be true for the finding to be right."""
    saves_ns: int | None
    """The most time that a fix can save. Two findings can claim the same time."""
    saves_share: float | None
    """The same as a share of the analyzed time."""
    evidence: Items[Evidence]
    """Where to look."""

    def _parts(self) -> Iterator[Part]:
        yield self._part("")

    def _part(self, number: str) -> Part:
        saving = (
            ""
            if self.saves_ns is None
            else f"; a fix saves at most {time(self.saves_ns)} ({share(self.saves_share)})"
        )
        assumption = [f"   assumes that {self.assumption}"] if self.assumption else []
        evidence = [f"   {one}" for one in self.evidence]
        return Part(f"{number}{self.sentence}{saving}", remarks=[f"   {self.advice}", *assumption, *evidence])


class Findings(Items[Finding]):
    """The findings, what matters most first.

    ```python
    for finding in trace.findings():
        print(finding.sentence, finding.advice)
    ```
    """

    __slots__ = ()

    def _parts(self) -> Iterator[Part]:
        for number, finding in enumerate(self, 1):
            yield finding._part(f"{number}. ")
        if not self:
            yield Part("no findings")

    def __str__(self) -> str:
        return text_of(self._parts())

    def _repr_html_(self) -> str:
        return html_of(self._parts())
