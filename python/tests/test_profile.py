"""Recording from inside: windows of a process that has used CUDA before, against the fake driver."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from capture_stage import LIMIT, Stage

import tracesmith
from tracesmith._collector import Collector

START = """
import gpu, tracesmith as ts
gpu.start()
gpu.launches(7)
"""


def test_two_windows_hold_what_ran_in_them(stage: Stage) -> None:
    out, errors = stage.run(
        START
        + """
import time
for name, count in (("a.sbt", 100), ("b.sbt", 200)):
    begun = time.perf_counter()
    with ts.profile(name) as p:
        opened = time.perf_counter()
        gpu.launches(count)
        ends = time.perf_counter()
    closed = time.perf_counter()
    gpu.launches(13)
    print(name, p.report.rows.kernels, p.lost, p.report.whole, p.report.failure)
    print(f"open {opened - begun:.3f} s, close {closed - ends:.3f} s")
"""
    )
    assert "a.sbt 100 0 True None" in out and "b.sbt 200 0 True None" in out, out + errors
    assert errors == ""
    assert stage.counts("a.sbt")["kernels"] == 100
    assert stage.counts("b.sbt")["kernels"] == 200


def test_a_trace_opens_when_it_is_complete(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
with ts.profile(stacks=True) as p:
    gpu.launches(5)
print(len(p.trace.kernels), p.path.endswith(".sbt"))
"""
    )
    assert out == "5 True\n"
    assert list((stage.folder / "tmp").iterdir()) == [], "temporary traces are removed"


def test_a_schedule_is_exact_and_one_file(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
plan = ts.schedule(wait=2, warmup=1, active=3, repeat=3)
with ts.profile("run.sbt", schedule=plan) as p:
    for step in range(25):
        gpu.launches(100)
        p.step()
print(p.report.rows.kernels, p.cycle)
"""
    )
    assert out == "900 3\n"
    steps = [event for event in stage.events("run.sbt", "marker") if event["name"] == "step"]
    assert len(steps) == 9


def test_each_cycle_has_a_file_if_somebody_waits_for_it(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
def ready(p):
    print(p.cycle, p.step_num, p.path.rsplit("/")[-1], p.report.rows.kernels)
plan = ts.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
with ts.profile("run.sbt", schedule=plan, on_trace_ready=ready) as p:
    for step in range(12):
        gpu.launches(10)
        p.step()
"""
    )
    assert out == "1 5 run-1.sbt 20\n2 9 run-2.sbt 20\n"


def test_a_cycle_that_is_cut_short_is_given_too(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
def ready(p):
    print(p.cycle, p.report.rows.kernels)
plan = ts.schedule(warmup=1, active=3)
with ts.profile("run.sbt", schedule=plan, on_trace_ready=ready) as p:
    for step in range(6):
        gpu.launches(10)
        p.step()
with ts.profile("next.sbt", schedule=plan, on_trace_ready=ready) as p:
    for step in range(4):
        gpu.launches(10)
        p.step()
"""
    )
    # Two steps of the second cycle had begun: one was over, and the other had launched nothing.
    assert out == "1 30\n2 10\n1 30\n"
    assert not (stage.work / "next-2.sbt").exists(), "the warmup of a cycle that never came"


def test_the_first_file_is_looked_for_at_the_start(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
open("run-1.sbt", "w").close()
plan = ts.schedule(wait=5, active=1)
for overwrite in (False, True):
    try:
        with ts.profile("run.sbt", schedule=plan, on_trace_ready=print, overwrite=overwrite):
            print("started")
    except ts.CaptureError as error:
        print(error.message.rsplit("/")[-1], "|", error.hint)
"""
    )
    assert out == "run-1.sbt | name another file, or pass overwrite=True\nstarted\n"


