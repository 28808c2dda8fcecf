"""`python -m tracesmith ARGS` is the command `tracesmith ARGS`.

`python -m tracesmith run SCRIPT ARGS` is `python SCRIPT ARGS`, ready to be recorded: our library is loaded from the start,
so that `tracesmith.profile` shares CUPTI with other profilers and sees all NVTX ranges, and `tracesmith record --pid` can
attach at any time. Nothing is recorded before one of them asks for it.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tracesmith import _command
from tracesmith._errors import CaptureError, TracesmithError

_USAGE = """\
Runs a Python program that can be recorded: by tracesmith.profile in it, or by 'tracesmith record --pid'

usage: python -m tracesmith run [--ready] [--no-preload] SCRIPT | -m MODULE | -c CODE [ARGS]...

  --ready       initialize CUPTI when the program initializes CUDA
  --no-preload  do not set LD_PRELOAD; profilers inside the program may then conflict with a recording"""


def main() -> int:
    """Becomes the command, or the program."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["run"]:
            return _run(arguments[1:])
        command = _command.find()
        os.execv(command, ["tracesmith", *arguments])
    except TracesmithError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(arguments: list[str]) -> int:
    options = []
    while arguments and arguments[0] in ("--ready", "--no-preload"):
        options.append(arguments.pop(0))
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    variables = _command.query(["env", *options], error=CaptureError)
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    os.execve(sys.executable, [sys.executable, *flags, *arguments], environment)


if __name__ == "__main__":
    sys.exit(main())
