"""Recording from around, the machine, and the command, against the fake driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from capture_stage import LIMIT, Stage

START = """
import gpu, tracesmith as ts
gpu.start()
gpu.launches(7)
"""


def test_a_command_is_run_and_recorded(stage: Stage) -> None:
    (stage.work / "train.py").write_text(
        "import gpu\ngpu.start()\ngpu.launches(5)\nprint('trained')\nraise SystemExit(3)\n"
    )
    out, errors = stage.run(
        """
import sys, tracesmith as ts
result = ts.run([sys.executable, "train.py"], out="t.sbt")
print(result.returncode, result.path, len(result.trace.kernels))
"""
    )
    assert out == "trained\n3 t.sbt 5\n", errors


def test_a_command_that_does_not_exist_is_an_error(stage: Stage) -> None:
    out, _ = stage.run(
        """
import tracesmith as ts
try:
    ts.run(["no-such-program"], out="t.sbt")
except ts.NotAvailableError as error:
    print(error.message)
open("there.sbt", "w").close()
try:
    ts.run(["true"], out="there.sbt")
except ts.CaptureError as error:
    print(error.message)
"""
    )
    assert out == "no such program: no-such-program\nthe file exists: there.sbt\n"


def test_an_armed_process_is_recorded_by_another(stage: Stage) -> None:
    armed = stage.start(
        START
        + """
import time
ts.arm()
print("armed", flush=True)
while True:
    gpu.launches(10)
    time.sleep(0.01)
"""
    )
    assert armed.stdout is not None
    assert armed.stdout.readline() == "armed\n"
    try:
        out, errors = stage.run(
            f"""
import tracesmith as ts
trace = ts.record({armed.pid}, "now.sbt", duration="500ms")
print(len(trace.kernels) > 0)
try:
    ts.record(1, "init.sbt", duration=1)
except ts.CaptureError as error:
    print("cannot be recorded" in error.message)
"""
        )
    finally:
        armed.kill()
        armed.communicate(timeout=LIMIT)
    assert out == "True\nTrue\n", errors


def test_recording_a_process_without_cupti_warns(stage: Stage) -> None:
    libraries = stage.folder / "without-cupti"
    libraries.mkdir()
    for library in Path(stage.environment["LD_LIBRARY_PATH"]).glob("libcuda.so*"):
        (libraries / library.name).symlink_to(library)
    stage.environment["LD_LIBRARY_PATH"] = str(libraries)
    armed = stage.start(START + "ts.arm()\nprint('armed', flush=True)\nimport time\ntime.sleep(60)\n")
    assert armed.stdout is not None and armed.stdout.readline() == "armed\n"
    try:
        _, errors = stage.run(
            f"import tracesmith as ts\nts.record({armed.pid}, 'now.sbt', duration='100ms')\n"
        )
    finally:
        armed.kill()
        armed.communicate(timeout=LIMIT)
    assert "RuntimeWarning: incomplete: " in errors and "libcupti" in errors, errors


def test_ctrl_c_reaches_a_command_once_and_its_trace_is_kept(stage: Stage) -> None:
    (stage.work / "train.py").write_text(
        """
import gpu, signal, sys, time
count = 0
def interrupted(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, interrupted)
gpu.start()
gpu.launches(5)
print("ready", sys.stdin.readline().strip(), flush=True)
end = time.monotonic() + 30
while not count and time.monotonic() < end:
    time.sleep(0.05)
# More than a pipe holds, for somebody who reads it.
sys.stderr.write("x" * 200_000 + "\\n")
time.sleep(1)
print("interrupted", count, flush=True)
"""
    )
    process = stage.start(
        """
import sys, tracesmith as ts
try:
    ts.run([sys.executable, "-B", "train.py"], out="t.sbt")
except KeyboardInterrupt:
    print("raised", len(ts.open("t.sbt").kernels))
