"""Replays: what a recording has, on any machine, and runs against the fake driver.

TRACESMITH_FAKE_CUDA names the folder with the fake libcuda.so.1.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tracesmith as ts
from tracesmith import _command, _replay

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "fixtures/replay-h200.sbt"
LAUNCHER = ROOT / "crates/fake-cuda/targets/launcher.c"

#: Kernels in the place of saxpy: the same one, and one that is three units in the last place off.
OTHERS = """.version 7.0
.target sm_52
.address_size 64
"""
SAXPY = """.visible .entry NAME(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
ld.param.u32 %r5, [n];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
setp.ge.u32 %p1, %r4, %r5;
@%p1 bra done;
mul.wide.u32 %rd3, %r4, 4;
ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a];
add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2];
fma.rn.f32 %f2, %f1, %f3, %f2;
CHANGE
st.global.f32 [%rd1], %f2;
done:
ret;
}
"""


@pytest.fixture(autouse=True)
def command() -> None:
    try:
        _command.find()
    except ts.NotAvailableError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of one's own, with the fake driver for the commands that are started in it."""
    fake = os.environ.get("TRACESMITH_FAKE_CUDA")
    if not fake:
        pytest.skip("needs TRACESMITH_FAKE_CUDA")
    for name in ("runtime", "home"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("LD_LIBRARY_PATH", fake)
    for variable in ("XDG_RUNTIME_DIR", "TRACESMITH_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "runtime"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(folder: Path, elements: int = 5000, racy: bool = False) -> str:
    """Records a window of the program that the command's tests use, too."""
    program = Path(os.environ["TRACESMITH_FAKE_CUDA"]) / "launcher"
    if not program.exists():
        if shutil.which("cc") is None:
            pytest.skip("needs cc")
        program = folder / "launcher"
        subprocess.run(["cc", "-w", "-O1", "-o", program, LAUNCHER, "-ldl", "-lpthread"], check=True)
    path = str(folder / "t.sbt")
    arguments = ["profile", "-o", path, "--record", "--capture-range", "cuda-profiler-api", "--"]
    variables = {**_command.environment(), **({"FAKE_CUDA_RACY": "1"} if racy else {})}
    _command.run([*arguments, str(program), "window", str(elements), "2"], env=variables)
    return path


def others(folder: Path) -> str:
    near = "mov.b32 %r6, %f2; add.u32 %r6, %r6, 3; mov.b32 %f2, %r6;"
    kernels = (("saxpy", ""), ("saxpy_near", near))
    text = OTHERS + "".join(SAXPY.replace("NAME", name).replace("CHANGE", change) for name, change in kernels)
    path = folder / "others.ptx"
    path.write_text(text)
    return str(path)


# Without a GPU


def test_a_dry_run_lists_calls_and_is_not_true() -> None:
    plan = ts.replay(FIXTURE, dry_run=True)
    assert (plan.verdict, bool(plan), plan.runs, plan.failure) == ("not run", False, (), None)
    assert [call.kind for call in plan.commands] == [
        *("copy", "synchronize", "set", "launch", "launch", "copy", "synchronize")
    ]
    assert [call.grid for call in plan.launches] == [(4, 1, 1), (1, 1, 1)]
    assert [buffer.nbytes for buffer in plan.buffers] == [4096, 4, 16]
    assert plan.needs["recorded_gpu"] == "NVIDIA H200"
    assert str(plan) == "7 calls (2 launches) on 3 buffers\nreplayable"


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({"kernel": "scale"}, (4,)),
        ({"kernel": ("total", 1)}, (5,)),
        ({"ops": (2, 4)}, (2, 3)),
        ({"ops": range(2, 4)}, (2, 3)),
        ({"stream": 0}, (1, 2, 3, 4, 5, 6, 7)),
    ],
)
def test_a_part_is_selected(options: dict[str, object], numbers: tuple[int, ...]) -> None:
    assert ts.replay(FIXTURE, mode="dry-run", **options).selected == numbers  # type: ignore[arg-type]


def test_a_training_step_is_listed() -> None:
    recording = ts.Recording(ROOT / "fixtures/train-h200.sbt")
    assert len(recording.commands) == len(ts.open(recording.path).commands)
    assert len(recording.launches) > 100 and recording.obstacles == ()


