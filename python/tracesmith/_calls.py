"""Calls of the native module: its errors as exceptions of the package, and progress bars."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from tracesmith import _native
from tracesmith._errors import TraceError

__all__ = ["native", "progress"]

Progress = Callable[[int], None] | None

# Reading so much takes about a tenth of a second. A bar for less would only flicker.
SHOWN_FROM_BYTES = 32 << 20


@contextlib.contextmanager
def native() -> Iterator[None]:
    """Raises errors of the native module as exceptions of the package."""
    try:
        yield
    except _native.UsageError as error:
        raise ValueError(str(error)) from None
    except _native.NativeError as error:
        raise TraceError(str(error)) from None


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Progress]:
    """A progress bar over bytes, if a library for bars is installed and somebody watches."""
    bar = _bar(what, total) if total >= SHOWN_FROM_BYTES else None
    if bar is None:
        yield None
        return
    with bar as update:
        yield update


def _bar(what: str, total: int) -> contextlib.AbstractContextManager[Callable[[int], None]] | None:
    if _is_notebook():
        return _tqdm_bar(what, total)
    if sys.stderr is not None and sys.stderr.isatty():
        return _rich_bar(what, total) or _tqdm_bar(what, total)
    return None


def _is_notebook() -> bool:
    # Nothing is imported for this: in a notebook, IPython is loaded already.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _rich_bar(what: str, total: int) -> contextlib.AbstractContextManager[Callable[[int], None]] | None:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
    except ImportError:
        return None

    @contextlib.contextmanager
    def bar() -> Iterator[Callable[[int], None]]:
        columns: tuple[Any, ...] = (TextColumn(what), BarColumn(), DownloadColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task(what, total=total)
            yield lambda done: shown.update(task, completed=min(done, total))

    return bar()


def _tqdm_bar(what: str, total: int) -> contextlib.AbstractContextManager[Callable[[int], None]] | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None

    @contextlib.contextmanager
    def bar() -> Iterator[Callable[[int], None]]:
        with tqdm(total=total, desc=what, unit="B", unit_scale=True, leave=False) as shown:

            def update(done: int) -> None:
                shown.update(min(done, total) - shown.n)

            yield update

    return bar()
