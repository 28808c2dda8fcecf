"""Live sessions: what is emitted is what the trace has."""

from __future__ import annotations

import fcntl
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

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
    TraceEvent,
)
from tracesmith._session import Session, TracingConfig, TracingSession

COMMAND = os.environ.get("TRACESMITH_BINARY")


def names(session: Session) -> list[str]:
    return [row["name"] for row in session.trace.markers.to_dicts()]


def test_marks_ranges_and_counters_become_rows(tmp_path: Path) -> None:
    before = time.monotonic_ns()
    with Session(tmp_path / "run.sbt") as session:
        assert session.mark("begin")
        with session.range("outer"), session.range("inner"):
            assert session.counter("loss", 0.25, "nats")
            assert session.emit_counter("loss", 2)
    after = time.monotonic_ns()
    rows = {row["name"]: row for row in session.trace.markers.to_dicts()}
    assert set(rows) == {"begin", "outer", "inner"}
    assert rows["begin"]["kind"] == "instant" and rows["inner"]["kind"] == "nested range"
    assert before <= rows["outer"]["start"] <= rows["inner"]["start"]
    assert rows["inner"]["end"] <= rows["outer"]["end"] <= after
    counters = session.trace.counters.to_dicts()
    assert [(row["name"], row["value"], row["unit"]) for row in counters] == [
        ("loss", 0.25, "nats"),
        ("loss", 2.0, None),
    ]
    statistics = session.get_statistics()
    assert (statistics.events_emitted, statistics.events_dropped) == (5, 0)
    assert statistics.duration_ns > 0
    assert session.trace._health()["good"]
    processes = session.trace.table("processes").to_dicts()
    assert [row["pid"] for row in processes] == [os.getpid()]


def test_a_range_that_is_open_at_the_end_is_kept() -> None:
    session = Session()
    span = session.range("never left")
    span.__enter__()
    session.stop()
    span.__exit__(None, None, None)
    (row,) = session.trace.markers.to_dicts()
    assert (row["name"], row["kind"]) == ("never left", "open nested range")


def test_a_decorator_records_calls() -> None:
    with Session() as session:

        @session.trace_function
        def work(number: int) -> int:
            return number + 1

        assert work(1) == 2
    assert names(session) == [f"{test_a_decorator_records_calls.__name__}.<locals>.work"]


def test_events_after_the_end_are_counted() -> None:
    session = Session()
    session.stop()
    session.stop()
    assert not session.mark("late")
    assert session.statistics.events_dropped == 1


def test_a_kernel_and_its_launch_are_one_row_and_a_call() -> None:
    params = KernelParams((4, 2, 1), (128, 1, 1), 1024, 32)
    with Session() as session:
        session.emit(
            TraceEvent(EventType.KernelLaunch, 100, 5, correlation_id=9, name="saxpy", kernel_params=params)
        )
        session.emit(
            TraceEvent(EventType.KernelComplete, 200, 50, device_id=1, stream_id=7, correlation_id=9)
        )
    (kernel,) = session.trace.kernels.to_dicts()
    (call,) = session.trace.api_calls.to_dicts()
    assert (kernel["name"], kernel["start"], kernel["end"], kernel["stream"]) == ("saxpy", 200, 250, 7)
    assert (kernel["grid_x"], kernel["block_x"], kernel["registers"]) == (4, 128, 32)
    assert (call["start"], call["end"], call["correlation"]) == (100, 105, kernel["correlation"])
    assert [row["ordinal"] for row in session.trace.table("devices").to_dicts()] == [1]
    assert len(session.trace.table("launches")) == 1


def test_other_kinds_have_their_tables() -> None:
    with Session() as session:
        session.emit(
            TraceEvent(EventType.MemcpyD2H, 10, 5, flow_info=FlowInfo(3, FlowType.AsyncCpuGpu, False))
        )
        session.emit(MemoryEvent(64, 0x10, True, "pool", MemoryCategory.Gradient))
        session.emit(CounterEvent("power", 250.0, "W", 2))
        session.allocation(0x20, 128, category=MemoryCategory.Activation)
        session.free(0x20)
        session.flow(5, name="request")
        for kind in EventType:
            session.emit(TraceEvent(kind, 1000))
    rows = session.trace.rows
    assert {kind.table for kind in EventType} <= set(rows)
    assert session.trace.counters.to_dicts()[0]["instance"] == 2
    categories = [row["category"] for row in session.trace.allocations.to_dicts()]
    assert categories[:2] == ["gradient", "activation"]
    flows = session.trace.flows.to_dicts()
    assert [(row["flow"], row["phase"]) for row in flows] == [(3, "end"), (5, "start")]


