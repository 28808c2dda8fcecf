"""What is different between two traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, change, size, time
from tracesmith._reports.idle import CAUSES
from tracesmith._reports.quality import DataQuality

__all__ = ["Comparison", "CopyDiff", "DiffReport", "IdleDiff", "KernelDiff", "MemoryDiff", "RunDiff"]

#: Kernels that a text shows.
SHOWN_KERNELS = 20


@dataclass(frozen=True, slots=True)
class Comparison:
    """A time in both traces."""

    a_ns: float
    """In the first trace."""
    b_ns: float
    """In the second trace."""
    change_ns: float
    """The second minus the first."""
    change: float | None
    """The same relative to the first; `None` if that is 0."""
    p: float | None
    """The probability that chance alone causes such a difference; `None` with fewer than two values."""
    p_adjusted: float | None
    """`p`, corrected for the number of rows."""
    is_in_every_step: bool
    """Whether every step of one trace took longer than any step of the other."""
    is_significant: bool
    """Whether the change is certain: `p_adjusted` < 0.01, or `p` is unknown and the value changed."""

    def _cells(self) -> tuple[str, str, str, str]:
        doubt = (
            ""
            if self.is_significant or self.p_adjusted is None
            else f"not certain (p = {self.p_adjusted:.2g})"
        )
        return (time(self.a_ns), time(self.b_ns), change(self.change_ns, self.change), doubt)


@dataclass(frozen=True, slots=True)
class RunDiff:
    """A difference between the runs: GPU, driver, command and others."""

    what: str
    """What it is."""
    a: str
    """In the first run; empty if unknown."""
    b: str
    """In the second run."""


@dataclass(frozen=True, slots=True)
class IdleDiff(Comparison):
    """Idle time with one cause."""

    cause: str
    """The cause."""


@dataclass(frozen=True, slots=True)
class MemoryDiff:
    """The most device memory of a process at once."""

    process: str
    """The process: its rank, or its number."""
    allocator: str
    """The allocator; empty for the driver."""
    a_bytes: int | None
    """In the first trace; `None` if it has no such process."""
    b_bytes: int | None
    """In the second trace."""


@dataclass(frozen=True, slots=True)
class CopyDiff(Comparison):
    """Memcpys of one direction, or memsets."""

    direction: str
    """The direction; `set` for memsets."""
    count_a: float
    """How many in the first trace, per step or in all."""
    count_b: float
    """In the second trace."""
    a_bytes: float
    """Bytes in the first trace, per step or in all."""
    b_bytes: float
    """In the second trace."""


@dataclass(frozen=True, slots=True)
class KernelDiff(Comparison):
    """The launches of one kernel."""

    name: str
    """Its name."""
    renamed_to: str | None
    """Its name in the second trace, if that is another one."""
    fate: str
    """`kept`, `renamed`, `new` or `gone`."""
    count_a: float
    """Launches in the first trace, per step or in all."""
    count_b: float
    """In the second trace."""


@dataclass(frozen=True, slots=True, repr=False)
class DiffReport(Report):
    """What `diff` returns: what changed from the first trace to the second, and how certain that is."""

    runs: Items[RunDiff]
    """What differs between the runs."""
    unit: str
    """What times are of: a `step` (mean), or the whole `trace`."""
    steps_a: int
    """Steps of the first trace that are compared."""
    steps_b: int
    """Steps of the second trace."""
    has_enough_steps: bool
    """Whether there are enough steps for a change to be certain, such as five on each side."""
    time: Comparison
    """Duration of a step, or of the traces."""
    busy: Comparison
    """Busy time of the busiest GPU."""
    idle: Items[IdleDiff]
    """Idle time by cause."""
    memory: Items[MemoryDiff]
    """The most device memory, by process and allocator."""
    copies: Items[CopyDiff]
    """Memcpys and memsets by direction."""
    by: str
    """How kernels are matched: by `name` or `short` name."""
    kernels: Items[KernelDiff]
    """The kernels, the largest change first."""
    doubts_a: DataQuality
    """How certain the numbers of the first trace are."""
    doubts_b: DataQuality
    """How certain the numbers of the second trace are."""
    is_over: bool | None = None
    """Whether `time` grew by more than `fail_over`, for certain. `None` without `fail_over`."""

    @property
    def significant(self) -> list[KernelDiff]:
        """The kernels whose time changed for certain, the largest change first."""
        return [kernel for kernel in self.kernels if kernel.is_significant and kernel.change_ns]

    @property
    def is_significant(self) -> bool:
        """Whether the time changed for certain."""
        return self.time.is_significant

    def _parts(self) -> Iterator[Part]:
        if self.runs:
            yield Part("Runs", ("", "before", "after"), [(one.what, one.a, one.b) for one in self.runs])
        what = (
            f"Times per step, mean of {self.steps_a} and {self.steps_b} steps"
            if self.unit == "step"
            else "Times of the whole traces"
        )
        columns = (">before", ">after", ">change", "")
        yield Part(what, ("", *columns), [("time", *self.time._cells()), ("GPU busy", *self.busy._cells())])
        if self.idle:
            rows = [(*row._cells(), CAUSES.get(row.cause, row.cause)) for row in self.idle]
            yield Part("GPU idle time by cause", (*columns, "cause"), rows)
        if self.memory:
            most = [
                (one.process, one.allocator, _size(one.a_bytes), _size(one.b_bytes)) for one in self.memory
            ]
            yield Part("Most device memory", ("process", "allocator", ">before", ">after"), most)
        if self.copies:
            moved = [(*row._cells(), _change(row.count_a, row.count_b), row.direction) for row in self.copies]
            yield Part("Copies", (*columns, ">count", "direction"), moved)
        shown = self.kernels[:SHOWN_KERNELS]
        more = len(self.kernels) - len(shown)
        yield Part(
            "Kernels",
            (*columns, ">launches", "", "name"),
            [
                (
                    *row._cells(),
                    _change(row.count_a, row.count_b),
                    "" if row.fate == "kept" else row.fate,
                    row.name,
                )
                for row in shown
            ],
            [f"{more:,} more kernels"] if more > 0 else [],
        )


def _size(amount: int | None) -> str:
    return "" if amount is None else size(amount)


def _change(before: float, after: float) -> str:
    """How many before and after, or once if that is the same."""
    return f"{before:g}" if before == after else f"{before:g} → {after:g}"
