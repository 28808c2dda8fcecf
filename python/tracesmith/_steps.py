"""The steps of a trace, each with the analyses of its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from tracesmith._analyses import Analyses, Selection
from tracesmith._reports import Items, StepDevice, StepRow, StepsReport
from tracesmith._reports._text import time

if TYPE_CHECKING:
    import pandas
    import polars

    from tracesmith import _native

__all__ = ["Step", "Steps"]


class Step(Analyses):
    """A step of the program's loop. Its methods analyze the time of this step.

    ```python
    step = trace.steps[4]
    step.duration_ns
    step.critical_path().totals[0]
    step.kernel_stats(by="short")
    ```
    """

    __slots__ = ("_of", "number", "row")

    def __init__(self, of: Analyses, number: int, row: StepRow) -> None:
        self._of = of
        self.number: int = number
        """Its number, from 0."""
        self.row: StepRow = row
        """All that is known about it."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    @property
    def start_ns(self) -> int:
        """Its start."""
        return self.row.start_ns

    @property
    def end_ns(self) -> int:
        """Its end."""
        return self.row.end_ns

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.row.duration_ns

    @property
    def is_warm_up(self) -> bool:
        """Whether the program still warmed up."""
        return self.row.is_warm_up

    @property
    def is_cut_off(self) -> bool:
        """Whether the trace does not show where it ends."""
        return self.row.is_cut_off

    @property
    def ops(self) -> int:
        """GPU operations that were launched in it."""
        return self.row.ops

    @property
    def devices(self) -> Items[StepDevice]:
        """What each GPU did during it."""
        return self.row.devices

    def _analysis(self, selection: Selection) -> _native.Analysis:
        if selection.get("step") is not None or selection.get("range") is not None:
            raise ValueError("a step is analyzed as a whole: use step= and range= of the trace")
        return self._of._analysis({**selection, "step": self.number})

    def __repr__(self) -> str:
        return f"Step({self.number}: {self.name}, {time(self.duration_ns)}, {self.ops:,} GPU operations)"


class Steps(Sequence[Step]):
    """The steps of the program's loop.

    ```python
    len(trace.steps), trace.steps[4].duration_ns
    trace.steps.to_polars()
    ```
    """

    def __init__(self, of: Analyses, report: StepsReport) -> None:
        self._of = of
        self.report = report
        """How the steps were found, and statistics of their durations."""

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Step]: ...
    def __getitem__(self, at: int | slice) -> Step | Sequence[Step]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        row = self.report.steps[at]
        return Step(self._of, at % len(self), row)

    def __len__(self) -> int:
        return len(self.report.steps)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The steps as dictionaries."""
        return self.report.steps.to_dicts()

    def to_polars(self) -> polars.DataFrame:
        """The steps as a polars DataFrame."""
        return self.report.steps.to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """The steps as a pandas DataFrame."""
        return self.report.steps.to_pandas()

    def __str__(self) -> str:
        return str(self.report)

    def __repr__(self) -> str:
        return f"Steps({len(self):,} from {self.report.source})"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()
