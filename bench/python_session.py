"""How many events per second one thread of Python can emit into a session.

    python bench/python_session.py [EVENTS]

Prints a line for each way to emit: events per second while emitting, the CPU time of the emitting thread for an event, events
per second until the file is complete, and how many were dropped. On a busy machine, only the CPU time says something.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tracesmith import EventType, Session, TraceEvent


def measure(what: str, count: int, emit: Callable[[Session], None]) -> None:
    session = Session()
    begin, cpu = time.perf_counter(), time.thread_time()
    emit(session)
    emitted, cpu = time.perf_counter(), time.thread_time() - cpu
    session.stop()
    stopped = time.perf_counter()
    statistics = session.statistics
    print(
        f"{what:14} {count / (emitted - begin) / 1e6:6.2f} M/s emitted  {cpu / count * 1e9:6.0f} ns CPU/event  "
        f"{count / (stopped - begin) / 1e6:6.2f} M/s written  {statistics.events_dropped} dropped  "
        f"{session.path.stat().st_size / count:.1f} bytes/event"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000

    def marks(session: Session) -> None:
        mark = session.mark
        for _ in range(count):
            mark("step")

    def counters(session: Session) -> None:
        counter = session.counter
        for number in range(count):
            counter("loss", number)

    def ranges(session: Session) -> None:
        for _ in range(count // 5):
            with session.range("step"):
                pass

    def events(session: Session) -> None:
        event = TraceEvent(EventType.Marker, name="step")
        for _ in range(count // 20):
            session.emit(event)

    def columns(session: Session) -> None:
        values = [float(number) for number in range(10_000)]
        for _ in range(count // len(values)):
            session.emit_many("counters", {"name": "loss", "value": values})

    measure("mark", count, marks)
    measure("counter", count, counters)
    measure("range", count // 5, ranges)
    measure("emit", count // 20, events)
    measure("emit_many", count // 10_000 * 10_000, columns)


if __name__ == "__main__":
    main()
