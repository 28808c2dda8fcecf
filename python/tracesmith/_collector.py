"""The child process that collects a recording of this process, and the conversation with it.

The child is `tracesmith record --control`: orders go to its standard input, and its answers come as JSON lines. It is a
process and not a thread, so that it takes no core of the program and its trace survives the program's death. It runs in
a session of its own, so that Ctrl-C does not reach it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

from tracesmith import _command
from tracesmith._errors import CaptureError, ConflictError, TracesmithError
from tracesmith._words import in_python

__all__ = ["Collector"]

#: How long a window may take to open, in seconds. CUPTI takes some tenths of a second when it is used first.
OPEN_LIMIT = 30.0

#: How long it may take to close. The collector waits at most five seconds for the program.
CLOSE_LIMIT = 15.0

#: How long an abandoned child may take to stop by itself.
_ABANDON_LIMIT = 2.0

#: What to do about a conflict, where the command cannot know.
_CONFLICT_HINT = "start the program with 'python -m tracesmith run', so that both profilers share CUPTI, or end the other profiler first"


class Collector:
    """One recording of one process, until its trace is complete."""

    def __init__(self, process: int, path: str, options: Sequence[str]) -> None:
        self.path = path
        self.owner = os.getpid()
        self._lock = threading.RLock()
        self._unread = b""
        self._is_closed = False
        #: Why data are missing in the trace, as far as it was known when the window closed.
        self.missing: tuple[str, ...] = ()
        self._answer: dict[str, Any] | None = None
        self._failure: TracesmithError | None = None
        #: Dumps that were ordered and have not been answered. An answer may come after nobody waits for it.
        self._unanswered = 0
        #: Whether the file at the path is this recording's.
        self._is_ours = not os.path.lexists(path)
        command = [_command.find(), "-q", "record", "--control", "--pid", str(process), "-o", path, *options]
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=_command.environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise CaptureError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            self._wait_for("open", OPEN_LIMIT)
            self._is_ours = True
        except BaseException:
            self.abandon()
            raise

    @property
    def process(self) -> int:
        """The child's number."""
        return self._child.pid

    @property
    def is_done(self) -> bool:
        """Whether the trace is complete, or will never be."""
        return self._answer is not None or self._failure is not None

    def order(self, word: str) -> None:
        """Sends an order. A child that has gone is noticed when its answer is read."""
        stream = self._child.stdin
        if stream is not None and not stream.closed:
            with contextlib.suppress(OSError):
                stream.write(f"{word}\n".encode())

    def close(self) -> None:
        """Closes the window. Comes back when it is closed in the program, before the trace is complete."""
        with self._lock:
            if self._is_closed or self.is_done:
                return
            self.order("stop")
            self._wait_for("closed", CLOSE_LIMIT)

    def dump(self, limit: float) -> str:
        """Writes the contents of the flight recorder; returns the file."""
        with self._lock:
            self.order("dump")
            self._unanswered += 1
            answer = self._wait_for("dumped", limit)
        if answer.get("file") is None:
            raise CaptureError(f"the flight recorder was not written: {answer.get('message')}")
        return str(answer["file"])

    def result(self, limit: float | None = None) -> dict[str, Any]:
        """Waits until the trace is complete; returns the report."""
        with self._lock:
            if self._answer is None:
                if self._failure is not None:
                    raise self._failure
                self._answer = self._wait_for("done", limit)
                self._reap(limit)
            report: dict[str, Any] = self._answer["report"]
            return report

    def poll(self, limit: float = 0.0) -> bool:
        """Whether the trace is complete, or will never be; waits for it at most this many seconds.

        If another thread waits for it already, that one reads the answer.
        """
        begun = time.monotonic()
        if not self.is_done and self._lock.acquire(timeout=limit):
            try:
                with contextlib.suppress(TracesmithError):
                    self.result(max(limit - (time.monotonic() - begun), 0.0))
            finally:
                self._lock.release()
        return self.is_done

    def abandon(self) -> None:
        """Ends the child and removes what it has written, for a recording that nobody will read."""
        self.order("stop")
        self._close_streams()
        try:
            self._child.wait(_ABANDON_LIMIT)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._child.send_signal(signal.SIGKILL)
            self._child.wait()
        if self._failure is None:
            self._failure = CaptureError("the recording was abandoned")
            # Otherwise the child has refused, and what is there is not of this recording.
            with contextlib.suppress(OSError):
                if self._is_ours and stat.S_ISREG(os.lstat(self.path).st_mode):
                    os.unlink(self.path)

    def forget(self) -> None:
        """In the child of a fork: lets go of the parent's collector, and leaves it alone."""
        self._lock = threading.RLock()
        self._failure = CaptureError("the recording belongs to the process that this one is a fork of")
        # The collector must notice if the parent ends.
        self._close_streams()
        # It is no child of this process, so that nothing is to be reaped.
        self._child.returncode = 0

    def _wait_for(self, event: str, limit: float | None) -> dict[str, Any]:
        """Reads answers until one is of this kind."""
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            line = self._read_line(event, deadline)
            if line is None:
                raise self._fail(self._died())
            answer: dict[str, Any] = json.loads(line)
            kind = answer.get("event")
            if kind == "error":
                raise self._fail(_refusal(answer))
            if kind == "dumped":
                self._unanswered -= 1
                if self._unanswered > 0:
                    # Of an earlier order, for which nobody waits any more.
                    continue
            if kind == "closed":
                self._is_closed = True
                # A command of an earlier version, which a variable may name, does not state it.
                self.missing = tuple(answer.get("missing", ()))
            if kind == "done" and event != "done":
                # The program that is recorded has ended, or the window was closed by its duration.
                self._answer = answer
                return answer
            if kind == event:
                return answer

    def _read_line(self, event: str, deadline: float | None) -> bytes | None:
        stream = self._child.stdout
        if stream is None or stream.closed:
            return None
        poller = select.poll()
        poller.register(stream, select.POLLIN)
        while b"\n" not in self._unread:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if not poller.poll(None if left is None else left * 1000):
                raise CaptureError(
                    f"the collector (process {self.process}) has not answered in time: no '{event}'",
                    hint="look whether the process or its GPU hangs",
                )
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                return None
            self._unread += chunk
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def _fail(self, failure: TracesmithError) -> TracesmithError:
        self._failure = failure
        return failure

    def _died(self) -> CaptureError:
        """The child has closed its output without a last answer."""
        code = self._child.wait()
        talk = self._child.stderr.read() if self._child.stderr is not None else b""
        message, hint = _command.find_error(talk.decode("utf-8", "replace"))
        self._close_streams()
        if message is not None:
            return CaptureError(message, hint=hint)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return CaptureError(
            f"the collector {how} before the trace was complete: {self.path}",
            hint="'tracesmith repair' completes what was written",
        )

    def _reap(self, limit: float | None) -> None:
        self._close_streams()
        # It has nothing left to do. If it is slow all the same, Python reaps it later.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(limit)

    def _close_streams(self) -> None:
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _refusal(answer: dict[str, Any]) -> TracesmithError:
    message, hint, reason = in_python(str(answer["message"])), answer.get("hint"), answer.get("reason")
    if reason == "conflict":
        return ConflictError(message, hint=_CONFLICT_HINT)
    if reason == "exists":
        hint = "name another file, or pass overwrite=True"
    if reason == "busy":
        hint = "end the other recording of this process first"
    return CaptureError(message, hint=hint and in_python(hint))
