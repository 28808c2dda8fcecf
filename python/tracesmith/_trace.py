"""An open trace."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from tracesmith import _native
from tracesmith._analyses import Analyses, Selection
from tracesmith._calls import native, progress
from tracesmith._files import Files
from tracesmith._table import Rows, Table, Time, several_of
from tracesmith._tables import Tables

if TYPE_CHECKING:
    from tracesmith._devices import DeviceInfo
    from tracesmith._reports import Health
    from tracesmith._steps import Steps

__all__ = ["Trace", "open"]

#: Analyses of parts of a trace that are kept.
KEPT_ANALYSES = 4

PathLike = Union[str, "os.PathLike[str]"]

SqlValue = None | bool | int | float | str | bytes
"""A value of a query's parameter."""


def open(path: PathLike | Sequence[PathLike]) -> Trace:
    """Opens a trace: `.sbt`, or a file of any tool that TraceSmith reads.

    The content decides: files of Nsight Systems, torch.profiler, Perfetto, rocprof, xctrace and others are converted in
    memory. Several files become one trace, such as the ranks of a job.

    ```python
    trace = tracesmith.open("train.sbt")
    job = tracesmith.open(["rank0.sbt", "rank1.sbt"])
    ```
    """
    # The program may change its folder before the file is read again.
    if isinstance(path, (str, os.PathLike)):
        with native():
            return Trace(_native.Trace.open(os.fspath(path)), [Path(path).absolute()])
    paths = [Path(part).absolute() for part in path]
    with native():
        if len(paths) == 1:
            return Trace(_native.Trace.open(os.fspath(paths[0])), paths)
        return Trace(_native.Trace.open_merged([os.fspath(part) for part in paths]), paths)