def test_a_cycle_that_fails_does_not_end_the_program(stage: Stage) -> None:
    out, errors = stage.run(
        START
        + """
import os, signal
open("run-2.sbt", "w").write("of another run")
def ready(p):
    print("ready", p.cycle, p.step_num, p.report.rows.kernels)
plan = ts.schedule(wait=1, active=2, repeat=4)
with ts.profile("run.sbt", schedule=plan, on_trace_ready=ready) as p:
    for step in range(14):
        gpu.launches(10)
        if p.cycle == 2 or step == 8:
            for what in ("report", "trace"):
                try:
                    getattr(p, what)
                    print(what)
                except ts.CaptureError as error:
                    print(step, what, error.message.split(":")[0])
        if step == 10:
            os.kill(p._collector.process, signal.SIGKILL)
        p.step()
"""
    )
    failed = [f"{step} {what} the file exists" for step in (4, 5, 6) for what in ("report", "trace")]
    unfinished = [f"8 {what} the recording has not ended yet" for what in ("report", "trace")]
    assert out.splitlines() == ["ready 1 3 20", *failed, *unfinished, "ready 3 9 20"], out + errors
    assert errors.count("RuntimeWarning: cycle 2 of the recording failed: the file exists") == 1, errors
    assert "RuntimeWarning: cycle 4 of the recording failed: the collector was killed by signal 9" in errors
    assert (stage.work / "run-2.sbt").read_text() == "of another run"