def test_masked_values_of_numpy_are_unknown() -> None:
    numpy = pytest.importorskip("numpy")
    completed = numpy.ma.masked_array([15, 25, 35], mask=[False, True, False])
    times = numpy.ma.masked_array([10, 20, 30], mask=False)
    with Session() as session:
        rows = {"name": "m", "start": times, "duration": 1, "completed": completed}
        assert session.emit_many("kernels", rows) == 3
        # A counter has a value.
        with pytest.raises(ValueError, match="None does not fit into the column value"):
            session.emit_many("counters", {"name": "c", "value": numpy.ma.masked_array([1.5], mask=[True])})
    found = [(row["start"], row["completed"]) for row in session.trace.kernels.to_dicts()]
    assert found == [(10, 15), (20, None), (30, 35)]


def test_columns_are_emitted_at_once() -> None:
    numpy = pytest.importorskip("numpy")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    times = numpy.arange(1, 1001, dtype=numpy.int32)
    table = {"time": times, "name": "loss", "value": numpy.linspace(0, 1, 1000, dtype=numpy.float32)}
    with Session() as session:
        assert session.emit_many("counters", table) == 1000
        frame = polars.DataFrame({"start": [5, 6], "duration": [1, 2], "name": ["a", "b"]})
        assert session.emit_many("kernels", frame) == 2
        assert session.emit_many("kernels", frame.to_arrow()) == 2
        assert session.emit_many("kernels", frame.to_pandas()) == 2
        assert session.emit_many("markers", {"name": pyarrow.array(["x", "y"])}) == 2
        assert session.emit_many("markers", {"name": []}) == 0
        assert session.emit_many("markers", {"name": "p", "payload": -1.5, "kind": "instant"}) == 1
    values = session.trace.counters.to_dicts()
    assert len(values) == 1000 and values[-1]["time"] == 1000 and values[-1]["value"] == 1.0
    kernels = [(row["name"], row["start"], row["end"]) for row in session.trace.kernels.to_dicts()]
    assert kernels == [("a", 5, 6), ("b", 6, 8)] * 3
    assert names(session) == ["x", "y", "p"]


@pytest.mark.parametrize(
    ("table", "columns", "error"),
    [
        ("nothing", {}, ValueError),
        ("markers", {}, ValueError),
        ("markers", {"name": "x", "nope": 1}, ValueError),
        ("markers", {"name": 1}, TypeError),
        ("markers", {"name": "x", "start": "soon"}, TypeError),
        ("markers", {"name": "x", "start": -1}, ValueError),
        ("markers", {"name": "x", "start": 1 << 70}, (TypeError, ValueError)),
        ("markers", {"name": "x", "kind": "square"}, ValueError),
        ("markers", {"name": ["x", "y"], "start": [1]}, ValueError),
        ("counters", {"name": "x", "value": None}, ValueError),
        ("counters", {"name": "x", "value": [object()]}, TypeError),
        ("kernels", {"name": "x", "start": 5, "duration": (1 << 64) - 1}, ValueError),
        ("kernels", {"name": "x", "registers": 1 << 20}, ValueError),
        ("kernels", {"name": "x", "device": (1 << 32) - 1}, ValueError),
        ("kernels", 7, TypeError),
    ],
)
def test_bad_columns_are_refused(table: str, columns: Any, error: Any) -> None:
    with Session() as session:
        with pytest.raises(error):
            session.emit_many(table, columns)
        assert session.mark("still there")
    assert session.trace.rows["markers"] == 1


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        Session(max_bytes=0)
    with pytest.raises(FileNotFoundError):
        Session(tmp_path / "nowhere" / "run.sbt")
    with pytest.raises(IsADirectoryError):
        Session(tmp_path)
    with Session() as session:
        wrong: list[tuple[Any, ...]] = [(), (1,), (None,)]
        for arguments in wrong:
            with pytest.raises(TypeError):
                session.mark(*arguments)
        with pytest.raises(TypeError):
            session.counter("x", "y")
        with pytest.raises((TypeError, UnicodeEncodeError)):
            session.mark("\ud800")
        with pytest.raises(TypeError):
            session.emit("event")  # type: ignore[arg-type]
        with pytest.raises(ts.TraceError, match="still recording"):
            _ = session.trace
        with pytest.raises(ts.TraceError, match="still recording"):
            session.export(tmp_path / "x.json")
    with pytest.raises(ValueError, match="format"):
        session.export(tmp_path / "x.unknown")