""",
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready go\n"
    time.sleep(0.3)
    # As a terminal does: to all processes of the group.
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (0, "interrupted 1\nraised 5\n"), errors[-2000:]
    assert errors.count("x") >= 200_000


def test_ctrl_c_reaches_the_children_of_a_command_once(stage: Stage) -> None:
    count = """
import signal, sys, time
count = 0
def interrupted(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, interrupted)
"""
    wait = """
end = time.monotonic() + 30
while not count and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(1)
"""
    (stage.work / "child.py").write_text(
        f"{count}print('child ready', flush=True)\n{wait}print('child', count, flush=True)\n"
    )
    (stage.work / "parent.py").write_text(
        f"{count}import subprocess\nchild = subprocess.Popen([sys.executable, '-B', 'child.py'])\n"
        f"{wait}child.wait()\nprint('parent', count, flush=True)\n"
    )
    process = stage.start(
        """
import sys, tracesmith as ts
try:
    ts.run([sys.executable, "-B", "parent.py"], out="t.sbt")
except KeyboardInterrupt:
    print("raised")
""",
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "child ready\n"
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (0, "child 1\nparent 1\nraised\n"), errors[-2000:]


def test_ctrl_c_ends_the_recording_of_another_process(stage: Stage) -> None:
    armed = stage.start(
        START
        + """
import time
ts.arm()
print("armed", flush=True)
while True:
    gpu.launches(10)
    time.sleep(0.01)
"""
    )
    assert armed.stdout is not None and armed.stdout.readline() == "armed\n"
    try:
        recorder = stage.start(
            f"""
import tracesmith as ts
print("begins", flush=True)
print(len(ts.record({armed.pid}, "now.sbt").kernels) > 0)
""",
            start_new_session=True,
        )
        assert recorder.stdout is not None and recorder.stdout.readline() == "begins\n"
        deadline = time.monotonic() + LIMIT
        while not (stage.work / "now.sbt").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(recorder.pid, signal.SIGINT)
        out, errors = recorder.communicate(timeout=LIMIT)
    finally:
        armed.kill()
        armed.communicate(timeout=LIMIT)
    assert (recorder.returncode, out) == (0, "True\n"), errors


def test_a_second_ctrl_c_ends_a_command_by_force(stage: Stage) -> None:
    slow = stage.work / "slow"
    slow.write_text("#!/bin/sh\ntrap 'echo >> asked' INT\necho > ready\nwhile :; do sleep 0.1; done\n")
    slow.chmod(0o755)
    stage.environment["TRACESMITH_BINARY"] = str(slow)
    process = stage.start(
        """
from tracesmith import _command
try:
    _command.run(["record"])
except KeyboardInterrupt:
    print("raised")
""",
        start_new_session=True,
    )
    for file in ("ready", "asked"):
        deadline = time.monotonic() + LIMIT
        while not (stage.work / file).exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # The first one is passed on, and the command goes on.
        time.sleep(0.5)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (0, "raised\n"), errors
    assert (stage.work / "asked").read_text() == "\n"


def test_run_starts_a_program_that_can_be_recorded(stage: Stage) -> None:
    (stage.work / "train.py").write_text(
        "import gpu, os, sys, tracesmith as ts\n"
        "print(__name__, sys.argv[1:], 'tracesmith_inject' in os.environ['LD_PRELOAD'])\n"
        "gpu.start()\n"
        "gpu.launches(3)\n"
        "with ts.profile('t.sbt') as p:\n"
        "    gpu.launches(4)\n"
        "print(p.report.rows.kernels, p.lost)\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-m", "tracesmith", "run", "train.py", "--lr", "3"],
        cwd=stage.work,
        env=stage.environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout == "__main__ ['--lr', '3'] True\n4 0\n", done.stderr


def test_the_module_is_the_command(stage: Stage) -> None:
    for arguments, code in (
        (["--version"], 0),
        (["info", "no-such-file.sbt"], 2),
        (["run"], 2),
        (["run", "--help"], 0),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "tracesmith", *arguments],
            cwd=stage.work,
            env=stage.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == code, done
    assert "usage: python -m tracesmith run" in done.stdout


def test_the_machine_is_described(stage: Stage) -> None:
    out, _ = stage.run(
        """