def test_schedules_of_torch_fit(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import enum
class ProfilerAction(enum.Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
actions = [ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE]
with ts.profile("run.sbt", schedule=lambda step: actions[step % 3]) as p:
    for step in range(6):
        gpu.launches(10)
        p.step()
print(p.report.rows.kernels)
"""
    )
    assert out == "20\n"


def test_ranges_and_marks_are_in_the_trace(stage: Stage) -> None:
    stage.run(
        START
        + """
import asyncio
@ts.range
def forward(): gpu.launches(1)
@ts.range("wait", color="red")
async def wait(): await asyncio.sleep(0)
@ts.range("batches", payload=2.5)
def batches(): yield 1
before = ts.range("outside")
with before: pass
with ts.profile("a.sbt"):
    with ts.range("data", payload=32, color="#ff8000"):
        forward()
    asyncio.run(wait())
    assert list(batches()) == [1]
    ts.mark("epoch", payload=3)
    with before: pass
"""
    )
    names = {str(event["name"]): event for event in stage.events("a.sbt", "marker")}
    assert set(names) >= {"data", "forward", "wait", "batches", "epoch", "outside"}, names
    assert len(stage.events("a.sbt", "marker")) == 6
    assert "tracesmith" in str(names["data"]) and "32" in str(names["data"]["fields"])
    assert "f64" in str(names["batches"]["fields"])


def test_a_recorded_window_can_be_replayed(stage: Stage) -> None:
    stage.run(
        START
        + """
copy = gpu.copies()
with ts.profile("rec.sbt", record=True):
    copy()
    gpu.launches(20)
"""
    )
    assert '"same"' in stage.tracesmith("--format", "json", "replay", "rec.sbt")


def test_an_error_of_the_program_passes_and_the_trace_is_kept(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
p = ts.profile("a.sbt")
try:
    with p:
        gpu.launches(5)
        raise KeyError("mine")
except KeyError as error:
    print(error, p.report.rows.kernels)
"""
    )
    assert out == "'mine' 5\n"


def test_a_killed_collector_is_an_error_and_not_the_end(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import os, signal
p = ts.profile("a.sbt")
p.start()
gpu.launches(5)
os.kill(p._collector.process, signal.SIGKILL)
try:
    p.stop()
except ts.CaptureError as error:
    print("killed by signal 9" in str(error), "repair" in error.hint)
gpu.launches(5)
with ts.profile("b.sbt") as p:
    gpu.launches(3)
print(p.report.rows.kernels)
"""
    )
    assert out == "True True\n3\n"


def test_a_killed_program_leaves_its_trace(stage: Stage) -> None:
    stage.run(
        START
        + """
import os, time
ts.profile("a.sbt").start()
gpu.launches(50)
time.sleep(0.5)
os.kill(os.getpid(), 9)
""",
        code=-9,
    )
    deadline = time.monotonic() + 30
    while stage.info("a.sbt").get("last_ns") is None or stage.counts("a.sbt").get("kernels") != 50:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_window_that_is_open_at_the_exit_is_completed(stage: Stage) -> None:
    _, errors = stage.run(
        START
        + """
ts.profile("a.sbt").start()
gpu.launches(50)
"""
    )
    # On a slow machine it says what it waits for.
    assert errors == "" or "waiting for the names of functions" in errors
    assert stage.counts("a.sbt")["kernels"] == 50


def test_the_child_of_a_fork_has_nothing_to_do_with_it(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import os, sys
with ts.profile("a.sbt") as p:
    gpu.launches(5)
    child = os.fork()
    if child == 0:
        with ts.range("in the child"): pass
        p.stop()
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    gpu.launches(5)
print(p.report.rows.kernels, p.lost)
"""
    )
    assert out == "7\n10 0\n"


def test_a_forked_child_can_record_itself(stage: Stage) -> None:
    out, _ = stage.run(
        """
import os, sys, tracesmith as ts
ts.arm()
child = os.fork()
if child == 0:
    import gpu
    gpu.start()
    with ts.profile("child.sbt") as p:
        gpu.launches(4)
    print(p.report.rows.kernels, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert out == "4\n0\n"


def test_a_forked_child_whose_parent_records_is_told_at_once(stage: Stage) -> None:
    out, errors = stage.run(
        START
        + """
import os, time, warnings
with ts.profile("a.sbt") as p:
    gpu.launches(5)
    child = os.fork()
    if child == 0:
        begun = time.monotonic()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with ts.profile("child.sbt") as of_child:
                ts.mark("in the child")
        print(time.monotonic() - begun < 3, of_child.report.rows.markers, [str(one.message) for one in caught], flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    gpu.launches(5)
print(p.report.rows.kernels, p.lost)
"""
    )
    assert out.startswith('True 1 ["the trace is not complete: '), out + errors
    assert "fork" in out.splitlines()[0]
    assert out.endswith("\n10 0\n"), out + errors


def test_a_forked_child_can_be_armed_to_be_ready(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import os
with ts.profile("a.sbt") as p:
    gpu.launches(5)
child = os.fork()
if child == 0:
    ts.arm(ready=True)
    print("armed", flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    )
    assert out == "armed\n"


def test_a_fork_lets_go_of_the_collectors_of_its_parent(stage: Stage) -> None:
    out, errors = stage.run(
        """
import gc, os, sys, threading, traceback, warnings
import tracesmith as ts
warnings.simplefilter("error")
p = ts.profile(flight_recorder="4M")
p.start()
from tracesmith import _arm, _profile
collector = p._collector
inside, go_on = threading.Event(), threading.Event()
def hold():
    with _profile._lock, _arm._lock, collector._lock:
        inside.set(); go_on.wait(60)
thread = threading.Thread(target=hold)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    try:
        print(len(_profile._pending), _profile._folder, collector.is_done, collector._child.stdin.closed)
        p.stop()
        try:
            p.snapshot()
        except ts.CaptureError as error:
            print(error.message)
        print(_profile._lock.acquire(timeout=5), _arm._lock.acquire(timeout=5))
        del p, collector
        gc.collect()
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go_on.set()
thread.join()
import gpu
gpu.start()
gpu.launches(6)
p.stop()
print(code, p.report.rows.kernels, p.lost)
"""
    )
    assert out == "0 None True True\nnothing is being recorded\nTrue True\n0 6 0\n", errors
    assert "Exception ignored" not in errors


def test_a_signal_handler_may_use_a_profile(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
from tracesmith import _arm, _profile
with _profile._lock, _arm._lock:
    # As a handler does that interrupts this thread here.
    with ts.profile("a.sbt") as p:
        gpu.launches(3)
    print(p.report.rows.kernels)
"""
    )
    assert out == "3\n"


def test_cuda_may_come_up_within_the_window(stage: Stage) -> None:
    out, _ = stage.run(
        """
import tracesmith as ts
with ts.profile("a.sbt") as p:
    import gpu
    gpu.start()
    gpu.launches(6)
print(p.report.rows.kernels)
"""
    )
    assert out == "6\n"


def test_under_an_outer_profile_it_is_a_range(stage: Stage) -> None:
    out, errors = stage.run(
        START
        + """
with ts.profile("inner.sbt") as p:
    gpu.launches(5)
print(p.is_nested, p.path)
try:
    p.trace
except ts.CaptureError as error:
    print(error.hint)
""",
        stage.binary,
        "profile",
        "-o",
        "outer.sbt",
        "--",
    )
    assert out.splitlines() == ["True None", "open the outer trace when the program has ended"]
    assert "only a range" in errors
    assert not (stage.work / "inner.sbt").exists()
    assert "tracesmith.profile" in {event["name"] for event in stage.events("outer.sbt", "marker")}


def test_a_warning_that_is_an_error_leaves_nothing_behind(stage: Stage) -> None:
    out, _ = stage.run(
        """
import warnings, tracesmith as ts
p = ts.profile("inner.sbt")
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        p.start()
    except RuntimeWarning:
        print(p.is_nested, p._is_running)
with p:
    print(p.is_nested)
""",
        stage.binary,
        "profile",
        "-o",
        "outer.sbt",
        "--",
    )
    assert out == "False False\nTrue\n"


def test_a_file_that_cannot_be_written_is_an_error(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
for path, options in (("no/such/a.sbt", {}), ("there.sbt", {}), ("there.sbt", {"overwrite": True})):
    open("there.sbt", "a").close()
    try:
        with ts.profile(path, **options) as p:
            gpu.launches(2)
        print("recorded", p.report.rows.kernels)
    except ts.CaptureError as error:
        print(error.message.split(":")[0], "|", error.hint)
"""
    )
    lines = out.splitlines()
    assert lines[0].startswith("cannot create"), lines
    assert lines[1] == "the file exists | name another file, or pass overwrite=True"
    assert lines[2] == "recorded 2"


def test_a_full_disk_is_told_and_does_not_stop_the_program(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
with ts.profile("/dev/full", overwrite=True) as p:
    gpu.launches(1000)
print(p.report.failure is not None, p.report.whole)
try:
    p.trace
except ts.CaptureError as error:
    print(error.message[:26])
"""
    )
    assert out == "True False\nthe trace is not complete:\n"


def test_a_process_is_recorded_once_at_a_time(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
with ts.profile("a.sbt") as p:
    try:
        with ts.profile("b.sbt"):
            pass
    except ts.CaptureError as error:
        print(error)
    gpu.launches(3)
print(p.report.rows.kernels)
"""
    )
    assert "recorded already" in out and out.endswith("3\n"), out
    assert not (stage.work / "b.sbt").exists()


def test_another_profiler_keeps_cupti(stage: Stage) -> None:
    out, _ = stage.run(
        """
import ctypes, gpu, tracesmith as ts
cupti = ctypes.CDLL("libcupti.so.13")
gpu.start()
subscriber, unsubscribe = ctypes.c_void_p(), cupti.cuptiUnsubscribe
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)(lambda *_: None)
# Bound before our library came: `python -m tracesmith run` is the remedy.
assert cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None) == 0
try:
    with ts.profile("a.sbt"):
        pass
except ts.ConflictError as error:
    print(error.hint)
gpu.launches(3)
assert unsubscribe(subscriber) == 0
with ts.profile("a.sbt") as p:
    gpu.launches(4)
print(p.report.rows.kernels)
"""
    )
    assert "python -m tracesmith run" in out and out.endswith("\n4\n"), out


@pytest.mark.parametrize("place", ["block", "trace"])
def test_ctrl_c_ends_the_block_and_keeps_the_trace(stage: Stage, place: str) -> None:
    process = stage.start(
        START
        + f"""
import time
place = {place!r}
p = ts.profile("a.sbt")
try:
    with p:
        gpu.launches(5)
        print("ready", flush=True)
        if place == "block":
            time.sleep(60)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", p.report.rows.kernels)
""",
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    # As a terminal does: to all of its processes.
    import os

    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (0, "interrupted 5\n"), errors


def test_a_decorator_records_each_call(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
@ts.profile("step.sbt")
def step(count):
    gpu.launches(count)
    return count
print(step(3), step.profile.report.rows.kernels, step(4), step.profile.report.rows.kernels)
"""
    )
    assert out == "3 3 4 4\n"
    assert (stage.work / "step.sbt").exists() and (stage.work / "step-2.sbt").exists()