def test_all_threads_are_recorded() -> None:
    with Session() as session:

        def work(number: int) -> None:
            for turn in range(20_000):
                session.counter(f"thread {number}", turn)
                if turn % 1000 == 0:
                    session.mark("thousand")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert session.statistics.events_dropped == 0
    assert session.trace.rows["counters"] == 160_000
    assert session.trace.rows["markers"] == 160
    assert len({row["thread"] for row in session.trace.markers.to_dicts()}) == 8
    for number in range(8):
        # A file holds rows in the order in which buffers were written; times have the order of the events.
        of_thread = session.trace.counters.where(name=f"thread {number}").to_dicts()
        of_thread.sort(key=lambda row: row["time"])
        assert [row["value"] for row in of_thread] == list(range(20_000))


def test_a_full_memory_drops_and_says_so() -> None:
    with Session(max_bytes=1000) as session:
        for number in range(50_000):
            session.mark(f"event {number % 10}")
    statistics = session.statistics
    assert statistics.events_emitted == 50_000
    assert session.trace.rows.get("markers", 0) == 50_000 - statistics.events_dropped
    assert statistics.events_dropped > 0
    (loss,) = session.trace._health()["recorded"]
    assert (loss["cause"], loss["count"]) == ("ring full", statistics.events_dropped)


def test_texts_are_bounded_too() -> None:
    with Session(max_bytes=10_000) as session:
        for number in range(5_000):
            session.mark(f"a text that never comes again {number}")
    assert session.statistics.events_dropped > 4_000
    assert not session.trace._health()["good"]


def test_counters_can_be_turned_off() -> None:
    with Session(counters=False) as session:
        assert not session.counter("x", 1)
        assert session.emit_many("counters", {"name": "x", "value": [1, 2]}) == 0
    assert "counters" not in session.trace.rows
    assert session.statistics.counters_off == 3
    assert session.trace.metadata["session.counters_off"] == "3"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(ts.TraceError, match="No space left"):
        Session("/dev/full")


