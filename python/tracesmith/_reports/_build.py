"""Makes typed reports of the JSON that the native module answers with.

A report is a frozen dataclass with a field for each field of its JSON object. Lists of objects become
`Items`, which make an object when it is looked at: a trace can have millions of them.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, overload

from tracesmith._reports._text import Part, html_of, text_of

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Items", "Report", "build", "differences"]

T = TypeVar("T")
R = TypeVar("R")
Json = Mapping[str, Any]


class Items(Sequence[T]):
    """Rows of a report: a sequence of typed objects, and a DataFrame if wanted.

    ```python
    rows = trace.kernel_stats().rows
    rows[0].name, [row.total_ns for row in rows[:3]]
    rows.to_polars()
    ```
    """

    __slots__ = ("_json", "_of")

    def __init__(self, rows: Sequence[Json], of: Callable[[Json], T]) -> None:
        self._json = rows
        self._of = of

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Items[T]: ...
    def __getitem__(self, at: int | slice) -> T | Items[T]:
        if isinstance(at, slice):
            return type(self)(self._json[at], self._of)
        return self._of(self._json[at])

    def __len__(self) -> int:
        return len(self._json)

    def __iter__(self) -> Iterator[T]:
        return map(self._of, self._json)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and self._json == other._json

    def __hash__(self) -> int:
        return hash(len(self._json))

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, with the fields of their JSON."""
        return [dict(row) for row in self._json]

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars DataFrame. Objects in a row become structs."""
        import polars

        return polars.DataFrame(self.to_dicts(), infer_schema_length=None)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def __repr__(self) -> str:
        shown = ", ".join(repr(item) for item in self[:1])
        more = ", …" if len(self) > 1 else ""
        return f"[{shown}{more}] ({len(self):,} rows)" if len(self) else "[]"

    def _repr_html_(self) -> str:
        return html_of([_plain_part(self._json)])


def _plain_part(rows: Sequence[Json]) -> Part:
    """A table of the plain values of rows."""
    names = [name for name, value in (rows[0] if rows else {}).items() if not isinstance(value, (dict, list))]
    cells = [["" if row.get(name) is None else str(row.get(name)) for name in names] for row in rows[:10]]
    more = [f"{len(rows) - 10:,} more rows"] if len(rows) > 10 else []
    return Part("", tuple(names), cells, more)


class Report:
    """What every report can do: `print(report)` shows what the command prints, and a notebook shows tables."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _parts(self) -> Iterator[Part]:
        """What is shown of it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return text_of(self._parts())

    def _repr_html_(self) -> str:
        return html_of(self._parts())


def build(kind: type[R], json: Json) -> R:
    """A report of this type, from a JSON object."""
    return kind(**{name: make(json.get(key)) for name, key, make, _ in _fields(kind)})


def differences(kind: type[Any], json: Json, path: str = "") -> Iterator[str]:
    """The fields that a JSON object has and its type lacks, and the other way round, at any depth."""
    path = path or kind.__name__
    known = {key: (hint, field) for (_, key, _, hint), field in zip(_fields(kind), dataclasses.fields(kind))}
    yield from (f"{path}.{name} is not in the type" for name in json if name not in known)
    for name, (hint, field) in known.items():
        if name not in json:
            if field.default is dataclasses.MISSING:
                yield f"{path}.{name} is not in the JSON"
            continue
        value = json[name]
        if value is None:
            if not _is_optional(hint):
                yield f"{path}.{name} is null"
            continue
        hint = _without_none(hint)
        item = _item_of(hint)
        if item is not None:
            for row in value:
                yield from differences(item, row, f"{path}.{name}[]")
        elif dataclasses.is_dataclass(hint):
            yield from differences(typing.cast("type[Any]", hint), value, f"{path}.{name}")
        elif not _fits(value, hint):
            yield f"{path}.{name} is {value!r}, not {hint}"


class _Field(NamedTuple):
    """A field of a report."""

    name: str
    key: str
    """Its name in JSON."""
    make: Callable[[Any], Any]
    """Makes its value of the JSON value."""
    hint: Any
    """Its type."""


_FIELDS: dict[type[Any], list[_Field]] = {}


def _fields(kind: type[Any]) -> list[_Field]:
    known = _FIELDS.get(kind)
    if known is None:
        hints = typing.get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind)]
        # `class` is a keyword: the field is `class_`.
        known = [_Field(name, name.rstrip("_"), _maker(hints[name]), hints[name]) for name in names]
        _FIELDS[kind] = known
    return known


def _maker(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of this type of a JSON value."""
    hint = _without_none(hint)
    item = _item_of(hint)
    if item is not None:
        sequence: Any = typing.get_origin(hint) or hint
        return lambda value: None if value is None else sequence(value, functools.partial(build, item))
    if dataclasses.is_dataclass(hint):
        return lambda value: None if value is None else build(typing.cast("type[Any]", hint), value)
    if typing.get_origin(hint) is tuple:
        return lambda value: None if value is None else tuple(value)
    return _same


def _same(value: Any) -> Any:
    return value


def _item_of(hint: Any) -> Any:
    """The type of the items, if the type is `Items` or made of it."""
    origin = typing.get_origin(hint) or hint
    if not (isinstance(origin, type) and issubclass(origin, Items)):
        return None
    if typing.get_args(hint):
        return typing.get_args(hint)[0]
    # `class Findings(Items[Finding])` names its items in its base.
    return typing.get_args(vars(origin)["__orig_bases__"][0])[0]


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def _is_optional(hint: Any) -> bool:
    return _is_union(hint) and type(None) in typing.get_args(hint)


def _without_none(hint: Any) -> Any:
    if not _is_optional(hint):
        return hint
    rest = [part for part in typing.get_args(hint) if part is not type(None)]
    return rest[0] if len(rest) == 1 else hint


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is tuple:
        return isinstance(value, (list, tuple)) and all(
            _fits(part, typing.get_args(hint)[0]) for part in value
        )
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True