def test_a_coroutine_and_a_generator_are_recorded_until_they_end(stage: Stage) -> None:
    program = (
        START
        + """
import asyncio, inspect
@ts.profile("wait.sbt", overwrite=True)
async def wait(count):
    gpu.launches(count)
    await asyncio.sleep(0)
    gpu.launches(count)
    return count
@ts.profile("batches.sbt", overwrite=True)
def batches(count):
    for _ in range(count):
        gpu.launches(1)
        yield count
print(asyncio.run(wait(3)), inspect.iscoroutinefunction(wait), inspect.isgeneratorfunction(batches))
print(list(batches(4)))
"""
    )
    out, _ = stage.run(
        program + "print(wait.profile.report.rows.kernels, batches.profile.report.rows.kernels)\n"
    )
    assert out == "3 True True\n[4, 4, 4, 4]\n6 4\n"
    out, _ = stage.run(program, stage.binary, "profile", "-o", "outer.sbt", "--")
    assert out == "3 True True\n[4, 4, 4, 4]\n"
    ranges = [event for event in stage.events("outer.sbt", "marker") if event["name"] == "tracesmith.profile"]
    assert len(ranges) == 2 and all(one["end_ns"] is not None for one in ranges), ranges


def test_a_flight_recorder_gives_snapshots(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import time
with ts.profile("f.sbt", flight_recorder="4M") as p:
    gpu.launches(9)
    time.sleep(0.5)
    print(len(p.snapshot().kernels))
"""
    )
    assert out == "9\n"


def test_a_late_snapshot_is_not_taken_for_the_next_one(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import time
with ts.profile("f.sbt", flight_recorder="4M") as p:
    gpu.launches(9)
    time.sleep(0.5)
    try:
        p._collector.dump(0.0)
    except ts.CaptureError as error:
        print("not answered in time" in error.message)
    time.sleep(0.5)
    gpu.launches(1)
    time.sleep(0.5)
    print(len(p.snapshot().kernels))
    print(len(p.snapshot().kernels))
"""
    )
    # A snapshot empties the flight recorder. The late one has the first nine.
    assert out == "True\n1\n0\n"


