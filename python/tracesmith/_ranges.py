"""Ranges and marks of the program's own, by NVTX.

They are in our traces, and in those of other tools that read NVTX, such as Nsight Systems. While no tool is there, a range
costs less than a microsecond.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar, overload

from tracesmith import _native
from tracesmith._native import Range

__all__ = ["Range", "mark", "range"]

Function = TypeVar("Function", bound=Callable[..., Any])

_COLORS = {
    "black": 0x000000,
    "blue": 0x1F77B4,
    "brown": 0x8C564B,
    "cyan": 0x17BECF,
    "gray": 0x7F7F7F,
    "green": 0x2CA02C,
    "orange": 0xFF7F0E,
    "pink": 0xE377C2,
    "purple": 0x9467BD,
    "red": 0xD62728,
    "white": 0xFFFFFF,
    "yellow": 0xFFDD00,
}


@overload
def range(name: str, payload: float | None = None, color: int | str | None = None) -> Range: ...
@overload
def range(name: Function) -> Function: ...
def range(
    name: str | Callable[..., Any], payload: float | None = None, color: int | str | None = None
) -> Range | Callable[..., Any]:
    """A named span of time, for the timeline of our traces and of Nsight Systems.

    `payload` is a number that is shown with it, such as the size of a batch. `color` is a name, `"#rrggbb"`, or a number
    0xAARRGGBB. As a decorator it spans each call; without a name it has the function's.

    >>> import tracesmith as ts
    >>> with ts.range("forward", payload=32, color="green"):
    ...     pass
    >>> @ts.range
    ... def step():
    ...     return 1
    >>> step()
    1
    """
    if callable(name):
        return _decorated(name, Range(getattr(name, "__qualname__", repr(name))))
    return Range(name, payload, _argb(color) if isinstance(color, str) else color)


def mark(name: str, payload: float | None = None, color: int | str | None = None) -> None:
    """A named moment.

    >>> import tracesmith as ts
    >>> ts.mark("epoch", payload=3)
    """
    _native.mark(name, payload, _argb(color) if isinstance(color, str) else color)


@functools.lru_cache(maxsize=256)
def _argb(color: str) -> int:
    """The number of a colour.

    >>> hex(_argb("#ff8000"))
    '0xffff8000'
    """
    if color in _COLORS:
        return 0xFF000000 | _COLORS[color]
    if len(color) == 7 and color.startswith("#"):
        try:
            return 0xFF000000 | int(color[1:], 16)
        except ValueError:
            pass
    raise ValueError(f"no color {color!r}; use '#rrggbb', or one of {', '.join(_COLORS)}")


def _decorated(function: Callable[..., Any], span: Range) -> Callable[..., Any]:
    """The function within the range.

    Threads nest ranges, and a coroutine or a generator leaves its thread in between. So these two get ranges that do not
    nest.
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wait(*args: Any, **kwargs: Any) -> Any:
            number = span.start()
            try:
                return await function(*args, **kwargs)
            finally:
                _native.range_end(number)

        return wait
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            number = span.start()
            try:
                return (yield from function(*args, **kwargs))
            finally:
                _native.range_end(number)

        return generate

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with span:
            return function(*args, **kwargs)

    return call
