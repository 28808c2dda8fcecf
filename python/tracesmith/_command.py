"""Finds and runs the `tracesmith` command that the package brings.

The command does everything that must happen in a process of its own: recording, replay, and what loads the CUDA driver.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from tracesmith._errors import NotAvailableError, TracesmithError
from tracesmith._words import in_python

__all__ = ["environment", "find", "find_error", "find_warnings", "query", "run", "stop"]

T = TypeVar("T")

#: Names the command, instead of the one that the package brings.
BINARY_VARIABLE = "TRACESMITH_BINARY"

#: Where a library is named that is loaded into programs.
_INJECTION_VARIABLES = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
_INJECTED_LIBRARY = "libtracesmith_inject"


def find() -> str:
    """The path of the command.

    It is the one that the variable `TRACESMITH_BINARY` names, or the one that was installed with this package, or
    `tracesmith` of the `PATH`.

    >>> import os
    >>> os.path.basename(find())
    'tracesmith'
    """
    named = os.environ.get(BINARY_VARIABLE)
    if named:
        if _is_program(named):
            return os.path.abspath(named)
        raise NotAvailableError(
            f"{named}, which the variable {BINARY_VARIABLE} names, is not a program",
            hint=f"unset {BINARY_VARIABLE}, or name the tracesmith command",
        )
    return _installed()


@functools.cache
def _installed() -> str:
    for folder in _folders():
        path = os.path.join(folder, "tracesmith")
        if _is_program(path):
            return path
    found = shutil.which("tracesmith")
    if found is not None:
        return os.path.abspath(found)
    raise NotAvailableError(
        "the tracesmith command is not installed beside this package",
        hint=f"install the wheel of tracesmith-gpu again, or set {BINARY_VARIABLE} to the command",
    )


def _folders() -> Iterator[str]:
    """Where installers put scripts, the likeliest first."""
    # Of this environment, then of the one that it is made of.
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", vars={"base": sys.base_prefix})
    package = os.path.dirname(os.path.abspath(__file__))
    above = os.path.dirname(package)
    # `pip install --prefix`: PREFIX/lib/pythonX.Y/site-packages, and PREFIX/bin.
    if os.path.basename(above) in ("site-packages", "dist-packages"):
        yield os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(above))), "bin")
    # `pip install --target FOLDER`: FOLDER/bin.
    yield os.path.join(above, "bin")
    with contextlib.suppress(KeyError):
        yield sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user"))


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def environment() -> dict[str, str]:
    """The variables for a command: those of this process, without those that would load our library into it."""
    variables = dict(os.environ)
    variables.pop("TRACESMITH_ARMED", None)
    for name in _INJECTION_VARIABLES:
        if _INJECTED_LIBRARY in variables.get(name, ""):
            del variables[name]
    preloaded = variables.get("LD_PRELOAD", "")
    if _INJECTED_LIBRARY in preloaded:
        others = [path for path in preloaded.replace(":", " ").split() if _INJECTED_LIBRARY not in path]
        if others:
            variables["LD_PRELOAD"] = ":".join(others)
        else:
            del variables["LD_PRELOAD"]
    return variables


def run(
    args: Sequence[str | os.PathLike[str]],
    *,
    check: bool = True,
    error: type[TracesmithError] = TracesmithError,
    env: Mapping[str, str] | None = None,
    capture: bool = True,
    interrupt: Literal["raise", "end"] = "raise",
) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end.

    A failure is raised as `error`, with the command's sentence and hint. Exit code 1 is an answer ("differs", "not
    deterministic") and not a failure, unless the command printed an error. With `check=False` nothing is raised.
    With `capture=False` the command prints where this process prints.

    Ctrl-C stops the command as it does in a terminal, and is raised here when the command has stopped. `record` then
    completes its trace, which may take long. A second Ctrl-C ends the command by force. With `interrupt="end"` Ctrl-C is the
    usual end of the command: it is raised only if the command had not begun.

    >>> run(["--version"]).stdout.startswith("tracesmith")
    True
    """
    command = [find(), *(os.fspath(arg) for arg in args)]
    pipe = subprocess.PIPE if capture else None
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if capture else None,
        stdout=pipe,
        stderr=pipe,
        encoding="utf-8",
        errors="replace",
        env=dict(env) if env is not None else environment(),
        # Ctrl-C in a terminal would reach it a second time.
        start_new_session=capture,
    ) as process:
        try:
            out, talk = process.communicate()
        except KeyboardInterrupt:
            out, talk = stop(process, process.communicate)
            if interrupt == "raise" or process.returncode == -signal.SIGINT:
                raise
        except BaseException:
            stop(process, process.communicate)
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out or "", talk or "")
    if check and done.returncode not in (0, 1):
        raise _failure(done, error)
    if check and done.returncode == 1 and find_error(done.stderr)[0]:
        raise _failure(done, error)
    return done


def query(args: Sequence[str | os.PathLike[str]], *, error: type[TracesmithError] = TracesmithError) -> Any:
    """What a command answers with `--format json`."""
    done = run(["--format", "json", *args], error=error)
    try:
        return json.loads(done.stdout)
    except ValueError as broken:
        raise error(f"the answer of 'tracesmith {' '.join(map(str, args))}' is no JSON: {broken}") from broken


def find_error(talk: str) -> tuple[str | None, str | None]:
    """The error and the hint in what a command printed to standard error, in the words of the package.

    >>> find_error("wrote a.sbt\\nerror: the file exists: a.sbt\\n\\nhint: replace it with --force\\n")
    ('the file exists: a.sbt', 'replace it with overwrite=True')
    """
    message: list[str] = []
    hint: str | None = None
    is_open = False
    for line in talk.splitlines():
        text = line.strip()
        if text.startswith("error:"):
            message, is_open = [text[len("error:") :].strip()], True
        elif text.startswith(("hint:", "tip:")):
            hint, is_open = text.split(":", 1)[1].strip(), False
        elif not text:
            is_open = False
        elif is_open:
            message.append(text)
    return (in_python(" ".join(message)) or None, hint and in_python(hint))


def find_warnings(talk: str) -> list[str]:
    """The warnings in what a command printed to standard error, in the words of the package.

    >>> find_warnings("wrote a.sbt\\nwarning: incomplete: ring-full, 3 records\\n")
    ['incomplete: ring-full, 3 records']
    """
    lines = (line.strip() for line in talk.splitlines())
    return [in_python(line[len("warning:") :].strip()) for line in lines if line.startswith("warning:")]


def _failure(done: subprocess.CompletedProcess[str], error: type[TracesmithError]) -> TracesmithError:
    message, hint = find_error(done.stderr)
    if message is None:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        how = f"by signal {-done.returncode}" if done.returncode < 0 else f"with code {done.returncode}"
        message = f"tracesmith ended {how}" + (f": {last[0]}" if last[0] else "")
    return error(message, hint=hint)


def stop(process: subprocess.Popen[Any], wait: Callable[[], T]) -> T:
    """Stops a command as Ctrl-C in a terminal does, once, and waits for its end; at a second Ctrl-C by force.

    `wait` reads what the command still prints. Returns what `wait` does.
    """
    try:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        return wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
