"""Writing and reading events as `.sbt` files, under the names of the earlier TraceSmith.

The files are those of format version 1, which every part of TraceSmith reads. Files of TraceSmith 0.x are another format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tracesmith import _native
from tracesmith._calls import native
from tracesmith._errors import TraceError
from tracesmith._event_rows import (
    EVENT_TABLES,
    NOTES,
    Encoder,
    counter_of,
    event_of,
    memory_event_of,
    notes_of,
)
from tracesmith._events import CounterEvent, Event, MemoryEvent, TraceEvent
from tracesmith._session import start_native
from tracesmith._trace import PathLike, Trace
from tracesmith._trace import open as open_trace

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SBTReader", "SBTWriter"]

BUFFER_BYTES = 64 << 20

# What files of the present format begin with.
MAGIC = b"\x89SBT\r\n\x1a\n"


class SBTWriter:
    """Writes events into an `.sbt` file.

    ```python
    >>> import tempfile, os
    >>> from tracesmith._events import EventType, TraceEvent
    >>> path = os.path.join(tempfile.mkdtemp(), "events.sbt")
    >>> with SBTWriter(path) as writer:
    ...     writer.write_metadata({"application": "demo"})
    ...     writer.write_event(TraceEvent(EventType.Marker, timestamp=100, name="begin"))
    >>> [event.name for event in SBTReader(path).read_all()]
    ['begin']

    ```

    `overwrite=True` replaces a file that exists. Without it, a file with content is a `CaptureError`.

    Nothing is dropped: writing waits for the disk. Without `finalize`, or when the process is killed, the file has what was
    flushed, a fraction of a second before.
    """

    def __init__(self, path: PathLike, *, overwrite: bool = False) -> None:
        whole_path = os.path.abspath(os.fspath(path))
        self._native = start_native(whole_path, BUFFER_BYTES, True, wait=True, overwrite=overwrite)
        if self._native.own_path != self._native.path:
            raise TraceError(f"another writer has the file open: {os.fspath(path)}")
        self._encoder = Encoder()

    def write_event(self, event: Event) -> None:
        """Writes an event."""
        self._push(self._encoder.rows(event))

    def write_events(self, events: Iterable[Event]) -> None:
        """Writes events."""
        for event in events:
            self.write_event(event)

    def write_metadata(self, metadata: Mapping[str, object]) -> None:
        """States facts about the recording."""
        with native():
            for key, value in metadata.items():
                if not self._native.metadata(str(key), str(value)):
                    raise TraceError(f"the file is finished: {self._native.path}")

    def finalize(self) -> None:
        """Completes the file. To do it twice does nothing."""
        with native():
            if not self._native.is_stopped:
                self._push(self._encoder.finish())
            self._native.stop()

    def _push(self, rows: Iterable[tuple[str, dict[str, Any]]]) -> None:
        with native():
            for table, row in rows:
                if self._native.push(table, row) != 1:
                    # The reason is the first error of the disk, if there was one.
                    self._native.stop()
                    raise TraceError(f"the file is finished: {self._native.path}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.finalize()


class SBTReader:
    """Reads the events of an `.sbt` file, or of any other trace that TraceSmith opens.

    Events are in the order of their start. Every row of the tables `api_calls`, `kernels`, `copies`, `sets`, `syncs`,
    `allocations`, `collectives` and `markers` is one event. Other tables have no kinds of events: `trace` has them.
    """

    def __init__(self, path: PathLike) -> None:
        try:
            self.trace: Trace = open_trace(path)
        except TraceError as error:
            raise _explained(error, path) from None
        self._devices = {row["id"]: row["ordinal"] for row in self.trace.table("devices").to_dicts()}

    def __len__(self) -> int:
        """The number of events."""
        rows = self.trace.rows
        return sum(rows.get(table, 0) for table in EVENT_TABLES)

    def read_all(self) -> list[TraceEvent]:
        """All events."""
        found = self._read(None, None)
        return [event for _, event in found]

    def read_events(self, start: int = 0, count: int = 1000) -> list[TraceEvent]:
        """`count` events from number `start` on. Only their part of the file is read."""
        if start < 0 or count < 0:
            raise ValueError(f"start and count must not be negative: {start}, {count}")
        if count == 0:
            return []
        with native():
            first = _native.locate(self.trace._native, list(EVENT_TABLES), start)
            last = _native.locate(self.trace._native, list(EVENT_TABLES), start + count - 1)
        if first is None:
            return []
        since, before = first
        until = None if last is None else last[0]
        found = [event for time, event in self._read(since, until) if time >= since]
        return found[start - before : start - before + count]

    def read_counters(self) -> list[CounterEvent]:
        """All values of counters."""
        return [counter_of(row, self._devices) for row in self.trace.table("counters").to_dicts()]

    def read_memory_events(self) -> list[MemoryEvent]:
        """All allocations and frees."""
        rows = self.trace.table("allocations").to_dicts()
        known = ("allocate", "free")
        return [memory_event_of(row, self._devices) for row in rows if row["operation"] in known]

    def read_metadata(self) -> dict[str, str]:
        """The facts about the recording."""
        return self.trace.metadata

    def __iter__(self) -> Iterator[TraceEvent]:
        step = 10_000
        for start in range(0, len(self), step):
            yield from self.read_events(start, step)

    def _read(self, since: int | None, until: int | None) -> list[tuple[int, TraceEvent]]:
        """Events that reach into a stretch of time, and start before its end, with their starts."""
        end = None if until is None else until + 1
        notes_table = self.trace.table("host_calls").where(category=NOTES).between(since, end)
        notes = notes_of(notes_table.to_dicts())
        found = []
        for table in EVENT_TABLES:
            for row in self.trace.table(table).between(since, end).to_dicts():
                start = row.get("start", row.get("time")) or 0
                of_row = notes.get((table, start, row.get("correlation") or 0))
                note = of_row.pop(0) if of_row else None
                found.append((start, event_of(table, row, self._devices, note)))
        found.sort(key=lambda pair: pair[0])
        return found


def _explained(error: TraceError, path: PathLike) -> TraceError:
    """The error for a file that is named as a trace and has another beginning, with what it may be."""
    with open(path, "rb") as file:
        head = file.read(len(MAGIC))
    if not head or head == MAGIC or not os.fspath(path).endswith(".sbt"):
        return error
    return TraceError(
        str(error),
        hint="files of TraceSmith 0.x have another format: export them to JSON with the version that wrote them",
    )