class Trace(Tables, Analyses, Files):
    """An open trace. Nothing of it is read until it is needed.

    Each table is an attribute: `trace.kernels`, `trace.copies`, `trace.markers`. `Trace.tables`
    lists them.

    A trace can be pickled if it was opened from files: the paths are stored, and the files are opened again.
    """

    def __init__(self, trace: _native.Trace, paths: Sequence[Path]) -> None:
        self._native = trace
        self._paths = tuple(paths)
        self._content: bytes | None = None
        self._database: _native.Database | None = None
        self._prepared: dict[str, _native.Analysis] = {}
        self._lock = threading.Lock()
        self._steps: Steps | None = None

    @classmethod
    def from_bytes(cls, content: bytes) -> Trace:
        """Opens a file that is in memory."""
        with native():
            trace = cls(_native.Trace.from_bytes(content), ())
        # The command needs a file: see `Files._file`.
        trace._content = content
        return trace

    @property
    def path(self) -> Path | None:
        """The file, as an absolute path; `None` if the trace was made of several files or of bytes."""
        return self._paths[0] if len(self._paths) == 1 else None

    @property
    def nbytes(self) -> int:
        """The size of the file, or of what another tool's file was converted to."""
        return self._native.nbytes

    @property
    def span(self) -> tuple[int, int] | None:
        """The first and last moment, in nanoseconds of the trace's clock. `None` for a trace without events."""
        return self._native.span

    @property
    def duration_ns(self) -> int:
        """The time from the first to the last moment."""
        return self.span[1] - self.span[0] if self.span else 0

    @property
    def metadata(self) -> dict[str, str]:
        """What the recorder noted: `command`, `created`, `recorder`, environment variables and more."""
        return {row["key"]: row["value"] for row in self.table("metadata").to_dicts()}

    @property
    def tables(self) -> list[str]:
        """The names of all tables and views."""
        return [name for name, *_ in _native.catalog()]

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows of each table that has some."""
        return self._native.rows

    @property
    def devices(self) -> list[DeviceInfo]:
        """The GPUs.

        ```python
        [(gpu.name, gpu.capability, gpu.memory) for gpu in trace.devices]
        ```
        """
        from tracesmith._devices import device_from_row

        return [device_from_row(row) for row in self.table("devices").to_dicts()]

    @property
    def health(self) -> Health:
        """Whether the trace is whole: what was lost while recording, and what cannot be read.

        A damaged part of the file is in it once that part was read. `verify` reads all.

        ```python
        trace.health.is_good, trace.health.problems
        ```
        """
        from tracesmith._reports import Health, build

        return build(Health, self._health())

    def verify(self) -> Health:
        """Reads the whole file and checks it. Returns the health, which then has all damage.

        ```python
        assert trace.verify().is_good
        ```
        """
        with native(), progress("checking", self.nbytes) as told:
            self._native.verify(told)
        return self.health

    @property
    def steps(self) -> Steps:
        """The steps of the program's loop. They are found when they are first needed.

        ```python
        len(trace.steps), trace.steps[4].duration_ns
        trace.steps[4].critical_path().totals[0]
        trace.steps.to_polars()
        ```
        """
        if self._steps is None:
            from tracesmith._reports import StepsReport
            from tracesmith._steps import Steps

            self._steps = Steps(self, self._report(StepsReport, "steps", {}))
        return self._steps

    def table(self, name: str) -> Table:
        """The table or view of this name."""
        with native():
            return Table(self, self._native.table(name))

    def sql(
        self,
        query: str,
        params: Sequence[SqlValue] | Mapping[str, SqlValue] | None = None,
        *,
        timeout: float | None = None,
    ) -> Rows:
        """The rows of a SQL query over the tables of the trace, as `tracesmith sql` answers it.

        ```python
        trace.sql("select name, sum(duration) as ns from kernels group by name order by ns desc limit 10").to_polars()
        ```

        `params` are values for the parameters of the query, so that they need no quotes: a list for `?`, or a dictionary
        for `:name`.

        ```python
        trace.sql("select * from kernels where name = ? and duration > ?", ["saxpy", 1000])
        trace.sql("select count(*) from kernels where stream = :stream", {"stream": 7})
        ```

        SQL has integers of 64 bits with a sign. Numbers from 2**63 on wrap around, in tables and in `params`: they are equal
        to themselves, and less than 0.

        `timeout` is in seconds. Queries cannot change anything.
        """
        if isinstance(params, (str, bytes)):
            raise TypeError(f"params is a list or a dictionary of values, not {type(params).__name__}")
        values = dict(params) if isinstance(params, Mapping) else None if params is None else list(params)
        with native():
            if self._database is None:
                self._database = _native.Database([("trace", self._native)])
            return Rows(self._database.query(query, values, timeout))

    def _times(self, start: Time, end: Time) -> tuple[int | None, int | None]:
        """Two times as users write them, in nanoseconds of the trace's clock."""
        with native():
            return self._native.time_range(_text(start), _text(end))

    def _analysis(self, selection: Selection) -> _native.Analysis:
        unknown = sorted(set(selection) - set(Selection.__annotations__))
        if unknown:
            raise TypeError(f"unknown selection: {', '.join(unknown)}")
        key = repr(sorted((name, value) for name, value in selection.items() if value is not None))
        prepared = self._prepared.get(key)
        if prepared is None:
            with native():
                prepared = self._prepare(selection)
            # An analysis keeps what it computed. A few are kept, so that asking again costs nothing.
            with self._lock:
                while len(self._prepared) >= KEPT_ANALYSES:
                    self._prepared.pop(next(iter(self._prepared)))
                self._prepared[key] = prepared
        return prepared

    def _prepare(self, selection: Selection) -> _native.Analysis:
        step, range = selection.get("step"), selection.get("range")
        if step is not None and range is not None:
            raise ValueError("choose a step or a range, not both")
        if step is not None and step < 0:
            raise ValueError(f"steps are counted from 0, not {step}")
        start, end = self._times(*range) if range is not None else (None, None)
        return _native.Analysis(
            self._native,
            step=step,
            start=start,
            end=end,
            processes=[str(value) for value in _list(selection.get("process"))],
            ranks=_list(selection.get("rank")),
            devices=[str(value) for value in _list(selection.get("device"))],
            streams=_list(selection.get("stream")),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the paths. A trace that has none cannot be pickled."""
        if not self._paths:
            raise TypeError("a trace in memory cannot be pickled: write its bytes to a file, and open that")
        paths = [os.fspath(path) for path in self._paths]
        return open, (paths[0] if len(paths) == 1 else paths,)

    def _repr_html_(self) -> str:
        from tracesmith._preview import preview

        return preview(self)

    def _health(self) -> dict[str, Any]:
        health: dict[str, Any] = json.loads(self._native.health())
        return health

    def __repr__(self) -> str:
        names = ", ".join(path.name for path in self._paths[:3]) or "from memory"
        more = f" and {len(self._paths) - 3} more" if len(self._paths) > 3 else ""
        kernels = self.rows.get("kernels", 0)
        health = self._health()
        # Blocks that were not read yet may be damaged.
        known = "good" if health["checked"] else "no known loss"
        state = known if health["good"] else "data was lost, see .health"
        return f"Trace({names}{more}: {kernels:,} kernels, {self.duration_ns / 1e9:.3f} s, {state})"


def _list(value: Any) -> list[Any]:
    """One value or several, as a list."""
    if value is None:
        return []
    several = several_of(value)
    return [value] if several is None else several


def _text(time: Time) -> str | None:
    if time is None or isinstance(time, str):
        return time
    return f"@{time}"