def test_memory_of_the_file_needs_no_gpu() -> None:
    numpy = pytest.importorskip("numpy")
    recording = ts.Recording(FIXTURE)
    address = recording.buffers[0].address
    whole = recording.buffer(address, dtype="f32")
    assert (whole.dtype, whole.shape) == (numpy.dtype("float32"), (1024,))
    # From an address within the buffer on.
    assert list(recording.buffer(address + 8, dtype="f4", count=2)) == list(whole[2:4])
    assert recording.buffer(address).nbytes == 4096
    with pytest.raises(ValueError, match="u8 is uint64"):
        recording.buffer(address, dtype="u8")
    with pytest.raises(ValueError, match="no whole number"):
        recording.buffer(address + 1, dtype="f4")
    with pytest.raises(ValueError, match="4097 are wanted"):
        recording.buffer(address, count=4097)
    with pytest.raises(ts.ReplayError, match="no recorded buffer"):
        recording.buffer(16)


def test_memory_is_counted_from_where_the_command_says() -> None:
    recording = ts.Recording(FIXTURE)
    first = recording.buffers[0]
    note = f"{first.address + 8:#x} is at offset 8 of the buffer at {first.address:#x}; the whole buffer was written"
    assert recording._offset(first.address + 8, first.nbytes, note) == 8
    assert recording._offset(first.address, first.nbytes, "wrote a.npy") == 0
    # Memory that only the end of the window has.
    assert recording._offset(16, 64, "0x10 is at offset 16 of the buffer at 0x0; the whole") == 16
    with pytest.raises(ts.ReplayError, match="bytes were written"):
        recording._offset(first.address + 8, first.nbytes, "")
    with pytest.raises(ts.ReplayError, match="bytes were written"):
        recording._offset(first.address, first.nbytes - 1, "")


