"""PyTorch's operators and modules as ranges, while a profile records. PyTorch is imported only for this.

Operators: PyTorch names each of them by NVTX itself, in C++ and in all threads that work for the calling one. Names are
`aten::addmm, seq = 12, op_id = 30`; analyses leave the numbers out, and pair backward operators with forward ones by them.

Modules: two hooks that PyTorch calls around each `forward`, for all modules there are. They are removed when the recording
ends, also if the program fails.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from tracesmith import _command
from tracesmith._errors import CaptureError, NotAvailableError
from tracesmith._native import Range

__all__ = ["TorchRanges"]

_INJECTION_VARIABLE = "NVTX_INJECTION64_PATH"


class TorchRanges:
    """Ranges of PyTorch, on request. Both calls may come repeatedly."""

    def __init__(self, *, ops: bool, modules: bool) -> None:
        self._wants_ops = ops
        self._wants_modules = modules
        self._undo: contextlib.ExitStack | None = None

    def start(self) -> None:
        """From now on there are ranges."""
        if self._undo is not None:
            return
        try:
            import_module("torch")
        except ImportError as error:
            word = "ops" if self._wants_ops else "modules"
            raise NotAvailableError(f"{word}=True needs PyTorch: {error}") from error
        with contextlib.ExitStack() as undo:
            if self._wants_modules:
                undo.enter_context(_modules())
            if self._wants_ops:
                undo.enter_context(_operators())
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """There are none any more."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo.close()


@contextlib.contextmanager
def _operators() -> Iterator[None]:
    torch = import_module("torch")
    ranges = torch.autograd.profiler.emit_nvtx()
    try:
        with _nvtx_finds_us():
            ranges.__enter__()
            # The first range makes NVTX look for its tool.
            torch.empty(0)
    except (AssertionError, RuntimeError) as error:
        raise CaptureError(
            f"PyTorch cannot name its operators: {str(error).splitlines()[0]}",
            hint="ops=True needs CUDA, and no torch.profiler that is active at the same time",
        ) from error
    try:
        yield
    finally:
        # It waits for the GPU. If GPU work has failed, the program's own error counts, and each further call repeats it.
        with contextlib.suppress(RuntimeError):
            ranges.__exit__(None, None, None)


@contextlib.contextmanager
def _nvtx_finds_us() -> Iterator[None]:
    """NVTX in PyTorch takes the tool that the environment names when it is used first, and never looks again."""
    if os.environ.get(_INJECTION_VARIABLE):
        yield
        return
    variables = _command.query(["env"], error=CaptureError)
    os.environ[_INJECTION_VARIABLE] = str(variables[_INJECTION_VARIABLE])
    try:
        yield
    finally:
        os.environ.pop(_INJECTION_VARIABLE, None)


@contextlib.contextmanager
def _modules() -> Iterator[None]:
    torch = import_module("torch")
    hooks = torch.nn.modules.module
    # A compiler that traces a module leaves the ranges out, and does not stop at them.
    is_compiling: Callable[[], bool] = getattr(
        getattr(torch, "compiler", None), "is_compiling", lambda: False
    )
    calls = _Calls()

    def before(module: Any, _inputs: Any) -> None:
        if not is_compiling():
            calls.enter(module)

    def after(module: Any, _inputs: Any, _output: Any) -> None:
        if not is_compiling():
            calls.leave(module)

    begins = hooks.register_module_forward_pre_hook(before)
    try:
        try:
            ends = hooks.register_module_forward_hook(after, always_call=True)
        except TypeError:
            # Before PyTorch 2.1: after a forward that fails, its range ends with that of its caller.
            ends = hooks.register_module_forward_hook(after)
    except BaseException:
        begins.remove()
        raise
    try:
        yield
    finally:
        begins.remove()
        # Modules that other threads are running end their ranges themselves.
        calls.leave_all(then=ends.remove)


class _Calls:
    """The modules whose `forward` is running, in each thread, and the names of all modules of a model."""

    def __init__(self) -> None:
        self._threads = threading.local()
        #: What each thread is running. A thread may be gone, or end within a `forward`.
        self._lists: list[tuple[weakref.ref[threading.Thread], list[tuple[Any, Range]]]] = []
        self._lock = threading.RLock()
        self._at_end: list[Callable[[], object]] = []
        self._ranges: weakref.WeakKeyDictionary[Any, dict[int, Range]] = weakref.WeakKeyDictionary()

    def enter(self, module: Any) -> None:
        running = self._running()
        root = running[0][0] if running else module
        span = self._range(root, module)
        span.__enter__()
        running.append((module, span))

    def leave(self, module: Any) -> None:
        running = self._running()
        # Otherwise it had begun before there were ranges.
        if any(module is one for one, _ in running):
            while running:
                last, span = running.pop()
                span.__exit__(None, None, None)
                if last is module:
                    break
        self._end()

    def leave_all(self, then: Callable[[], object]) -> None:
        """Ends the ranges of this thread. When no other thread has one, `then` is called."""
        running = self._running()
        while running:
            running.pop()[1].__exit__(None, None, None)
        self._at_end.append(then)
        self._end()

    def _end(self) -> None:
        if not self._at_end:
            return
        with self._lock:
            is_running = any(running and _is_alive(thread()) for thread, running in self._lists)
            if self._at_end and not is_running:
                self._at_end.pop()()

    def _running(self) -> list[tuple[Any, Range]]:
        if not hasattr(self._threads, "running"):
            self._threads.running = []
            with self._lock:
                self._lists = [one for one in self._lists if _is_alive(one[0]())]
                self._lists.append((weakref.ref(threading.current_thread()), self._threads.running))
        running: list[tuple[Any, Range]] = self._threads.running
        return running

    def _range(self, root: Any, module: Any) -> Range:
        """The range of a module: its place in the model, such as `Net.blocks.3.attention`."""
        known = self._ranges.get(root)
        if known is None:
            name = type(root).__name__
            known = self._ranges[root] = {
                id(part): Range(f"{name}.{path}" if path else name) for path, part in root.named_modules()
            }
        # Otherwise it is no part of the module that runs it.
        return known.get(id(module)) or Range(type(module).__name__)


def _is_alive(thread: threading.Thread | None) -> bool:
    return thread is not None and thread.is_alive()