def test_a_window_that_does_not_open_leaves_the_old_file(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import os
from tracesmith import _collector
open("there.sbt", "w").write("old")
_collector.OPEN_LIMIT = 0.0
try:
    ts.profile("there.sbt", overwrite=True).start()
except ts.CaptureError as error:
    print("no 'open'" in error.message)
"""
    )
    assert out == "True\n"
    assert (stage.work / "there.sbt").read_text() == "old"


def test_a_recording_that_is_refused_leaves_the_old_trace(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
from tracesmith import _command
def refused(make):
    before = open("a.sbt", "rb").read()
    try:
        make()
    except ts.CaptureError as error:
        print(error.message.split(":")[-1].strip()[:40], open("a.sbt", "rb").read() == before)
with ts.profile("a.sbt") as p:
    gpu.launches(3)
p.wait()
with ts.profile("b.sbt"):
    refused(lambda: ts.profile("a.sbt", overwrite=True).start())
refused(lambda: ts.record(1, "a.sbt", overwrite=True))
print(len(ts.open("a.sbt").kernels))
with ts.profile("a.sbt", overwrite=True) as p:
    gpu.launches(4)
print(len(p.trace.kernels))
"""
    )
    lines = out.splitlines()
    assert [line.split()[-1] for line in lines] == ["True", "True", "3", "4"], out


def test_a_collector_that_is_killed_leaves_the_new_trace(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import os, signal, time
with ts.profile("a.sbt") as p:
    gpu.launches(3)
p.wait()
p = ts.profile("a.sbt", overwrite=True)
p.start()
gpu.launches(5)
time.sleep(2.5)
os.kill(p._collector.process, signal.SIGKILL)
try:
    p.stop()
except ts.CaptureError as error:
    print("killed" in error.message)
print(len(ts.open("a.sbt").kernels), os.listdir("."))
"""
    )
    assert out.splitlines()[0] == "True"
    assert out.splitlines()[1].startswith("5 "), out
    assert ".partial" not in out


def test_asking_whether_a_trace_is_complete_does_not_wait_for_others(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
import threading, time
p = ts.profile("a.sbt")
p.start()
held, go_on = threading.Event(), threading.Event()
def hold():
    with p._collector._lock:
        held.set(); go_on.wait(30)
thread = threading.Thread(target=hold)
thread.start()
held.wait()
begun = time.monotonic()
print(p._collector.poll(), p._collector.poll(0.1), time.monotonic() - begun < 20)
go_on.set()
thread.join()
p.stop()
p.wait()
print(p._collector.poll())
"""
    )
    assert out == "False False True\nTrue\n"


def test_a_window_without_cupti_warns_when_it_closes(stage: Stage) -> None:
    libraries = stage.folder / "without-cupti"
    libraries.mkdir()
    fake = Path(stage.environment["LD_LIBRARY_PATH"])
    for library in fake.glob("libcuda.so*"):
        (libraries / library.name).symlink_to(library)
    stage.environment["LD_LIBRARY_PATH"] = str(libraries)
    out, errors = stage.run(
        START
        + """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with ts.profile("a.sbt") as p:
        gpu.launches(3)
    said = [(warning.category.__name__, warning.filename == __file__, str(warning.message)) for warning in caught]
    p.report, p.trace
print(len(said), len(caught), said)
plan = ts.schedule(wait=1, active=1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with ts.profile("b.sbt", schedule=plan, on_trace_ready=lambda p: p.report) as p:
        for step in range(2):
            gpu.launches(3)
            p.step()
print(len(caught), caught[0].filename == __file__)
"""
    )
    assert out.startswith("1 1 [('RuntimeWarning', True, 'the trace is not complete: "), out + errors
    assert "libcupti" in out
    assert out.endswith("\n1 True\n"), out


