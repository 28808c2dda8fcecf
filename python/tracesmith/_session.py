"""Live sessions: a program records its own events."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import util
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from tracesmith import _native
from tracesmith._calls import native
from tracesmith._errors import CaptureError, TraceError
from tracesmith._event_rows import Encoder
from tracesmith._events import Event, FlowType, MemoryCategory
from tracesmith._trace import PathLike, Trace
from tracesmith._trace import open as open_trace

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Session", "Statistics", "TracingConfig", "TracingSession"]

DEFAULT_MAX_BYTES = 256 << 20

Function = TypeVar("Function", bound=Callable[..., Any])

# Sessions of this process that are still recording.
_open: weakref.WeakSet[Session] = weakref.WeakSet()
_has_hooks = False


class Statistics:
    """Numbers of a session, of the calling process."""

    def __init__(self, emitted: int, dropped: int, counters_off: int, start: int, end: int | None) -> None:
        self.events_emitted = emitted
        """Events that the program emitted."""
        self.events_dropped = dropped
        """Events among them that were not recorded: the memory was full, the disk was, or the session had stopped."""
        self.counters_off = counters_off
        """Values of counters that were not wanted."""
        self._start = start
        self._end = end

    @property
    def duration_ns(self) -> int:
        """The time from the start of the session to its end, or to now."""
        return (self._end or _native.monotonic_ns()) - self._start

    def duration_ms(self) -> float:
        """The same, in milliseconds."""
        return self.duration_ns / 1e6

    def __repr__(self) -> str:
        return (
            f"Statistics({self.events_emitted:,} events, {self.events_dropped:,} dropped, "
            f"{self.duration_ns / 1e9:.3f} s)"
        )


class Session:
    """Records events of the program into a trace.

    ```python
    >>> import tracesmith as ts
    >>> with ts.Session() as session:
    ...     with session.range("load"):
    ...         _ = session.counter("queue", 3)
    ...     _ = session.mark("loaded")
    >>> [row["name"] for row in session.trace.markers]
    ['load', 'loaded']

    ```

    - `path` is the file. Without one, the trace goes with the session; `export` keeps it.
    - `overwrite=True` replaces a file that exists. Without it, a file with content is a `CaptureError`.
    - `max_bytes` bounds the memory for events that are not written yet. Events that do not fit are dropped, counted in
      `statistics`, and stated in the trace's health.
    - `counters=False` leaves counters out.

    All threads may emit. The file is written by a thread of its own, and flushed five times a second.

    Several processes may share a session: a forked child, a process that gets the session as an argument, or one that
    opens a `Session` of the same path while the first records. Each writes a file of its own in `<path>.parts`. `stop`
    merges the parts of processes that have ended, so stop (or join) the others first. A part of a process that was killed
    is merged as far as it was flushed, and the trace's health says so.
    """

    def __init__(
        self,
        path: PathLike | None = None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        counters: bool = True,
        overwrite: bool = False,
    ) -> None:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, not {max_bytes}")
        self._begin(None if path is None else os.fspath(path), max_bytes, counters, overwrite=overwrite)

    def _begin(
        self, path: str | None, max_bytes: int, counters: bool, *, join: bool = False, overwrite: bool = False
    ) -> None:
        self._options = (max_bytes, counters)
        # Another folder may be the current one when the file is read.
        path = None if path is None else os.path.abspath(path)
        self._native = start_native(path, max_bytes, counters, join=join, overwrite=overwrite)
        self._encoder = Encoder()
        self._trace: Trace | None = None
        # The methods that programs call most are those of the native session: nothing lies between.
        self.mark = self._native.mark
        self.counter = self._native.counter
        self.range = self._native.range
        _start_hooks()
        _open.add(self)
        _finish_with_process(self)
        util.register_after_fork(self, _finish_with_process)

    mark: Callable[[str], bool]
    """Records a moment: `session.mark("epoch 3")`. Returns whether it was taken."""

    counter: Callable[..., bool]
    """Records a value: `session.counter("loss", 0.31)`, `session.counter("memory", 2e9, "bytes")`."""

    range: Callable[[str], _native.SessionRange]
    """Records how long a block takes: `with session.range("forward"): ...`."""

    def emit_counter(self, name: str, value: float, unit: str | None = None) -> bool:
        """The same as `counter`."""
        return self.counter(name, value, unit)

    def trace_function(self, function: Function) -> Function:
        """A decorator: records every call of a function as a range with its name."""

        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with self.range(function.__qualname__):
                return function(*args, **kwargs)

        return traced  # type: ignore[return-value]

    def emit(self, event: Event) -> bool:
        """Records a `TraceEvent`, `MemoryEvent` or `CounterEvent`. Returns whether it was taken.

        ```python
        >>> import tracesmith as ts
        >>> from tracesmith._events import EventType, TraceEvent
        >>> with ts.Session() as session:
        ...     session.emit(TraceEvent(EventType.KernelLaunch, name="saxpy", duration=2_000))
        True
        >>> session.trace.kernels.to_dicts()[0]["duration"]
        2000

        ```
        """
        with native():
            taken = [self._native.push(table, row) for table, row in self._encoder.rows(event)]
        return all(taken)

    def emit_many(self, table: str, columns: Any) -> int:
        """Records many rows of a table at once. Returns how many were taken.

        `columns` is a dictionary of columns, or a DataFrame or table of polars, pandas or pyarrow. A column is a list, an
        array, or one value for all rows. Columns are named as in the trace; a `duration` may replace an `end`, `device` is
        the driver's number, and without `start` or `time` the rows are at this moment.

        ```python
        >>> import tracesmith as ts
        >>> with ts.Session() as session:
        ...     session.emit_many("counters", {"name": "loss", "time": [10, 20, 30], "value": [0.9, 0.5, 0.4]})
        3

        ```
        """
        with native():
            return self._native.push(table, {name: _values(column) for name, column in _columns(columns)})

    def flow(
        self,
        id: int,
        *,
        start: bool = True,
        type: FlowType = FlowType.Custom,
        name: str = "",
        correlation_id: int = 0,
    ) -> bool:
        """Records a point of a flow, an arrow between two moments of any threads or processes.

        ```python
        >>> import tracesmith as ts
        >>> with ts.Session() as session:
        ...     _ = session.flow(7, name="request"), session.flow(7, start=False, name="request")
        >>> len(session.trace.flows)
        2

        ```
        """
        row = {
            "flow": id,
            "kind": type.value,
            "phase": "start" if start else "end",
            "name": name,
            "correlation": correlation_id,
        }
        with native():
            return self._native.push("flows", row) == 1

    def allocation(
        self,
        address: int,
        bytes: int,
        *,
        device: int | None = 0,
        stream: int = 0,
        allocator: str = "",
        category: MemoryCategory | str | None = None,
        name: str = "",
    ) -> bool:
        """Records that memory was allocated.

        ```python
        >>> import tracesmith as ts
        >>> with ts.Session() as session:
        ...     _ = session.allocation(0x1000, 4096, allocator="pool"), session.free(0x1000)
        >>> [row["operation"] for row in session.trace.allocations]
        ['allocate', 'free']

        ```
        """
        row = {
            "address": address,
            "bytes": bytes,
            "device": device,
            "stream": stream,
            "allocator": allocator,
            "category": category.value if isinstance(category, MemoryCategory) else category,
            "name": name,
            "operation": "allocate",
            "memory": "pageable" if device is None else "device",
        }
        with native():
            return self._native.push("allocations", row) == 1

    def free(self, address: int, bytes: int = 0, *, device: int | None = 0, stream: int = 0) -> bool:
        """Records that memory was freed."""
        row = {
            "address": address,
            "bytes": bytes,
            "device": device,
            "stream": stream,
            "operation": "free",
            "memory": "pageable" if device is None else "device",
        }
        with native():
            return self._native.push("allocations", row) == 1

    def metadata(self, key: str, value: str) -> bool:
        """States a fact about the recording."""
        with native():
            return self._native.metadata(key, value)

    def flush(self) -> None:
        """Writes everything so far into the file. What is flushed survives the process."""
        with native():
            self._native.flush()

    def stop(self) -> None:
        """Ends the recording in this process, completes the file, and merges what other processes recorded.

        Raises `TraceError` if the file could not be written. To stop twice does nothing.
        """
        _open.discard(self)
        with native():
            if not self._native.is_stopped:
                for table, row in self._encoder.finish():
                    self._native.push(table, row)
            self._native.stop()

    @property
    def is_running(self) -> bool:
        """Whether events are recorded."""
        with native():
            return not self._native.is_stopped

    @property
    def path(self) -> Path:
        """The file. That of a session without a path goes with the session."""
        return Path(self._native.path)

    @property
    def statistics(self) -> Statistics:
        """How many events the calling process emitted, and how many were lost."""
        with native():
            return Statistics(*self._native.statistics())

    def get_statistics(self) -> Statistics:
        """The same as `statistics`."""
        return self.statistics

    @property
    def trace(self) -> Trace:
        """The recorded trace, after `stop`."""
        if self.is_running:
            raise TraceError("the session is still recording", hint="call stop() first")
        if self._trace is None:
            self._trace = open_trace(self.path)
        return self._trace

    def export(self, path: PathLike, format: str | None = None) -> int:
        """Writes the recorded trace into a file, after `stop`. Returns the number of events that were written.

        A file that exists is replaced when the new one is complete.

        The ending decides the format: `.sbt`, `.perfetto-trace`, `.json` and others that `tracesmith export` knows.
        """
        trace = self.trace
        if format is None and os.fspath(path).endswith(".sbt"):
            if not os.path.exists(path) or not os.path.samefile(path, self.path):
                with native():
                    _native.copy(os.fspath(self.path), os.fspath(path))
            return sum(trace.rows.values())
        with native():
            written, _ = _native.export(trace._native, os.fspath(path), format)
        return written

    def export_to_file(self, path: PathLike) -> int:
        """The same as `export`."""
        return self.export(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _after_fork(self) -> None:
        # Another thread may have held the encoder's lock. Its halves are the parent's.
        self._encoder = Encoder()
        self._trace = None

    def _finish(self) -> None:
        # A child that emitted nothing has no file. At the end of the process nobody is left to catch an error.
        if not self._native.has_started:
            return
        try:
            self.stop()
        except (TraceError, ValueError, OSError) as error:
            sys.stderr.write(f"tracesmith: {error}\n")

    def __reduce__(self) -> tuple[Callable[..., Session], tuple[Any, ...]]:
        return _join, (str(self.path), *self._options)

    def __repr__(self) -> str:
        state = "recording" if self.is_running else "stopped"
        return f"Session({self.path}, {state}, {self.statistics.events_emitted:,} events)"


def start_native(
    path: str | None,
    max_bytes: int,
    counters: bool,
    *,
    wait: bool = False,
    join: bool = False,
    overwrite: bool = False,
) -> _native.Session:
    """Starts to record into a file that is new, or may be replaced, or that another process records into."""
    try:
        with native():
            return _native.Session(path, max_bytes, counters, wait, join, overwrite)
    except FileExistsError:
        hint = "name another file, or pass overwrite=True"
        if overwrite:
            hint = "its file system has no locks, so another process may write it: remove it, or name another file"
        raise CaptureError(f"the file exists: {path}", hint=hint) from None


def _join(path: str, max_bytes: int, counters: bool) -> Session:
    """The session of another process."""
    session = Session.__new__(Session)
    session._begin(path, max_bytes, counters, join=True)
    return session


def _columns(columns: Any) -> list[tuple[str, Any]]:
    if isinstance(columns, Mapping):
        return [(str(name), column) for name, column in columns.items()]
    names = getattr(columns, "column_names", None)
    if names is None:
        names = getattr(columns, "columns", None)
    if names is None:
        raise TypeError(
            f"columns are a dictionary or a table of a DataFrame library, not {type(columns).__name__}"
        )
    return [(str(name), columns[name]) for name in names]


def _values(column: Any) -> Any:
    """A column as the native module takes it: a value, a list, or numbers as bytes."""
    if column is None or isinstance(column, (str, int, float, list)):
        return column
    if isinstance(column, (tuple, range)):
        return list(column)
    if _is_masked(column):
        return column.tolist()
    dtype = getattr(column, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if isinstance(kind, str) and kind in "uif" and getattr(column, "ndim", 0) == 1:
        array = column.to_numpy() if hasattr(column, "to_numpy") else column
        return f"{kind}8", array.astype(f"{kind}8").tobytes()
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return getattr(column, method)()
    if isinstance(column, Sequence):
        return list(column)
    return column


def _is_masked(column: Any) -> bool:
    """Whether values of a numpy array are masked, so that its bytes are not its values."""
    # Nothing is imported for this: whoever has such an array has numpy.
    numpy = sys.modules.get("numpy")
    return numpy is not None and bool(numpy.ma.is_masked(column))


def _start_hooks() -> None:
    """What a session needs at forks and at the end of a process. The import of the package does not change anything."""
    global _has_hooks
    if not _has_hooks:
        _has_hooks = True
        os.register_at_fork(after_in_child=_after_fork)
        atexit.register(_finish_all)


def _after_fork() -> None:
    _native.forked()
    for session in list(_open):
        session._after_fork()


def _finish_all() -> None:
    for session in list(_open):
        session._finish()


def _finish_with_process(session: Session) -> None:
    """Completes the file of a process of `multiprocessing`: such processes end without running `atexit`."""
    util.Finalize(session, _finish, args=(weakref.ref(session),), exitpriority=0)


def _finish(session: weakref.ref[Session]) -> None:
    found = session()
    if found is not None:
        found._finish()


class TracingConfig:
    """Limits of a `TracingSession`: memory in KiB, and whether counters are recorded."""

    def __init__(
        self, buffer_size_kb: int = DEFAULT_MAX_BYTES >> 10, enable_counter_tracks: bool = True
    ) -> None:
        self.buffer_size_kb = buffer_size_kb
        self.enable_counter_tracks = enable_counter_tracks


class TracingSession:
    """A session under its earlier name: `start`, `emit`, `emit_counter`, `stop`, `export_to_file`.

    ```python
    >>> import tracesmith as ts
    >>> from tracesmith._session import TracingConfig, TracingSession
    >>> session = TracingSession()
    >>> session.start(TracingConfig(buffer_size_kb=1024))
    True
    >>> session.emit_counter("loss", 0.5)
    True
    >>> session.stop()
    >>> session.get_statistics().events_emitted
    1

    ```
    """

    def __init__(self) -> None:
        self._session: Session | None = None

    def start(self, config: TracingConfig | None = None) -> bool:
        """Starts to record. Returns whether it did: a session that records already goes on."""
        if self._session is not None and self._session.is_running:
            return False
        config = config or TracingConfig()
        self._session = Session(max_bytes=config.buffer_size_kb << 10, counters=config.enable_counter_tracks)
        return True

    @property
    def session(self) -> Session:
        """The session under its present name."""
        if self._session is None:
            raise TraceError("the session has not started", hint="call start() first")
        return self._session

    def emit(self, event: Event) -> bool:
        """Records an event."""
        return self.session.emit(event)

    def emit_counter(self, name: str, value: float, unit: str | None = None) -> bool:
        """Records a value of a counter."""
        return self.session.counter(name, value, unit)

    def stop(self) -> None:
        """Ends the recording."""
        self.session.stop()

    def export_to_file(self, path: PathLike) -> int:
        """Writes the recorded trace into a file whose ending decides the format."""
        return self.session.export(path)

    def get_statistics(self) -> Statistics:
        """How many events were emitted, and how many were lost."""
        return self.session.statistics
