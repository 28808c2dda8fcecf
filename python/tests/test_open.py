"""Opening files: good ones, bad ones, many of them."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tracesmith


def test_a_trace_knows_what_it_is(train: tracesmith.Trace, fixtures: Path) -> None:
    assert train.path == fixtures / "train-h200.sbt"
    assert train.rows["kernels"] == len(train.kernels) == 150
    assert train.metadata["command"].startswith("python")
    span = train.span
    assert span is not None and train.duration_ns == span[1] - span[0] > 0
    assert repr(train) == "Trace(train-h200.sbt: 150 kernels, 17.800 s, no known loss)"


def test_health_is_not_called_good_before_the_file_was_read(fixtures: Path, tmp_path: Path) -> None:
    content = bytearray((fixtures / "train-h200.sbt").read_bytes())
    path = tmp_path / "damaged.sbt"
    # One flipped bit in the data of a block of events is seen when the block is read, and not before.
    for offset in range(len(content) // 2, len(content), 97):
        content[offset] ^= 1
        path.write_bytes(content)
        content[offset] ^= 1
        trace = tracesmith.open(path)
        before = repr(trace)
        if "data was lost" not in before and not trace.verify().is_good:
            break
    else:
        raise AssertionError("no bit is seen only when it is read")
    assert "good" not in before and "no known loss" in before
    assert "data was lost" in repr(trace)
    assert trace.health.damage


def test_health_is_called_good_once_the_file_was_read(fixtures: Path) -> None:
    trace = tracesmith.open(fixtures / "train-h200.sbt")
    assert not trace.health.checked and str(trace.health).startswith("health: no known loss")
    assert trace.verify().checked and str(trace.health).startswith("health: good")
    assert repr(trace).endswith(", good)")


def test_files_of_other_tools_open(fixtures: Path, data: Path) -> None:
    assert tracesmith.open(fixtures / "kineto-training.json").rows["kernels"] > 0
    assert tracesmith.open(data / "nsys" / "nsysai_healthy_1pct.sqlite").rows["kernels"] == 400
    assert tracesmith.open(data / "kineto" / "triton_example_triton_example.json.gz").rows


def test_several_files_are_one_trace(fixtures: Path) -> None:
    both = tracesmith.open([fixtures / "train-h200.sbt", fixtures / "demo-h200.sbt"])
    each = [tracesmith.open(fixtures / name).rows["kernels"] for name in ("train-h200.sbt", "demo-h200.sbt")]
    assert both.rows["kernels"] == sum(each) and both.path is None
    assert len(both.hosts.to_dicts()) >= 1


def test_a_trace_is_pickled_by_its_paths(
    fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fixtures)
    one_trace = tracesmith.open("train-h200.sbt")
    both_traces = tracesmith.open(["train-h200.sbt", "demo-h200.sbt"])
    # The program may change its folder before it pickles them.
    monkeypatch.chdir(tmp_path)
    one, both = pickle.dumps(one_trace), pickle.dumps(both_traces)
    assert len(pickle.loads(one).kernels) == 150
    assert pickle.loads(one).path == fixtures / "train-h200.sbt"
    assert len(pickle.loads(both).kernels) > 150
    in_memory = tracesmith.Trace.from_bytes((fixtures / "train-h200.sbt").read_bytes())
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(in_memory)


def test_bytes_open(fixtures: Path) -> None:
    trace = tracesmith.Trace.from_bytes((fixtures / "train-h200.sbt").read_bytes())
    assert trace.rows["kernels"] == 150 and trace.path is None


def test_bad_files_are_errors_with_the_sentence_of_the_command(tmp_path: Path, fixtures: Path) -> None:
    with pytest.raises(FileNotFoundError, match="cannot open"):
        tracesmith.open(tmp_path / "missing.sbt")
    with pytest.raises(OSError, match="directory"):
        tracesmith.open(tmp_path)
    empty = tmp_path / "empty.sbt"
    empty.write_bytes(b"")
    with pytest.raises(tracesmith.TraceError, match=r"empty\.sbt"):
        tracesmith.open(empty)
    text = tmp_path / "notes.txt"
    text.write_text("hello\n")
    with pytest.raises(tracesmith.TraceError, match="not a trace: this looks like text"):
        tracesmith.open(text)
    with pytest.raises(ValueError, match="no traces"):
        tracesmith.open([])
    with pytest.raises(TypeError):
        tracesmith.open(7)  # type: ignore[arg-type]


def test_truncated_and_damaged_files_never_crash(tmp_path: Path, fixtures: Path) -> None:
    whole = (fixtures / "train-h200.sbt").read_bytes()
    file = tmp_path / "part.sbt"
    opened = 0
    for length in range(0, len(whole), len(whole) // 40):
        file.write_bytes(whole[:length])
        try:
            trace = tracesmith.open(file)
        except tracesmith.TraceError:
            continue
        opened += 1
        assert len(trace.kernels.to_dicts(["start"])) <= 150
        assert "data was lost" in repr(trace)
    assert opened > 10
    for place in range(200, len(whole), len(whole) // 40):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            trace = tracesmith.open(file)
            for name in trace.rows:
                trace.table(name).to_dicts()
        except (tracesmith.TraceError, ValueError):
            pass


def test_a_thousand_opens_take_no_more_memory(fixtures: Path) -> None:
    """A process of its own: what other tests keep must not count."""
    program = f"""
import resource, tracesmith
def work(times):
    for _ in range(times):
        trace = tracesmith.open({str(fixtures / "train-h200.sbt")!r})
        trace.kernels.to_dicts(["start"])
        trace.kernels.__arrow_c_stream__()
        trace.sql("select count(*) from copies").to_dicts()
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
before = work(200)
print(work(1000) - before)
"""
    grown = int(
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    )
    assert grown < 8 << 20, f"{grown:,} bytes more after 1,000 opens"


def test_ctrl_c_stops_a_query(fixtures: Path) -> None:
    program = f"""
import tracesmith
trace = tracesmith.open({str(fixtures / "train-h200.sbt")!r})
print("ready", flush=True)
try:
    trace.sql("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n")
except KeyboardInterrupt:
    print("stopped", trace.sql("select 1 as one").to_dicts(), flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopped [{'one': 1}]\n"
    assert time.monotonic() - begun < 5
    assert process.wait(timeout=10) == 0


def test_importing_starts_nothing() -> None:
    program = """
import os, sys, threading
before = dict(os.environ)
import tracesmith
assert dict(os.environ) == before
assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1
assert not [name for name in ("numpy", "pandas", "polars", "pyarrow", "torch", "IPython") if name in sys.modules]
maps = open("/proc/self/maps").read()
assert "libcuda" not in maps and "libcupti" not in maps
"""
    subprocess.run([sys.executable, "-c", program], check=True)