def test_warnings_that_are_errors_come_when_nothing_is_half_done(stage: Stage) -> None:
    libraries = stage.folder / "without-cupti"
    libraries.mkdir()
    for library in Path(stage.environment["LD_LIBRARY_PATH"]).glob("libcuda.so*"):
        (libraries / library.name).symlink_to(library)
    stage.environment["LD_LIBRARY_PATH"] = str(libraries)
    out, errors = stage.run(
        START
        + """
import warnings
warnings.simplefilter("error")
try:
    with ts.profile("a.sbt"):
        gpu.launches(3)
        raise KeyError("of the program")
except KeyError as error:
    print(error)
try:
    with ts.profile("b.sbt"):
        gpu.launches(3)
except RuntimeWarning as warning:
    print("not complete" in str(warning))
ready = []
p = ts.profile("c.sbt", schedule=ts.schedule(wait=0, active=1), on_trace_ready=lambda p: ready.append(p.cycle))
p.start()
raised = 0
for step in range(3):
    try:
        p.step()
    except RuntimeWarning:
        raised += 1
print(ready, raised, p.cycle)
try:
    p.stop()
except RuntimeWarning:
    print(ready)
"""
    )
    assert out == "'of the program'\nTrue\n[1, 2, 3] 3 4\n[1, 2, 3, 4]\n", out + errors


def test_an_import_has_no_effects(stage: Stage) -> None:
    out, _ = stage.run(
        """
import os, sys, threading
before = dict(os.environ)
import tracesmith as ts
names = dir(ts)
print(len(os.listdir("/proc/self/task")), threading.active_count(), dict(os.environ) == before)
print("tracesmith_inject" in open("/proc/self/maps").read())
print(os.path.exists(f"/proc/self/task/{os.getpid()}/children") and open(f"/proc/self/task/{os.getpid()}/children").read())
with ts.range("nobody listens"): pass
print("tracesmith_inject" in open("/proc/self/maps").read())
"""
    )
    assert out.splitlines() == ["1 1 True", "False", "", "False"]


def test_arming_changes_no_variable_and_adds_one_thread(stage: Stage) -> None:
    out, _ = stage.run(
        """
import os, subprocess, tracesmith as ts
before = dict(os.environ)
ts.arm()
ts.arm()
print(len(os.listdir("/proc/self/task")), dict(os.environ) == before)
print(subprocess.run(["printenv", "TRACESMITH_ARMED"], capture_output=True, text=True).stdout == "")
"""
    )
    assert out == "2 True\nTrue\n"


def test_wrong_options_are_refused_at_once(stage: Stage) -> None:
    out, _ = stage.run(
        """
import tracesmith as ts
for make in (
    lambda: ts.schedule(active=0),
    lambda: ts.schedule(active=1, wait=-1),
    lambda: ts.profile(kinds="kernels"),
    lambda: ts.range("x", color="no color"),
    lambda: ts.profile().step(),
    lambda: ts.profile().trace,
    lambda: ts.profile(level="high").start(),
):
    try:
        make()
        print("nothing")
    except (ValueError, TypeError, ts.TracesmithError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""
    )
    assert [line.split()[0] for line in out.splitlines()] == [
        "ValueError",
        "ValueError",
        "TypeError",
        "ValueError",
        "CaptureError",
        "CaptureError",
        "CaptureError",
    ], out
    assert "light, standard, full" in out, out


def test_a_command_of_an_earlier_version_closes_without_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "tracesmith"
    command.write_text(
        """#!/bin/sh
echo '{"event": "open"}'
read order
echo '{"event": "closed"}'
echo '{"event": "done", "report": {}}'
"""
    )
    command.chmod(0o755)
    monkeypatch.setenv("TRACESMITH_BINARY", str(command))
    collector = Collector(os.getpid(), str(tmp_path / "a.sbt"), [])
    collector.close()
    assert collector.missing == ()
    assert collector.result(LIMIT) == {}


def test_a_warning_names_arguments_instead_of_options() -> None:
    p = tracesmith.profile()
    p._note_missing(["no memory left for rings; raise the limit with --buffer-size"])
    with pytest.warns(RuntimeWarning, match="raise the limit with buffer_size$"):
        p._say()
