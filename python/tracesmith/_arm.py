"""Makes this process recordable: loads our library into it, which then waits for a collector."""

from __future__ import annotations

import os
import threading

from tracesmith import _command
from tracesmith._errors import CaptureError

__all__ = ["arm", "is_under_profile"]

#: A signal handler may arm while its thread holds it.
_lock = threading.RLock()

#: The process that was armed. The child of a fork is another one.
_armed_process: int | None = None


def is_under_profile() -> bool:
    """Whether this process was started by `tracesmith profile`, which records all of it.

    >>> is_under_profile()
    False
    """
    return bool(os.environ.get("TRACESMITH_COLLECTOR"))


def arm(*, ready: bool = False) -> None:
    """Makes this process recordable, now or later: by `profile`, or by `tracesmith record --pid` from a shell.

    Nothing is recorded yet. CUPTI is not used before a recording starts, unless `ready` is set: that costs 3 % of an
    empty launch, and avoids a rare crash if a recording starts while the program instantiates a CUDA graph.
    The environment is not changed, so child processes are not armed. The child of a fork can call this itself.

    `profile` does this by itself. Call it early in a service that may have to be looked at one day:

    >>> import tracesmith as ts
    >>> ts.arm()
    """
    global _armed_process
    if is_under_profile():
        return
    if _armed_process == os.getpid():
        return
    from tracesmith import _native

    # Not under the lock, because a command takes its time.
    variables = _command.query(["env", *(["--ready"] if ready else [])], error=CaptureError)
    library = str(variables["CUDA_INJECTION64_PATH"])
    with _lock:
        if _armed_process == os.getpid():
            return
        try:
            is_armed = _native.arm(library, str(variables["TRACESMITH_RUNTIME_DIR"]), ready)
        except OSError as error:
            raise CaptureError(f"cannot load {library}: {error}") from error
        if not is_armed:
            raise CaptureError(
                "this process cannot be made recordable: its socket cannot be created",
                hint="look at the limit of open files, or set TRACESMITH_RUNTIME_DIR to another folder",
            )
        _armed_process = os.getpid()


def _renew_lock() -> None:
    """In the child of a fork: another thread of the parent may hold it, and is not here to release it."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
