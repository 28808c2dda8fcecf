"""Files of events under the names of the earlier TraceSmith."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tracesmith as ts
from tracesmith._events import (
    CounterEvent,
    EventType,
    FlowInfo,
    FlowType,
    KernelParams,
    MemoryCategory,
    MemoryEvent,
    MemoryParams,
    TraceEvent,
)
from tracesmith._sbt import SBTReader, SBTWriter


def written(path: Path, events: list[TraceEvent]) -> list[TraceEvent]:
    with SBTWriter(path) as writer:
        writer.write_events(events)
    return SBTReader(path).read_all()


# Kinds of which two make one row.
HALVES = {EventType.RangeStart, EventType.RangeEnd, EventType.NCCLStart, EventType.NCCLComplete}


@pytest.mark.parametrize("kind", [kind for kind in EventType if kind not in HALVES])
@pytest.mark.parametrize("correlation", [0, 42])
def test_every_field_of_every_kind_comes_back(tmp_path: Path, kind: EventType, correlation: int) -> None:
    event = TraceEvent(
        type=kind,
        timestamp=1_000,
        duration=250,
        device_id=3,
        stream_id=7,
        correlation_id=correlation,
        name="näme",
        thread_id=77,
        metadata={"key": "value"},
        flow_info=FlowInfo(5, FlowType.FwdBwd, False),
        kernel_params=KernelParams((4, 3, 2), (32, 2, 1), 512, 40),
        memory_params=MemoryParams(0x10, 0x20, 4096),
        call_stack=["main", "step"],
        custom_data={"list": [1, 2.5, None, "x"]},
    )
    assert written(tmp_path / "a.sbt", [event]) == [event]


def test_a_launch_and_its_kernel_come_back(tmp_path: Path) -> None:
    launch = TraceEvent(
        EventType.KernelLaunch,
        100,
        10,
        device_id=1,
        stream_id=2,
        correlation_id=5,
        name="gemm",
        thread_id=9,
        kernel_params=KernelParams((8, 1, 1), (64, 1, 1)),
    )
    complete = TraceEvent(EventType.KernelComplete, 150, 40, 1, 2, 5, custom_data="x")
    assert written(tmp_path / "a.sbt", [launch, complete]) == [launch, complete]
    # Without a duration, a kernel ends where it is reported.
    complete = TraceEvent(EventType.KernelComplete, 190, 0, 1, 2, 5, "gemm")
    assert written(tmp_path / "b.sbt", [launch, complete]) == [launch, complete]
    (kernel,) = ts.open(tmp_path / "b.sbt").kernels.to_dicts()
    assert (kernel["start"], kernel["end"]) == (110, 190)


def test_halves_become_one_event_with_a_duration(tmp_path: Path) -> None:
    events = [
        TraceEvent(EventType.RangeStart, 100, name="outer", thread_id=1),
        TraceEvent(EventType.RangeStart, 110, name="inner", thread_id=1),
        TraceEvent(EventType.RangeEnd, 120, name="inner", thread_id=1),
        TraceEvent(EventType.RangeEnd, 130, thread_id=1, metadata={"a": "b"}),
        TraceEvent(EventType.NCCLStart, 200, stream_id=4, correlation_id=8, name="AllReduce"),
        TraceEvent(EventType.NCCLComplete, 260, stream_id=4, correlation_id=8, name="AllReduce"),
        TraceEvent(EventType.RangeStart, 300, name="open", thread_id=1),
        TraceEvent(EventType.RangeEnd, 400, name="alone", thread_id=2),
        TraceEvent(EventType.NCCLComplete, 500, name="alone"),
    ]
    found = written(tmp_path / "a.sbt", events)
    assert [(event.type, event.timestamp, event.duration, event.name) for event in found] == [
        (EventType.RangeStart, 100, 30, "outer"),
        (EventType.RangeStart, 110, 10, "inner"),
        (EventType.NCCLStart, 200, 60, "AllReduce"),
        (EventType.RangeStart, 300, 0, "open"),
        (EventType.RangeEnd, 400, 0, "alone"),
        (EventType.NCCLComplete, 500, 0, "alone"),
    ]
    # What only the second half had is kept, too.
    assert "b" in found[0].metadata["end"]


def test_counters_memory_and_metadata_come_back(tmp_path: Path) -> None:
    counter = CounterEvent("loss", 0.5, "nats", 3, 100)
    memory = MemoryEvent(64, 0x10, False, "pool", MemoryCategory.Cached, 200, 1, 2, 3, 4)
    with SBTWriter(tmp_path / "a.sbt") as writer:
        writer.write_metadata({"application": "test", "version": 3})
        writer.write_event(counter)
        writer.write_event(memory)
    reader = SBTReader(tmp_path / "a.sbt")
    assert reader.read_counters() == [counter]
    assert reader.read_memory_events() == [memory]
    assert reader.read_metadata()["application"] == "test"
    assert reader.read_metadata()["version"] == "3"


def test_any_part_of_the_events_can_be_read(tmp_path: Path) -> None:
    kinds = [EventType.Marker, EventType.KernelLaunch, EventType.MemcpyH2D]
    # Some start at the same time, and long ones reach into the parts of others.
    events = [
        TraceEvent(kinds[number % 3], 1000 + number // 2, number % 50, name=f"event {number}")
        for number in range(600)
    ]
    all_events = written(tmp_path / "a.sbt", events)
    assert len(all_events) == 600
    reader = SBTReader(tmp_path / "a.sbt")
    assert len(reader) == 600
    for start in (0, 1, 7, 298, 599, 600, 1000):
        for count in (0, 1, 5, 100, 600, 10_000):
            assert reader.read_events(start, count) == all_events[start : start + count]
    assert list(reader) == all_events


def test_a_part_reads_only_its_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.sbt"
    with SBTWriter(path) as writer:
        # Numbers without a pattern fill the file with markers.
        dice = random.Random(1)
        starts = sorted(dice.randrange(1, 1 << 50) for _ in range(300_000))
        payloads = [dice.randrange(1 << 60) for _ in starts]
        writer._native.push("markers", {"name": "m", "start": starts, "payload": payloads})
    whole = path.read_bytes()
    reader = SBTReader(path)
    first = reader.read_events(0, 10)
    # Damage in the last third is not seen by a reader of the beginning.
    damaged = bytearray(whole)
    at = len(whole) * 2 // 3
    damaged[at : at + 64] = bytes(64)
    path.write_bytes(damaged)
    reader = SBTReader(path)
    assert reader.read_events(0, 10) == first
    assert not reader.trace._health()["damage"]
    reader.read_all()
    (damage,) = reader.trace._health()["damage"]
    assert damage["kind"] == "markers"


def test_bad_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SBTReader(tmp_path / "nothing.sbt")
    (tmp_path / "empty.sbt").touch()
    with pytest.raises(ts.TraceError, match="empty"):
        SBTReader(tmp_path / "empty.sbt")
    (tmp_path / "text.sbt").write_text("no trace\n" * 50)
    with pytest.raises(ts.TraceError, match=r"TraceSmith 0\.x"):
        SBTReader(tmp_path / "text.sbt")
    with pytest.raises(FileNotFoundError):
        SBTWriter(tmp_path / "nowhere" / "a.sbt")
    with SBTWriter(tmp_path / "a.sbt") as writer, pytest.raises(ts.TraceError, match="another writer"):
        SBTWriter(tmp_path / "a.sbt")
    whole = (tmp_path / "a.sbt").read_bytes()
    with pytest.raises(ts.CaptureError, match="the file exists"):
        SBTWriter(tmp_path / "a.sbt")
    assert (tmp_path / "a.sbt").read_bytes() == whole
    with SBTWriter(tmp_path / "a.sbt", overwrite=True) as again:
        again.write_event(TraceEvent(EventType.Marker, timestamp=100, name="again"))
    assert [event.name for event in SBTReader(tmp_path / "a.sbt").read_all()] == ["again"]
    with pytest.raises(ts.TraceError, match="finished"):
        writer.write_event(TraceEvent())
    with pytest.raises(ValueError, match="negative"):
        SBTReader(tmp_path / "a.sbt").read_events(-1, 5)


def test_writing_waits_and_drops_nothing(tmp_path: Path) -> None:
    writer = SBTWriter(tmp_path / "a.sbt")
    for _ in range(30):
        writer._native.push("markers", {"name": "m", "start": list(range(1, 20_001))})
    writer.finalize()
    writer.finalize()
    assert ts.open(tmp_path / "a.sbt").rows["markers"] == 600_000