import tracesmith as ts
print(len(ts.devices()), ts.devices()[0].capability)
doctor = ts.doctor()
print(doctor.can_record, len(doctor.checks) > 5, all(check.state != "ok" for check in doctor.problems))
print("libcuda.so" in open("/proc/self/maps").read())
"""
    )
    lines = out.splitlines()
    assert lines[0].startswith(("1 (", "2 (")), out
    assert lines[1].endswith("True True")
    assert lines[2] == "False", "the driver is looked at in another process"


def test_errors_of_the_command_are_exceptions(stage: Stage) -> None:
    out, _ = stage.run(
        """
import tracesmith as ts
from tracesmith import _command
try:
    _command.run(["record", "--pid", "1", "--dump"], error=ts.CaptureError)
except ts.CaptureError as error:
    print(type(error).__name__, bool(error.message), bool(error.hint))
print(_command.run(["record", "--nonsense"], check=False).returncode)
"""
    )
    assert out == "CaptureError True True\n2\n"


@pytest.mark.parametrize(
    ("variable", "words"),
    [("/no/such/program", "is not a program"), ("", "is not installed beside this package")],
)
def test_a_missing_command_is_an_error(stage: Stage, variable: str, words: str) -> None:
    stage.environment["TRACESMITH_BINARY"] = variable
    stage.environment["PATH"] = ""
    out, _ = stage.run(
        """
import tracesmith as ts
from tracesmith import _command
_command._folders = lambda: iter(["/no/such/folder"])
try:
    ts.devices()
except ts.NotAvailableError as error:
    print(error.message)
"""
    )
    assert words in out


def interrupted_record(tmp_path: Path, at_the_end: str) -> tuple[str, str]:
    """Ends `ts.record` with Ctrl-C, where the command is a script. Returns what is printed."""
    command = tmp_path / "tracesmith"
    command.write_text(
        f"#!/bin/sh\ntrap '{at_the_end}' INT\necho ready > ready\nwhile :; do sleep 0.05; done\n"
    )
    command.chmod(0o755)
    program = """
import tracesmith as ts
try:
    print(ts.record(4711, "a.sbt", overwrite=True).rows["kernels"])
except (ts.CaptureError, KeyboardInterrupt) as error:
    print(type(error).__name__, error)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "TRACESMITH_BINARY": str(command)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    begun = time.monotonic()
    while not (tmp_path / "ready").exists():
        assert time.monotonic() - begun < LIMIT
        time.sleep(0.01)
    # It may be there before Python knows that the command was started.
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=LIMIT)


def test_warnings_of_a_recording_that_ctrl_c_ends_are_kept(tmp_path: Path, fixtures: Path) -> None:
    end = f'echo "warning: incomplete: --force" >&2; cp "{fixtures}/train-h200.sbt" a.sbt; exit 0'
    out, errors = interrupted_record(tmp_path, end)
    assert out == "150\n", errors
    assert "RuntimeWarning: incomplete: overwrite=True" in errors


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ('echo "error: it was refused" >&2; exit 2', "CaptureError it was refused"),
        ("exit 0", "CaptureError process 4711 was not recorded into a.sbt"),
        ("trap - INT; kill -INT $$", "KeyboardInterrupt "),
    ],
)
def test_ctrl_c_does_not_return_an_earlier_trace(
    tmp_path: Path, fixtures: Path, end: str, message: str
) -> None:
    (tmp_path / "a.sbt").write_bytes((fixtures / "train-h200.sbt").read_bytes())
    out, errors = interrupted_record(tmp_path, end)
    assert out == f"{message}\n", errors