def test_a_time_limit_is_in_whole_seconds() -> None:
    for timeout, seconds in ((0.2, "1"), (1e7, "10000000"), (60, "60"), (0, "0")):
        assert ts.Recording(FIXTURE, timeout=timeout)._arguments[-1] == seconds
    for timeout in (-1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            ts.Recording(FIXTURE, timeout=timeout)


def test_a_launch_is_extracted(tmp_path: Path) -> None:
    extracted = ts.Recording(FIXTURE).kernel("scale").extract(tmp_path / "scale")
    assert (extracted.kernel, extracted.command) == ("_Z5scalePfi", 4)
    assert (tmp_path / "scale/reproduce.py").exists()
    with pytest.raises(ts.ReplayError):
        ts.Recording(FIXTURE).extract(tmp_path / "scale", "scale")
    ts.Recording(FIXTURE).extract(tmp_path / "scale", "scale", overwrite=True)


def test_without_a_gpu_the_error_says_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    try:
        ts.replay(FIXTURE)
    except ts.NotAvailableError as error:
        assert error.hint is not None and "dry_run=True" in error.hint
    except ts.TracesmithError:
        pytest.skip("this machine has a GPU, but of another kind")


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no mode 'fast'"):
        ts.replay(FIXTURE, mode="fast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="call .time"):
        ts.replay(FIXTURE, mode="timing")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        ts.replay(FIXTURE, repeat=0)
    with pytest.raises(ValueError, match="follow each other"):
        ts.replay(FIXTURE, ops=range(0, 8, 2), dry_run=True)
    with pytest.raises(ValueError, match="counted from 1"):
        ts.Recording(FIXTURE).kernel("scale", 0)
    with pytest.raises(ts.ReplayError, match="no kernel whose name contains"):
        ts.replay(FIXTURE, kernel="nothing", dry_run=True)
    with pytest.raises(ts.ReplayError, match="cannot read the file"):
        ts.replay(tmp_path / "none.sbt", dry_run=True)
    with pytest.raises(ts.ReplayError, match="no replay recording"):
        ts.replay(ROOT / "fixtures/synthetic-v1.sbt", dry_run=True)


@pytest.mark.parametrize(
    ("verdict", "runs", "code"),
    [("same", ["same"], 1), ("same", ["same", "differs"], 0), ("same", [], 0), ("differs", ["same"], 1)],
)
def test_an_answer_that_contradicts_itself_is_an_error(
    monkeypatch: pytest.MonkeyPatch, verdict: str, runs: list[str], code: int
) -> None:
    import json

    answer = {"verdict": verdict, "runs": [{"verdict": run} for run in runs], "calls": [], "replaced": []}
    done = subprocess.CompletedProcess([], code, json.dumps(answer), "")
    monkeypatch.setattr(_command, "run", lambda *args, **options: done)
    with pytest.raises(ts.ReplayError, match="answered"):
        ts.replay("any.sbt")


# Against the fake driver


def test_a_window_gives_the_same_again(gpu: Path) -> None:
    result = ts.replay(record(gpu), repeat=2, details=True)
    assert (result.verdict, bool(result), result.against) == ("same", True, "recorded")
    assert len(result.runs) == 2 and all(run.device_ns for run in result.runs)
    assert result.differences == () and result.replaced == ()
    assert "saxpy" in {call.name for call in result.calls}
    assert str(result).startswith("run 1: same (7 buffers, 78.2 KiB; 18 calls, ")
    assert repr(result) == "Replay(t.sbt: same, 2 runs)"
    assert ts.replay(result.path, mode="serial")


def test_a_launch_is_timed_and_replaced(gpu: Path) -> None:
    saxpy = ts.Recording(record(gpu)).kernel("saxpy")
    timing = saxpy.time(repeat=3)
    assert (timing.name, timing.runs) == ("saxpy", 3)
    assert timing.min_ns <= timing.median_ns <= timing.max_ns
    new = others(gpu)
    same = saxpy.replace(new)
    assert same and same.replaced[0].old_ns > 0 and same.replaced[0].new_ns > 0
    near = saxpy.replace(new, "saxpy_near")
    assert (near.verdict, bool(near)) == ("differs", False)
    assert near.differences[0].found[0] == near.differences[0].expected[0] + 3
    close = saxpy.replace(new, "saxpy_near", tolerance={"f32": 1e-3})
    assert (close.verdict, bool(close)) == ("within tolerance", False)
    assert close.runs[0].within[0].elements == 5000
    everywhere = ts.replay(saxpy.recording.path, replace={"saxpy": f"{new}:saxpy_near"})
    assert everywhere.verdict == "differs" and everywhere.runs[0].differences


def test_memory_before_a_call(gpu: Path) -> None:
    pytest.importorskip("numpy")
    result = ts.replay(record(gpu))
    saxpy = result.launches[0]
    y = [buffer.address for buffer in result.buffers if buffer.nbytes == 20_000][1]
    before, after = (
        result.buffer(y, before=number, dtype="f4", count=8) for number in (saxpy, saxpy.number + 1)
    )
    assert (before != after).any()
    assert (result.buffer(y, dtype="f4", count=8) == after).all()


def test_the_culprit_is_named(gpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(gpu, 100_000, racy=True)
    steady = ts.Recording(path).check_determinism()
    assert steady and steady.culprit is None and "deterministic: 2 runs" in str(steady)
    monkeypatch.setenv("FAKE_CUDA_RACY", "1")
    found = ts.Recording(path).check_determinism(repeat=8)
    assert not found and found.culprit is not None
    assert found.culprit.name == "accumulate" and "atomic" in found.culprit.cause
    assert str(found).startswith("nondeterministic: #")


def test_a_kernel_that_faults_fails_the_replay(gpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(gpu)
    monkeypatch.setenv("FAKE_CUDA_FAULTING_KERNEL", "vector_add")
    failed = ts.replay(path)
    assert (failed.verdict, bool(failed), failed.runs) == ("failed", False, ())
    assert failed.failure is not None and failed.failure.name == "vector_add"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(failed) and len(failed.failure.parameters) == 4


def test_ctrl_c_ends_the_command(gpu: Path) -> None:
    path = record(gpu)
    program = f"""
import os, signal, threading, time
import tracesmith as ts
threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    ts.replay({path!r}, timeout=0)
except KeyboardInterrupt:
    children = open(f"/proc/self/task/{{os.getpid()}}/children").read()
    print("interrupted", repr(children))
"""
    environment = {**os.environ, "FAKE_CUDA_HANGING_KERNEL": "vector_add"}
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert out == "interrupted ''\n"
    assert time.monotonic() - begun < 30
    assert not [line for line in processes() if path in line]


def processes() -> list[str]:
    """The command lines of all processes."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
    return found


def test_units_are_those_of_the_command() -> None:
    assert [_replay._bytes(size) for size in (0, 1023, 1024, 1 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.0 TiB",
    ]
    assert [_replay._time(time) for time in (0, 999_999, 2_000_000_000)] == ["0 ns", "1000.00 µs", "2.000 s"]
