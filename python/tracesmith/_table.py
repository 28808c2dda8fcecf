"""Tables of a trace, for any DataFrame library.

A `Table` reads nothing until its rows are needed. It speaks Arrow's C stream interface, so polars,
pandas, pyarrow, DuckDB and others take it as it is, without a copy.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tracesmith import _native
from tracesmith._calls import native, progress

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from tracesmith._trace import Trace

__all__ = ["Column", "Rows", "Table", "Time", "several_of"]

Time = int | str | None
"""A time: nanoseconds of the trace's clock, or a text. `"1.5s"` and `"200ms"` are after the start of the trace, and `"25%"` is a
share of the whole trace, from its first moment to its last."""

Value = bool | int | float | str


class Column:
    """A column of a table: its `name`, `type`, `unit` and what it means (`doc`)."""

    __slots__ = ("doc", "name", "type", "unit")

    def __init__(self, name: str, type: str, unit: str | None, doc: str) -> None:
        self.name: str = name
        self.type: str = type
        self.unit: str | None = unit
        self.doc: str = doc

    def __repr__(self) -> str:
        unit = f", {self.unit}" if self.unit else ""
        return f"Column({self.name}: {self.type}{unit})"


class Rows:
    """Rows that were read: what `Trace.sql` returns.

    Any library that reads Arrow takes it: `polars.DataFrame(rows)`, `pyarrow.table(rows)`.
    """

    def __init__(self, rows: _native.Batches) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._rows.columns

    @property
    def nbytes(self) -> int:
        """The memory that the rows take."""
        return self._rows.nbytes

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, as Arrow's C stream interface has them."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema, as Arrow's C interface has it."""
        return self._rows.__arrow_c_schema__()

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars DataFrame. Numbers are not copied."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a pyarrow Table. Nothing is copied."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame. Texts become categories."""
        import pandas

        frames: Any = pandas.DataFrame  # its stubs do not have this yet
        frame: pandas.DataFrame = frames.from_arrow(self)
        return frame

    def to_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Each column as a numpy array.

        A column of integers with unknown values becomes a masked array. Texts become an array of objects.
        """
        import numpy

        arrays = {}
        for name in self.columns:
            kind, data, unknown = self._rows.column(name)
            if kind == "object":
                arrays[name] = numpy.array(data, dtype=object)
                continue
            array = numpy.frombuffer(data, dtype=kind)
            if unknown is not None:
                array = numpy.ma.masked_array(array, mask=numpy.frombuffer(unknown, dtype=bool))
            arrays[name] = array
        return arrays

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries. Needs no other library."""
        return self._rows.to_dicts()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def __repr__(self) -> str:
        return f"Rows({len(self):,} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        return _html(self.columns, self.to_dicts()[:SHOWN_ROWS], len(self))


class Table:
    """Rows of a trace that are read when they are needed.

    ```python
    trace.kernels.select("name", "duration").to_polars()
    trace.copies.between("1s", "2s").where(direction="host to device").to_dicts()
    ```

    `len(table)` is the number of rows. `for row in table` gives dictionaries.
    """

    def __init__(self, trace: Trace, table: _native.Table) -> None:
        self._trace = trace
        self._table = table

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._table.name

    @property
    def doc(self) -> str:
        """What a row is."""
        return self._table.doc

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, *_ in self._table.columns]

    @property
    def schema(self) -> dict[str, Column]:
        """The columns by name, with their types, units and descriptions."""
        return {name: Column(name, kind, unit, doc) for name, kind, unit, doc in self._table.columns}

    def select(self, *columns: str) -> Table:
        """The same table with these columns only. Others are not read."""
        with native():
            return Table(self._trace, self._table.select(list(columns)))

    def between(self, start: Time = None, end: Time = None) -> Table:
        """The rows that reach into a time range. Only their part of the file is read.

        Times are nanoseconds of the trace's clock, or texts. `"1.5s"` is after the start of the trace. `"25%"` is a quarter of
        the whole trace (`trace.span`), and not of the rows that were selected before.
        """
        return Table(self._trace, self._table.between(*self._trace._times(start, end)))

    def where(self, **conditions: Value | Iterable[Value]) -> Table:
        """The rows whose columns have these values.

        A value is a number, a text, or a list of them: `where(name="saxpy(float*)", stream=[7, 13])`. A text is compared
        as it is; `like` has patterns. Rows without a value are left out.
        """
        table = self._table
        with native():
            for column, value in conditions.items():
                several = several_of(value)
                if several is None:
                    table = table.filter(column, "is", value)
                else:
                    table = table.filter(column, "one_of", several)
        return Table(self._trace, table)

    def like(self, **patterns: str) -> Table:
        """The rows whose texts match these patterns.

        `*` stands for any characters and `?` for one: `like(name="flash*")`. Rows without a text are left out.
        """
        table = self._table
        with native():
            for column, pattern in patterns.items():
                table = table.filter(column, "like", pattern)
        return Table(self._trace, table)

    def head(self, n: int = 10) -> Rows:
        """The first `n` rows. Of a recorded table, the part of the file up to about them is read; a view is made of whole tables.

        ```python
        trace.kernels.select("name", "duration").head(3).to_dicts()
        ```
        """
        if n < 0:
            raise ValueError(f"n is a number of rows, not {n}")
        with native():
            return Rows(self._table.head(n))

    def read(self, columns: Iterable[str] | None = None, range: tuple[Time, Time] | None = None) -> Rows:
        """Reads the rows. All cores work on it, and other threads of Python go on."""
        table = self
        if isinstance(columns, str):
            columns = [columns]
        if columns is not None:
            table = table.select(*columns)
        if range is not None:
            table = table.between(*range)
        with native(), progress(f"reading {self.name}", self._trace.nbytes) as told:
            return Rows(table._table.read(told))

    def to_polars(
        self, columns: Iterable[str] | None = None, range: tuple[Time, Time] | None = None
    ) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        return self.read(columns, range).to_polars()

    def to_arrow(
        self, columns: Iterable[str] | None = None, range: tuple[Time, Time] | None = None
    ) -> pyarrow.Table:
        """The rows as a pyarrow Table, without a copy."""
        return self.read(columns, range).to_arrow()

    def to_pandas(
        self, columns: Iterable[str] | None = None, range: tuple[Time, Time] | None = None
    ) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return self.read(columns, range).to_pandas()

    def to_numpy(
        self, columns: Iterable[str] | None = None, range: tuple[Time, Time] | None = None
    ) -> dict[str, numpy.ndarray[Any, Any]]:
        """Each column as a numpy array, by name."""
        return self.read(columns, range).to_numpy()

    def to_dicts(
        self, columns: Iterable[str] | None = None, range: tuple[Time, Time] | None = None
    ) -> list[dict[str, Any]]:
        """The rows as dictionaries. Needs no other library."""
        return self.read(columns, range).to_dicts()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, as Arrow's C stream interface has them. Blocks of the file are read while they are consumed."""
        with native():
            return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema, as Arrow's C interface has it."""
        with native():
            return self._table.__arrow_c_schema__()

    def __len__(self) -> int:
        with native():
            return len(self._table)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.to_dicts())

    def __repr__(self) -> str:
        return f"Table({self.name}: {len(self):,} rows, {len(self.columns)} columns)"

    def _repr_html_(self) -> str:
        return _html(self.columns, self.head(SHOWN_ROWS).to_dicts(), len(self))


def several_of(value: Any) -> list[Any] | None:
    """The values of a list, an array or another collection. `None` for one value, also one of numpy."""
    if isinstance(value, str):
        return None
    try:
        values = iter(value)
    except TypeError:
        return None
    return list(values)


# What a notebook shows of a table.
SHOWN_ROWS = 10


def _html(columns: list[str], rows: list[dict[str, Any]], count: int) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    cells = (
        "".join(f"<td>{'' if row[name] is None else html.escape(str(row[name]))}</td>" for name in columns)
        for row in rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    more = f"<p>{len(rows):,} of {count:,} rows</p>" if count > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
