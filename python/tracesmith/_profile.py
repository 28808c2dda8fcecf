"""Recording from inside: a window of this process.

A child process collects the data, see `_collector`. With a schedule, one window is open the whole time and records only
within the active steps. These begin and end in the calling thread, between two calls of the program, so exactly the active
steps are in the trace. If each cycle is to have a file of its own, each has its own window, which opens in the warmup.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, final

from tracesmith import _arm
from tracesmith._collector import Collector
from tracesmith._errors import CaptureError, TracesmithError
from tracesmith._options import Kind, Level, Options, Path, Stacks
from tracesmith._report import CaptureReport, report_of
from tracesmith._schedule import Action, Schedule, action_of
from tracesmith._torch import TorchRanges
from tracesmith._words import in_python

if TYPE_CHECKING:
    from tracesmith._native import Range
    from tracesmith._trace import Trace

__all__ = ["profile"]

Function = TypeVar("Function", bound=Callable[..., Any])

#: How long the interpreter waits at its exit for traces that are not complete yet, in seconds.
_EXIT_LIMIT = 5.0

#: After which the wait is announced.
_EXIT_PATIENCE = 0.5

_DUMP_LIMIT = 60.0

#: Collectors whose traces may not be complete. Nobody else may know them: `with tracesmith.profile("a.sbt"):`.
_pending: set[Collector] = set()

#: Guards what all profiles share. A signal handler may use a profile while its thread holds it.
_lock = threading.RLock()
_waits_at_exit = False
_folder: str | None = None
_last_number = 0


@final
class profile:
    """Records the GPU work of this process, and what leads to it.

    CUDA may be in use already. It is a context manager, a decorator, and has `start`, `stop` and `step`:

    >>> import tracesmith as ts
    >>> with ts.profile("step.sbt", stacks="python", overwrite=True) as p:
    ...     pass                                    # train_step()
    >>> p.trace                                     # doctest: +ELLIPSIS
    Trace(...)

    Leaving the block closes the window. The names of functions are looked up after that, in another process; `trace`,
    `report` and `lost` wait for it.

    Without a `path` the trace is a temporary file, which is removed when the program ends.

    With a `schedule`, `step()` tells when a step ends, and only the active steps are recorded. All are in one file. With
    `on_trace_ready` each cycle has a file, named `run-1.sbt`, `run-2.sbt`, …; the function is called with this object
    when a cycle has ended, and `p.trace` is then the cycle's. If a later cycle cannot be recorded, `step()` warns and the
    program goes on:

    >>> plan = ts.schedule(wait=2, warmup=1, active=3, repeat=2)
    >>> with ts.profile(schedule=plan, on_trace_ready=lambda p: print(p.cycle)) as p:
    ...     for batch in range(12):
    ...         p.step()
    1
    2

    `ops=True` makes a range of each PyTorch operator, and `modules=True` one of each `forward` of a module, named by its
    place in the model. Both take CPU time in every call.

    In a process that `tracesmith profile` records already, this is a range of that recording and nothing else.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        level: Level = "standard",
        kinds: Iterable[Kind] | None = None,
        stacks: Stacks = None,
        graphs: Literal["nodes", "whole"] = "nodes",
        record: bool = False,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        flight_recorder: str | int | None = None,
        buffer_size: str | int | None = None,
        overwrite: bool = False,
        ops: bool = False,
        modules: bool = False,
    ) -> None:
        self._options = Options(
            level=level,
            kinds=kinds,
            stacks=stacks,
            graphs=graphs,
            record=record,
            flight_recorder=flight_recorder,
            buffer_size=buffer_size,
            overwrite=overwrite,
        )
        self._wanted_path = None if path is None else os.fspath(path)
        self._ops, self._modules = ops, modules
        self._torch = TorchRanges(ops=ops, modules=modules) if ops or modules else None
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._has_cycles = schedule is not None and on_trace_ready is not None
        self._owner = os.getpid()
        self._collector: Collector | None = None
        self._before: Collector | None = None
        self._is_open = False
        self._is_running = False
        self._end_outer: Callable[[], object] | None = None
        #: Whether it may begin and end in different threads, or between ranges of others.
        self._leaves_thread = False
        self._is_nested = False
        self._step = 0
        self._cycle = 0
        self._action = Action.NONE
        self._step_range: Range | None = None
        self._planned = Action.NONE
        #: Whether the rest of the present cycle is left out, because its beginning failed.
        self._skips_cycle = False
        #: Why the present cycle has no trace.
        self._failure: TracesmithError | None = None
        self._trace: Trace | None = None
        self._report: CaptureReport | None = None
        #: Why data are missing, of the present window: what a warning has said, or will say.
        self._warned: set[str] = set()
        #: Warnings for when nothing is half done. They may be errors, as pytest can make them.
        self._unsaid: list[str] = []

    # Life

    def start(self) -> None:
        """Starts to record. Comes back when the window is open."""
        if self._is_running and self._owner == os.getpid():
            raise CaptureError(
                "this profile has been started already", hint="make another one, or call stop() first"
            )
        if self._owner != os.getpid():
            # The child of a fork: what was open is the parent's.
            self._is_open = self._is_running = self._is_nested = False
            self._collector = self._before = self._end_outer = None
        self._owner = os.getpid()
        self._step = self._cycle = 0
        self._action = self._planned = Action.NONE
        self._skips_cycle = False
        self._step_range = self._failure = None
        if _arm.is_under_profile():
            self._start_as_range()
            return
        if self._has_cycles:
            self._refuse_first_file()
        _arm.arm()
        self._is_running = True
        try:
            if self._schedule is None:
                self._start_torch()
            if not self._has_cycles:
                self._open()
            if self._schedule is not None:
                self._enter_step()
        except BaseException:
            self._is_running = False
            self._stop_torch()
            if self._is_open:
                self._drop()
            raise
        self._say()

    def stop(self) -> None:
        """Stops recording. Comes back when the window is closed; the trace may take longer."""
        if not self._is_running or self._owner != os.getpid():
            # Also the child of a fork, in which nothing is recorded.
            return
        self._is_running = False
        try:
            self._end()
        finally:
            self._stop_torch()
        self._say()

    def _end(self) -> None:
        if self._end_outer is not None:
            end, self._end_outer = self._end_outer, None
            end()
            return
        was_active = self._action in (Action.RECORD, Action.RECORD_AND_SAVE)
        if self._schedule is not None:
            self._leave_active()
        was_open = self._is_open
        if was_open and self._has_cycles and not was_active:
            self._drop()
            return
        self._close()
        if was_open and self._on_trace_ready is not None and (was_active or not self._has_cycles):
            self._on_trace_ready(self)
        self._note_missing()

    def step(self) -> None:
        """The step has ended, and the next one begins."""
        if self._schedule is None:
            raise CaptureError("step() needs a schedule", hint="pass schedule=tracesmith.schedule(active=3)")
        if not self._is_running or self._owner != os.getpid() or self._is_nested:
            return
        before = self._action
        self._step += 1
        self._enter_step(before)
        self._say()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except TracesmithError as failure:
            if error is None:
                raise
            # The program's own error counts, also where warnings are errors.
            with contextlib.suppress(Warning):
                warnings.warn(f"the recording failed: {failure}", RuntimeWarning, stacklevel=2)
        except Warning:
            if error is None:
                raise

    def __call__(self, function: Function) -> Function:
        """Records each call of the function. The second call writes `step-2.sbt`, and so on.

        A coroutine or a generator is recorded until it ends.
        """
        calls = 0

        def next_one(*, leaves_thread: bool) -> profile:
            nonlocal calls
            calls += 1
            one = recorded.profile = self._again(calls)  # type: ignore[attr-defined]
            one._leaves_thread = leaves_thread
            return one

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded(*args: Any, **kwargs: Any) -> Any:
                with next_one(leaves_thread=True):
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def recorded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                with next_one(leaves_thread=True):
                    return (yield from function(*args, **kwargs))

        else:

            @functools.wraps(function)
            def recorded(*args: Any, **kwargs: Any) -> Any:
                with next_one(leaves_thread=False):
                    return function(*args, **kwargs)

        return recorded  # type: ignore[return-value]

    # Results

    @property
    def path(self) -> str | None:
        """The file that is written, of the present cycle if each has its own."""
        return None if self._collector is None else self._collector.path

    @property
    def cycle(self) -> int:
        """The number of the present or last cycle of the schedule, counted from 1."""
        return self._cycle

    @property
    def step_num(self) -> int:
        """The number of the present step, counted from 0."""
        return self._step

    @property
    def is_nested(self) -> bool:
        """Whether an outer `tracesmith profile` records this process, so that this is only a range of it."""
        return self._is_nested

    @property
    def report(self) -> CaptureReport:
        """What the trace contains. Waits until it is complete."""
        if self._report is None:
            self._report = report_of(self._finished().result())
            self._note_missing(loss.detail or loss.cause for loss in self._report.losses if loss.missing)
            self._say()
        return self._report

    @property
    def lost(self) -> int:
        """Records that are missing in the trace. Waits until it is complete."""
        return self.report.lost

    @property
    def trace(self) -> Trace:
        """The trace. Waits until it is complete."""
        if self._trace is None:
            collector = self._finished()
            report = self.report
            if report.failure is not None:
                raise CaptureError(f"the trace is not complete: {report.failure}")
            import tracesmith

            self._trace = tracesmith.open(report.files[-1][0] if report.files else collector.path)
        return self._trace

    def wait(self, timeout: float | None = None) -> None:
        """Waits until the trace is complete, at most `timeout` seconds."""
        self._finished().result(timeout)

    def snapshot(self) -> Trace:
        """Writes what a flight recorder holds, and opens it. Recording goes on.

        >>> import tracesmith as ts
        >>> with ts.profile(flight_recorder="64M") as p:
        ...     latest = p.snapshot()
        """
        if self._options.flight_recorder is None:
            raise CaptureError("snapshot() needs a flight recorder", hint='pass flight_recorder="64M"')
        if self._collector is None or not self._is_open or self._owner != os.getpid():
            raise CaptureError("nothing is being recorded", hint="call snapshot() within the block")
        import tracesmith

        return tracesmith.open(self._collector.dump(_DUMP_LIMIT))

    # One window

    def _open(self) -> None:
        arguments = self._options.arguments()
        if self._schedule is not None:
            arguments += ["--capture-range", "signal"]
        collector = Collector(os.getpid(), self._next_path(), arguments)
        self._trace = self._report = self._failure = None
        self._warned = set()
        self._before, self._collector, self._is_open = self._collector, collector, True
        _remember(collector)

    def _close(self) -> None:
        if self._collector is not None and self._is_open:
            self._is_open = False
            self._collector.close()

    def _drop(self) -> None:
        """Forgets a window that was opened for a cycle which does not come any more."""
        self._is_open = False
        if self._collector is not None:
            self._collector.abandon()
        self._collector = self._before
        if self._has_cycles:
            self._cycle -= 1

    def _finished(self) -> Collector:
        if self._is_nested:
            raise CaptureError(
                "an outer 'tracesmith profile' records this process, and has the trace",
                hint="open the outer trace when the program has ended",
            )
        if self._failure is not None and self._owner == os.getpid():
            raise self._failure
        if self._collector is None:
            raise CaptureError(
                "nothing has been recorded yet", hint="call start(), or use it as a context manager"
            )
        if self._owner != os.getpid():
            raise CaptureError("the recording belongs to the process that this one is a fork of")
        if self._is_open:
            raise CaptureError(
                "the recording has not ended yet", hint="leave the block, or call stop() first"
            )
        return self._collector

    def _next_path(self) -> str:
        path = self._wanted_path
        if path is None:
            path = _temporary_path()
        path = os.path.abspath(path)
        return _numbered(path, self._cycle) if self._has_cycles else path

    def _refuse_first_file(self) -> None:
        """The first cycle may be hours away. Whoever started the program is here now."""
        if self._wanted_path is None or self._options.overwrite:
            return
        path = _numbered(os.path.abspath(self._wanted_path), 1)
        if os.path.lexists(path):
            raise CaptureError(f"the file exists: {path}", hint="name another file, or pass overwrite=True")

    def _start_as_range(self) -> None:
        from tracesmith import _native

        # It may raise, if warnings are errors.
        warnings.warn(
            "this process is recorded by an outer 'tracesmith profile': tracesmith.profile is only a range of that trace",
            RuntimeWarning,
            stacklevel=3,
        )
        self._start_torch()
        self._is_nested = self._is_running = True
        outer = _native.Range("tracesmith.profile", None, None)
        if self._leaves_thread:
            number = outer.start()
            self._end_outer = lambda: _native.range_end(number)
        else:
            outer.__enter__()
            self._end_outer = lambda: outer.__exit__(None, None, None)

    def _again(self, call: int) -> profile:
        path = self._wanted_path
        if path is not None and call > 1:
            path = _numbered(path, call)
        options = self._options
        return profile(
            path,
            level=options.level,
            kinds=options.kinds,
            stacks=options.stacks,
            graphs=options.graphs,
            record=options.record,
            schedule=self._schedule,
            on_trace_ready=self._on_trace_ready,
            flight_recorder=options.flight_recorder,
            buffer_size=options.buffer_size,
            overwrite=options.overwrite,
            ops=self._ops,
            modules=self._modules,
        )

    # Steps

    def _enter_step(self, before: Action = Action.NONE) -> None:
        """Between two steps: ends what the last one recorded, and begins what the next one records."""
        assert self._schedule is not None
        action = action_of(self._schedule, self._step)
        is_active = action in (Action.RECORD, Action.RECORD_AND_SAVE)
        planned, self._planned = self._planned, action
        if planned is Action.RECORD_AND_SAVE or action is Action.NONE:
            self._skips_cycle = False
        try:
            if before is Action.RECORD_AND_SAVE or not is_active:
                self._leave_active()
                if before is Action.RECORD_AND_SAVE and self._has_cycles:
                    self._end_cycle()
            self._leave_step()
        except TracesmithError as error:
            self._action = Action.NONE
            self._warn_of(error)
        if self._skips_cycle:
            return
        try:
            self._begin(action, is_active)
        except TracesmithError as error:
            if self._step == 0:
                # It is start() that fails.
                raise
            self._action = Action.NONE
            self._skips_cycle = True
            self._stop_torch()
            if self._has_cycles:
                self._failure = error
                if self._is_open:
                    self._drop()
                    # This one was the cycle all the same.
                    self._cycle += 1
            self._warn_of(error)

    def _end_cycle(self) -> None:
        try:
            self._close()
        except TracesmithError as error:
            self._failure = error
            raise
        assert self._on_trace_ready is not None
        self._on_trace_ready(self)
        self._note_missing()

    def _begin(self, action: Action, is_active: bool) -> None:
        if self._has_cycles and action is not Action.NONE and not self._is_open:
            self._cycle += 1
            self._open()
        was_active = self._action in (Action.RECORD, Action.RECORD_AND_SAVE)
        self._action = action
        if not is_active:
            return
        from tracesmith import _native

        if not was_active:
            if not self._has_cycles:
                self._cycle += 1
            self._start_torch()
            _native.capture_range(True)
        self._step_range = _native.Range("step", self._step, None)
        self._step_range.__enter__()

    def _warn_of(self, error: TracesmithError) -> None:
        """What fails between two steps does not end the program."""
        self._trace = self._report = None
        self._unsaid.append(f"cycle {self._cycle} of the recording failed: {error}")

    def _note_missing(self, reasons: Iterable[str] | None = None) -> None:
        """Has a warning say why data are missing in the trace, once for each reason: those known at the end of the window."""
        if reasons is None:
            reasons = () if self._collector is None else self._collector.missing
        new = [words for words in map(in_python, reasons) if words not in self._warned]
        self._warned.update(new)
        if new:
            self._unsaid.append(f"the trace is not complete: {'; '.join(new)}")

    def _say(self) -> None:
        """Warns where the program uses the profile."""
        unsaid, self._unsaid = self._unsaid, []
        for words in unsaid:
            warnings.warn(words, RuntimeWarning, stacklevel=_level_of_program())

    def _leave_active(self) -> None:
        was_active = self._action in (Action.RECORD, Action.RECORD_AND_SAVE)
        self._leave_step()
        if was_active:
            from tracesmith import _native

            self._action = Action.NONE
            _native.capture_range(False)
            self._stop_torch()

    # Ranges of PyTorch. What it does itself to begin and end them is not recorded.

    def _start_torch(self) -> None:
        if self._torch is not None:
            self._torch.start()

    def _stop_torch(self) -> None:
        if self._torch is not None:
            self._torch.stop()

    def _leave_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None


