"""The magic of notebooks: `%load_ext tracesmith`, then `%%tracesmith` at the top of a cell."""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib import import_module
from typing import Any, NoReturn

from tracesmith._calls import _is_notebook
from tracesmith._errors import TracesmithError
from tracesmith._profile import profile

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_MAGIC = "tracesmith"

_STACKS = {"all": True, "none": False, "python": "python", "native": "native"}


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext tracesmith` calls."""

    def tracesmith(line: str, cell: str) -> None:
        _record(shell, line, cell)

    tracesmith.__doc__ = _parser().format_help()
    shell.register_magic_function(tracesmith, magic_kind="cell", magic_name=_MAGIC)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext tracesmith` calls."""
    shell.magics_manager.magics["cell"].pop(_MAGIC, None)


class _Usage(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Usage(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _Usage(message or "")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%tracesmith", description="Records the GPU work of the cell.")
    parser.add_argument("-o", metavar="FILE", help="keep the trace in this file; an old one is replaced")
    parser.add_argument("--level", choices=["light", "standard", "full"], default="standard", help="how much")
    parser.add_argument("--stacks", choices=list(_STACKS), help="the frames of stacks")
    parser.add_argument("--ops", action="store_true", help="PyTorch operators as ranges")
    parser.add_argument("--modules", action="store_true", help="PyTorch modules as ranges")
    return parser


def _record(shell: Any, line: str, cell: str) -> None:
    """Runs a cell, and shows its trace. `_trace` is the trace of the latest one."""
    try:
        options = _parser().parse_args(shlex.split(line))
    except (_Usage, ValueError) as error:
        if str(error):
            print(f"error: {error}", file=sys.stderr)
        return
    recording = profile(
        options.o,
        level=options.level,
        stacks=None if options.stacks is None else _STACKS[options.stacks],  # type: ignore[arg-type]
        ops=options.ops,
        modules=options.modules,
        overwrite=options.o is not None,
    )
    try:
        recording.start()
    except TracesmithError as error:
        print(f"error: the cell was not run: {error}", file=sys.stderr)
        return
    try:
        # Shows the cell's value, or its error with the cell's own lines.
        shell.run_cell(cell)
    finally:
        try:
            recording.stop()
        except TracesmithError as error:
            print(f"error: {error}", file=sys.stderr)
            return
    try:
        _show(shell, recording)
    except TracesmithError as error:
        print(f"error: {error}", file=sys.stderr)


def _show(shell: Any, recording: profile) -> None:
    if recording.is_nested:
        return
    trace = recording.trace
    shell.user_ns["_trace"] = trace
    rows = recording.report.rows
    if not rows.kernels and not rows.copies and not rows.graph_launches:
        print("The cell launched no GPU work.")
        return
    # In a notebook, this is the timeline and the findings.
    import_module("IPython.display").display(trace)
    if not _is_notebook():
        print(trace.timeline(), trace.findings(), sep="\n\n")
    if recording.lost:
        print(f"{recording.lost} records are missing.")
