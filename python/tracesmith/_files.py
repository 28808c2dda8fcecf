"""What the command does with a trace file: exports, flame graphs, reports, parts of it, and its events.

These run the command. A trace that was made of several files or of bytes is written to a temporary file first.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Union

from tracesmith._errors import TraceError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tracesmith._analyses import Selection
    from tracesmith._recorded import Event, EventKind, Order
    from tracesmith._reports import Items
    from tracesmith._table import Time
    from tracesmith._timeline import TimelinePicture
    from tracesmith._trace import PathLike

__all__ = ["Files", "merge"]

#: What an option of an export can be.
Option = Union[str, int, float, bool, "os.PathLike[str]"]


class Files:
    """What a trace can be written to."""

    _paths: tuple[Path, ...]
    _content: bytes | None

    @contextlib.contextmanager
    def _file(self) -> Iterator[Path]:
        """A file with the trace."""
        if len(self._paths) == 1:
            yield self._paths[0]
            return
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tracesmith-") as folder:
            file = Path(folder) / "trace.sbt"
            if self._content is not None:
                file.write_bytes(self._content)
            else:
                merge(self._paths, file)
            yield file

    def export(
        self,
        path: PathLike,
        *,
        format: str | None = None,
        overwrite: bool = True,
        range: tuple[Time, Time] | None = None,
        **options: Option,
    ) -> Path:
        """Converts the trace to another tool's format. The name's ending decides, or `format`.

        Options are those of `tracesmith export`: `table="kernels"`, `weight="launches"`, `single_file=True`. An export
        with one file for each process returns the folder.

        ```python
        trace.export("train.pftrace")
        trace.export("train.json", range=("0%", "25%"))
        trace.export("kernels.parquet", table="kernels")
        ```
        """
        args = ["-o", os.fspath(path)]
        if format is not None:
            args += ["--as", format]
        self._write("export", args, overwrite, range, options)
        return Path(path)

    def flame(
        self,
        path: PathLike,
        *,
        by: Literal["gpu-time", "launches", "allocated-bytes", "samples"] = "gpu-time",
        overwrite: bool = True,
        range: tuple[Time, Time] | None = None,
        **options: Option,
    ) -> Path:
        """Draws a flame graph of the code that launched GPU work.

        ```python
        trace.flame("flame.svg")
        ```
        """
        self._write("flame", ["-o", os.fspath(path), "--by", by], overwrite, range, options)
        return Path(path)

    def report(
        self,
        path: PathLike,
        *,
        title: str | None = None,
        overwrite: bool = True,
        range: tuple[Time, Time] | None = None,
        **options: Option,
    ) -> Path:
        """Writes a report as one HTML page: timeline, utilization, kernels, memory, findings.

        ```python
        trace.report("train.html")
        ```
        """
        args = ["-o", os.fspath(path), *(["--title", title] if title is not None else [])]
        self._write("report", args, overwrite, range, options)
        return Path(path)

    def cut(
        self, start: Time, end: Time, path: PathLike, *, overwrite: bool = True, **options: Option
    ) -> Path:
        """Copies a time range into a new trace. Options are `process`, `rank`, `device` and `stream`.

        ```python
        part = tracesmith.open(trace.cut("25%", "75%", "part.sbt"))
        ```
        """
        self._write("cut", ["-o", os.fspath(path)], overwrite, (start, end), options)
        return Path(path)

    def events(
        self,
        kind: EventKind | Iterable[EventKind] | None = None,
        *,
        name: str | None = None,
        limit: int | None = None,
        stacks: bool = False,
        sort: Order = "start",
        **selection: Unpack[Selection],
    ) -> Items[Event]:
        """Events as typed objects, with their stacks if wanted.

        `name` is a part of the name, a glob, or a regular expression between slashes. Tables are faster for many events.

        ```python
        for event in trace.events("kernel", name="triton*", limit=3, stacks=True):
            print(event.name, event.duration_ns, event.stack[0] if event.stack else "")
        ```
        """
        from tracesmith._recorded import events_from_json, view_args

        args = [*view_args(kind, name, limit, sort), *_selected(selection)]
        if stacks:
            args.append("--stacks")
        with self._file() as file:
            return events_from_json(json.loads(_run("--format", "json", "view", os.fspath(file), *args)))

    def timeline(
        self,
        *,
        kinds: Sequence[EventKind] | None = None,
        cells: int = 300,
        **selection: Unpack[Selection],
    ) -> TimelinePicture:
        """A picture of GPUs and streams over time: text when printed, and SVG in a notebook.

        With `kinds=["api", "marker", "host"]`, threads are rows, too.

        ```python
        print(trace.timeline())
        svg = trace.timeline(range=("25%", "50%"))._repr_svg_()
        ```
        """
        from tracesmith._timeline import timeline_from_command

        args = [*(["--kind", ",".join(kinds)] if kinds else []), *_selected(selection)]
        with self._file() as file:
            return timeline_from_command(file, args, cells)

    def _write(
        self,
        verb: str,
        args: Sequence[str],
        overwrite: bool,
        range: tuple[Time, Time] | None,
        options: dict[str, Option],
    ) -> None:
        command = [verb, *args, *(["--force"] if overwrite else [])]
        command += _times(range) + [arg for name, value in options.items() for arg in _option(name, value)]
        with self._file() as file:
            _run(*command, os.fspath(file))


def merge(
    traces: Sequence[PathLike],
    path: PathLike,
    *,
    clock: Literal["utc", "ptp"] = "utc",
    overwrite: bool = True,
) -> Path:
    """Merges several traces into one: ranks, hosts, processes.

    ```python
    trace.cut("0%", "50%", "first.sbt")
    trace.cut("50%", "100%", "second.sbt")
    tracesmith.merge(["first.sbt", "second.sbt"], "both.sbt")
    ```
    """
    force = ["--force"] if overwrite else []
    files = [os.fspath(one) for one in traces]
    _run("merge", "-o", os.fspath(path), "--clock", clock, *force, *files)
    return Path(path)


def _run(*args: str) -> str:
    """Runs the command. What it prints."""
    # Loaded here: who only reads tables needs no child processes.
    from tracesmith import _command

    return _command.run(["--quiet", *args], error=TraceError).stdout


def _option(name: str, value: Option) -> list[str]:
    """An option of the command: `single_file=True` is `--single-file`."""
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag] if value else []
    return [f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]


def _times(range: tuple[Time, Time] | None) -> list[str]:
    """Two times as options. Numbers are absolute nanoseconds."""
    start, end = range or (None, None)
    named = (("--from", start), ("--to", end))
    return [
        f"{flag}={time if isinstance(time, str) else f'@{time}'}" for flag, time in named if time is not None
    ]


def _selected(selection: Selection) -> list[str]:
    """A selection as options of the command."""
    args = _times(selection.get("range"))
    step = selection.get("step")
    if step is not None:
        args.append(f"--step={step}")
    for name, value in (
        ("process", selection.get("process")),
        ("rank", selection.get("rank")),
        ("device", selection.get("device")),
        ("stream", selection.get("stream")),
    ):
        values = [value] if isinstance(value, (int, str)) else list(value or ())
        args += [f"--{name}={one}" for one in values]
    return args