def _level_of_program() -> int:
    """How many calls above the caller the program's own code is: where a warning points to."""
    package = os.path.dirname(__file__) + os.sep
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    return level


def _numbered(path: str, number: int) -> str:
    stem, ending = os.path.splitext(path)
    return f"{stem}-{number}{ending}"


def _temporary_path() -> str:
    """A file that no other profile has, in a folder that is removed at the exit."""
    global _folder, _last_number
    with _lock:
        if _folder is None or not os.path.isdir(_folder):
            _folder = tempfile.mkdtemp(prefix="tracesmith-")
        _last_number += 1
        return os.path.join(_folder, f"{os.getpid()}-{_last_number}.sbt")


def _remember(collector: Collector) -> None:
    global _waits_at_exit
    # Not under the lock: who asks a collector may wait.
    done = [one for one in _pending_now() if one.poll()]
    with _lock:
        _pending.difference_update(done)
        _pending.add(collector)
        if not _waits_at_exit:
            _waits_at_exit = True
            atexit.register(_complete_traces, os.getpid())


def _pending_now() -> list[Collector]:
    with _lock:
        return list(_pending)


def _forget_parent() -> None:
    """In the child of a fork: the collectors, the folder and the exit are the parent's."""
    global _lock, _pending, _waits_at_exit, _folder
    collectors = list(_pending)
    _lock, _pending, _waits_at_exit, _folder = threading.RLock(), set(), False, None
    for collector in collectors:
        collector.forget()


os.register_at_fork(after_in_child=_forget_parent)


def _complete_traces(owner: int) -> None:
    """At the exit: closes windows that are open, and waits for traces that are not complete."""
    if os.getpid() != owner:
        # The child of a fork.
        return
    deadline = time.monotonic() + _EXIT_LIMIT
    unfinished = [one for one in _pending_now() if one.owner == owner and not one.poll()]
    for collector in unfinished:
        with contextlib.suppress(TracesmithError):
            collector.close()
    for collector in unfinished:
        _complete(collector, deadline)
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def _complete(collector: Collector, deadline: float) -> None:
    if collector.poll(_EXIT_PATIENCE):
        return
    print(f"tracesmith: waiting for the names of functions in {collector.path}", file=sys.stderr)
    if not collector.poll(max(deadline - time.monotonic(), 0.0)):
        print(
            f"tracesmith: process {collector.process} goes on to complete {collector.path}", file=sys.stderr
        )
