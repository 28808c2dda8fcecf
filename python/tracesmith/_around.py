"""Recording from around: another process, or a command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tracesmith import _command
from tracesmith._errors import CaptureError, NotAvailableError
from tracesmith._options import Kind, Level, Options, Path, Stacks

if TYPE_CHECKING:
    from tracesmith._trace import Trace

__all__ = ["Run", "record", "run"]

#: How much of what a program prints is looked through for an error of ours.
_TAIL_BYTES = 16384


@dataclass(frozen=True)
class Run:
    """How a recorded command ended, and its trace."""

    command: tuple[str, ...]
    #: The program's exit code; the negative number of the signal that killed it.
    returncode: int
    path: str

    @property
    def trace(self) -> Trace:
        """The trace."""
        import tracesmith

        return tracesmith.open(self.path)


def record(
    pid: int,
    path: Path | None = None,
    *,
    duration: float | str | None = None,
    level: Level = "standard",
    kinds: Iterable[Kind] | None = None,
    stacks: Stacks = None,
    graphs: Literal["nodes", "whole"] = "nodes",
    record: bool = False,
    buffer_size: str | int | None = None,
    overwrite: bool = False,
) -> Trace:
    """Records a running process for `duration` (seconds, or text such as `"500ms"`), or until it ends or Ctrl-C is pressed.

    The process must be recordable: it has called `tracesmith.arm()`, or was started by `python -m tracesmith run` or
    with the variables of `tracesmith env`. The file is `record-PID.sbt` unless `path` says otherwise.

    >>> import tracesmith as ts
    >>> ts.record(4711, "now.sbt", duration=5).summary()         # doctest: +SKIP
    """
    out = os.fspath(path) if path is not None else f"record-{pid}.sbt"
    options = Options(level, kinds, stacks, graphs, record, None, buffer_size, overwrite)
    arguments = ["-q", "record", "--pid", str(pid), "-o", out, *options.arguments()]
    if duration is not None:
        arguments += ["--duration", duration if isinstance(duration, str) else f"{duration}s"]
    before = _state(out)
    # Without a duration Ctrl-C is the usual end.
    done = _command.run(arguments, error=CaptureError, interrupt="end" if duration is None else "raise")
    for warning in _command.find_warnings(done.stderr):
        warnings.warn(warning, RuntimeWarning, stacklevel=2)
    if _state(out) == before:
        raise CaptureError(f"process {pid} was not recorded into {out}")
    import tracesmith

    return tracesmith.open(out)


def run(
    command: Sequence[Path],
    *,
    out: Path,
    level: Level = "standard",
    kinds: Iterable[Kind] | None = None,
    stacks: Stacks = None,
    graphs: Literal["nodes", "whole"] = "nodes",
    record: bool = False,
    flight_recorder: str | int | None = None,
    buffer_size: str | int | None = None,
    overwrite: bool = False,
    delay: float | str | None = None,
    duration: float | str | None = None,
    capture_range: str | None = None,
    steps: tuple[int, int] | None = None,
    preload: bool = True,
) -> Run:
    """Runs a command and records it with all its child processes, as `tracesmith profile` does.

    The command prints where this process prints. `steps=(2, 5)` records steps 2, 3 and 4 of the ranges of `capture_range`.
    A command that fails is no exception: look at `returncode`. Ctrl-C is passed on to the command and its child processes,
    as in a terminal, and is raised here when the command has ended and its trace is complete.

    >>> import tracesmith as ts
    >>> result = ts.run(["python", "train.py"], out="train.sbt")  # doctest: +SKIP
    >>> result.returncode, result.trace.health.is_good            # doctest: +SKIP
    (0, True)
    """
    path = os.fspath(out)
    options = Options(level, kinds, stacks, graphs, record, flight_recorder, buffer_size, overwrite)
    # The command leads a process group: a signal reaches all of the group, as that of a terminal does.
    arguments = ["-q", "profile", "--signal-group", "-o", path, *options.arguments()]
    for name, time in (("--delay", delay), ("--duration", duration)):
        if time is not None:
            arguments += [name, time if isinstance(time, str) else f"{time}s"]
    if capture_range is not None:
        arguments += ["--capture-range", capture_range]
    if steps is not None:
        arguments += ["--steps", f"{steps[0]}..{steps[1]}"]
    if not preload:
        arguments.append("--no-preload")
    program = tuple(os.fspath(word) for word in command)
    before = _state(path)
    code, talk = _run([_command.find(), *arguments, "--", *program])
    message, hint = _command.find_error(talk)
    if code in (126, 127) and message is not None:
        raise NotAvailableError(message, hint=hint)
    # The program may end with any code and print any words. If there is no new trace, they are the recorder's.
    if message is not None and _state(path) == before:
        raise CaptureError(message, hint=hint)
    return Run(program, code, path)


def _state(path: str) -> tuple[int, int] | None:
    """Tells whether a file has been written since."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return (state.st_ino, state.st_mtime_ns)


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Runs a command that prints here; returns its code and the end of what it wrote to standard error."""
    sys.stdout.flush()
    sys.stderr.flush()
    tail = b""
    # In a session of its own, because Ctrl-C in a terminal would reach the program twice. It still reads the terminal.
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, bufsize=0, env=_command.environment(), start_new_session=True
    ) as process:

        def follow() -> None:
            nonlocal tail
            assert process.stderr is not None
            while chunk := os.read(process.stderr.fileno(), 65536):
                tail = (tail + chunk)[-_TAIL_BYTES:]
                # If nobody reads it here, the program goes on all the same.
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.write(chunk.decode("utf-8", "replace"))
                    sys.stderr.flush()
            process.wait()

        try:
            follow()
        except BaseException:
            # It passes the signal on to the program and its children, waits for it, and completes the trace.
            _command.stop(process, follow)
            raise
    return process.returncode, tail.decode("utf-8", "replace")