def test_a_disk_that_fills_up_is_reported_at_the_end(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
import tracesmith as ts
from tracesmith._session import Session
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
session = Session(sys.argv[1])
for number in range(200_000):
    session.counter("x", hash(str(number)))
try:
    session.stop()
except ts.TraceError as error:
    assert "File too large" in str(error), error
    assert session.statistics.events_dropped > 0
    print("reported")
"""
    path = tmp_path / "run.sbt"
    done = run(program, path)
    assert done.stdout.strip() == "reported", done.stderr
    # What was written before is there.
    assert ts.open(path).table("processes").to_dicts()


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def child(session: Session, number: int) -> None:
    for turn in range(1000):
        session.counter(f"child {number}", turn)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_a_session(tmp_path: Path, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    path = tmp_path / "run.sbt"
    with Session(path) as session:
        session.mark("parent")
        children = [context.Process(target=child, args=(session, number)) for number in range(3)]
        for process in children:
            process.start()
        for process in children:
            process.join()
            assert process.exitcode == 0
    assert session.trace.rows["counters"] == 3000
    assert len(session.trace.table("processes")) == 4
    assert len(session.trace.table("hosts")) == 1
    assert session.trace._health()["good"]
    assert [file.name for file in tmp_path.iterdir()] == ["run.sbt"]


def test_a_child_that_emits_nothing_leaves_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with Session(tmp_path / "run.sbt") as session:
        session.mark("parent")
        process = context.Process(target=len, args=("x",))
        process.start()
        process.join()
    assert len(session.trace.table("processes")) == 1
    assert names(session) == ["parent"]


def test_a_plain_fork_is_recorded(tmp_path: Path) -> None:
    program = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 and newer warn of forks beside threads
from tracesmith._session import Session
session = Session(sys.argv[1])
session.mark("parent")
if os.fork() == 0:
    session.mark("child")
    if os.fork() == 0:
        session.mark("grandchild")
        sys.exit()
    os.wait()
    sys.exit()
os.wait()
"""
    path = tmp_path / "run.sbt"
    done = run(program, path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    found = sorted(row["name"] for row in ts.open(path).markers.to_dicts())
    assert found == ["child", "grandchild", "parent"]


def test_a_second_session_of_the_path_is_a_part_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "run.sbt"
    first = Session(path)
    second = Session(path)
    first.mark("first")
    second.mark("second")
    second.stop()
    first.stop()
    assert sorted(names(first)) == ["first", "second"]
    # The next session of the path begins anew, if it may.
    whole = path.read_bytes()
    with pytest.raises(ts.CaptureError, match="the file exists") as refused:
        Session(path)
    assert "overwrite=True" in str(refused.value)
    assert path.read_bytes() == whole
    with Session(path, overwrite=True) as third:
        third.mark("third")
    assert names(third) == ["third"]


def test_an_empty_file_is_taken_and_any_other_is_kept(tmp_path: Path) -> None:
    empty = tmp_path / "empty.sbt"
    empty.touch()
    with Session(empty) as session:
        session.mark("taken")
    assert names(session) == ["taken"]
    notes = tmp_path / "notes.txt"
    notes.write_text("not a trace")
    with pytest.raises(ts.CaptureError, match=r"notes\.txt"):
        Session(notes)
    with pytest.raises(IsADirectoryError):
        Session(tmp_path, overwrite=True)
    assert notes.read_text() == "not a trace"


def test_a_part_that_ends_last_is_merged(tmp_path: Path) -> None:
    path = tmp_path / "run.sbt"
    first, second = Session(path), Session(path)
    first.mark("first")
    second.mark("second")
    first.stop()
    second.stop()
    assert sorted(row["name"] for row in ts.open(path).markers.to_dicts()) == ["first", "second"]


def test_a_child_without_a_file_gets_the_error_of_the_package(tmp_path: Path) -> None:
    path = tmp_path / "run.sbt"
    session = Session(path)
    (tmp_path / "run.sbt.parts").touch()

    def range_of_child() -> None:
        with session.range("child"):
            pass

    pid = os.fork()
    if pid == 0:
        calls = (lambda: session.mark("m"), lambda: session.counter("c", 1), range_of_child)
        raised = 0
        for call in calls:
            try:
                call()
            except ts.TraceError as error:
                raised += "cannot create a part" in str(error)
        os._exit(raised)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    (tmp_path / "run.sbt.parts").unlink()
    session.stop()


def test_a_killed_child_loses_nothing_that_was_flushed(tmp_path: Path) -> None:
    path = tmp_path / "run.sbt"
    session = Session(path)
    pid = os.fork()
    if pid == 0:
        for number in range(10_000):
            session.counter("child", number)
        session.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    session.stop()
    assert session.trace.rows["counters"] == 10_000
    # The trace says that a part was not completed.
    assert not session.trace._health()["good"]


def test_the_file_of_a_killed_program_is_readable(tmp_path: Path) -> None:
    program = """
import os, signal, sys, time
from tracesmith._session import Session
session = Session(sys.argv[1])
for number in range(5000):
    session.mark("event")
time.sleep(1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    path = tmp_path / "run.sbt"
    assert run(program, path).returncode == -signal.SIGKILL
    # Nothing was flushed by hand: the writer does it five times a second.
    assert ts.open(path).rows["markers"] == 5000


def test_a_session_can_be_pickled(tmp_path: Path) -> None:
    with Session(tmp_path / "run.sbt") as session:
        other = pickle.loads(pickle.dumps(session))
        other.mark("other")
        other.stop()
    assert names(session) == ["other"]


def test_a_thousand_sessions_need_no_more_memory_than_a_hundred() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def sessions(count: int) -> None:
        for _ in range(count):
            with Session() as session:
                session.mark("x")
            assert len(session.trace.markers) == 1
            assert not session.path.parent.samefile("/tmp")
        gc.collect()

    sessions(100)
    before = resident()
    files = len(os.listdir("/proc/self/fd"))
    sessions(900)
    assert resident() - before < 16 << 20
    assert len(os.listdir("/proc/self/fd")) <= files + 2


def test_the_folder_of_a_session_without_a_path_goes_with_it() -> None:
    with Session() as session:
        session.mark("x")
    folder = session.path.parent
    assert folder.exists()
    del session
    gc.collect()
    assert not folder.exists()


def test_exports_go_by_the_ending(tmp_path: Path) -> None:
    with Session() as session, session.range("r"):
        session.counter("c", 1)
    assert session.export(tmp_path / "copy.sbt") > 0
    assert ts.open(tmp_path / "copy.sbt").rows == session.trace.rows
    assert session.export_to_file(tmp_path / "trace.json") > 0
    assert ts.open(tmp_path / "trace.json").rows["markers"] == 1
    assert session.export(tmp_path / "other", format="perfetto") > 0
    assert ts.open(tmp_path / "other").rows["counters"] == 1


@pytest.mark.parametrize("name", ["copy.sbt", "trace.json", "trace.pftrace"])
def test_an_export_that_fails_leaves_the_file_that_was_there(tmp_path: Path, name: str) -> None:
    program = f"""
import resource
import tracesmith as ts
with ts.Session() as session:
    for number in range(100_000):
        session.counter(f"counter {{number}}", number)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    session.export({name!r})
except (ts.TraceError, OSError) as error:
    print("failed")
"""
    (tmp_path / name).write_text("earlier")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "failed\n", done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "earlier"


def test_an_export_replaces_the_target_of_a_link(tmp_path: Path) -> None:
    with Session() as session:
        session.mark("x")
    for name in ("copy.sbt", "trace.json"):
        (tmp_path / name).write_text("earlier")
        link = tmp_path / f"link-{name}"
        link.symlink_to(name)
        before = (tmp_path / name).open()
        session.export(link)
        assert link.is_symlink()
        assert ts.open(tmp_path / name).rows["markers"] == 1
        assert before.read() == "earlier", "it was not written into"
        before.close()


@pytest.mark.parametrize("name", ["copy.sbt", "trace.json", "trace.sqlite"])
def test_an_export_keeps_what_belongs_to_the_file_that_it_replaces(tmp_path: Path, name: str) -> None:
    with Session() as session:
        session.mark("x")
    path = tmp_path / name
    path.write_text("earlier")
    path.chmod(0o640)
    session.export(path)
    assert path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / f"dangling-{name}"
    link.symlink_to(f"new-{name}")
    session.export(link)
    assert link.is_symlink()
    assert ts.open(tmp_path / f"new-{name}").rows["markers"] == 1
    # No longer name has room beside it.
    long = tmp_path / f"{'n' * (255 - len(name))}{name}"
    long.write_text("earlier")
    session.export(long)
    assert ts.open(long).rows["markers"] == 1
    before = path.read_bytes()
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ts.TraceError, match="being written"):
            session.export(path)
    assert path.read_bytes() == before


@pytest.mark.skipif(COMMAND is None, reason="TRACESMITH_BINARY names the command")
def test_the_command_reads_sessions(tmp_path: Path) -> None:
    path = tmp_path / "run.sbt"
    with Session(path) as session:
        with session.range("step"):
            session.counter("loss", 0.5)
        session.emit(TraceEvent(EventType.KernelLaunch, name="saxpy", duration=2000, stream_id=7))
    assert COMMAND is not None
    out = tmp_path / "out.perfetto-trace"
    for arguments in [["info", path], ["analyze", path], ["export", "-f", "perfetto", "-o", out, path]]:
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    again = ts.open(out)
    assert [row["name"] for row in again.markers.to_dicts()] == ["step"]
    assert [row["value"] for row in again.counters.to_dicts()] == [0.5]
    assert [row["name"] for row in again.kernels.to_dicts()] == ["saxpy"]


def test_the_earlier_names_work(tmp_path: Path) -> None:
    session = TracingSession()
    with pytest.raises(ts.TraceError, match="start"):
        session.emit_counter("x", 1)
    assert session.start(TracingConfig(buffer_size_kb=512, enable_counter_tracks=True))
    assert not session.start()
    assert session.emit(TraceEvent(EventType.Marker, name="hello"))
    assert session.emit_counter("x", 1)
    session.stop()
    assert session.export_to_file(tmp_path / "x.sbt") > 0
    assert session.get_statistics().events_emitted == 2
    assert session.get_statistics().duration_ms() > 0
