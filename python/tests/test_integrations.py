"""Integrations with frameworks, by stand-ins for them, against the fake driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from capture_stage import Stage

import tracesmith

STAND_INS = Path(__file__).parent / "stand_ins"

START = f"""
import sys
sys.path.append({str(STAND_INS)!r})
import gpu, tracesmith as ts, warnings
gpu.start()
"""

NET = """
import torch
class Layer(torch.nn.Module):
    def __init__(self, fails=False): self.fails = fails
    def forward(self, x):
        if self.fails: raise ValueError("in a layer")
        return torch.linear(x)
class Net(torch.nn.Module):
    def __init__(self, fails=False): self.first, self.second = Layer(), Layer(fails)
    def forward(self, x): return self.second(self.first(x))
hooks = torch.nn.modules.module
def clean(): return not hooks._hooks and not hooks._pre_hooks and not torch.autograd.profiler.is_enabled
"""


def names(stage: Stage, trace: str) -> list[str]:
    """The ranges of a trace, in the order of their start."""
    markers = tracesmith.open(stage.work / trace).markers.to_dicts(["start", "name"])
    return [marker["name"] for marker in sorted(markers, key=lambda marker: marker["start"])]


def test_modules_are_ranges_while_it_records(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + NET
        + """
net = Net()
net(1)
with ts.profile("a.sbt", modules=True):
    net(1)
    Layer()(1)
    torch.compiler.compiling = True
    net(1)
    torch.compiler.compiling = False
print(clean())
net(1)
"""
    )
    assert out == "True\n"
    assert names(stage, "a.sbt") == ["Net", "Net.first", "Net.second", "Layer"]


def test_a_forward_that_fails_ends_its_ranges(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + NET
        + """
try:
    with ts.profile("a.sbt", modules=True, ops=True):
        try: Net(fails=True)(1)
        except ValueError: pass
        Net()(1)
        Net(fails=True)(1)
except ValueError as error:
    print(error, clean())
"""
    )
    assert out == "in a layer True\n"
    modules = [name for name in names(stage, "a.sbt") if not name.startswith("aten")]
    assert modules == ["Net", "Net.first", "Net.second"] * 3
    rows = tracesmith.open(stage.work / "a.sbt").markers.to_dicts(["name", "start", "end"])
    assert all(row["end"] is not None for row in rows), rows


def test_a_recording_may_begin_and_end_within_a_forward(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + NET
        + """
class Outer(Net):
    def forward(self, x):
        p = ts.profile("a.sbt", modules=True)
        if self.begins:
            p.start(); self.first(x); p.stop()
        return self.second(x)
net = Outer()
net.begins = True
net(1)
print(clean())
with ts.profile("b.sbt", modules=True): Net()(1)
"""
    )
    assert out == "True\n"
    assert names(stage, "a.sbt") == ["Layer"] and names(stage, "b.sbt") == ["Net", "Net.first", "Net.second"]


def test_a_forward_of_another_thread_ends_its_range_later(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + NET
        + """
import threading
inside, go_on = threading.Event(), threading.Event()
class Slow(Net):
    def forward(self, x):
        inside.set(); go_on.wait()
        return self.first(x)
thread = threading.Thread(target=Slow(), args=(1,))
with ts.profile("a.sbt", modules=True):
    thread.start()
    inside.wait()
print(clean(), [call for call in torch.nn.modules.module._pre_hooks])
go_on.set()
thread.join()
print(clean())
with ts.profile("b.sbt", modules=True): Net()(1)
"""
    )
    assert out == "False []\nTrue\n"
    assert names(stage, "a.sbt") == ["Slow"]
    assert names(stage, "b.sbt") == ["Net", "Net.first", "Net.second"]


def test_operators_are_ranges_while_it_records(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + NET
        + """
import os
with ts.profile("a.sbt", ops=True, modules=True):
    Net()(1)
    print("NVTX_INJECTION64_PATH" in os.environ)
print(clean(), "tracesmith_inject" in torch.autograd.profiler.tool)
"""
    )
    assert out == "False\nTrue True\n"
    found = [name.split(",")[0] for name in names(stage, "a.sbt")]
    assert found == ["Net", "Net.first", "aten::linear", "Net.second", "aten::linear"]


def test_a_schedule_has_them_in_its_active_steps(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + NET
        + """
net = Net()
states = []
with ts.profile("a.sbt", ops=True, modules=True, schedule=ts.schedule(wait=1, active=2, repeat=2)) as p:
    for step in range(7):
        states.append(not clean())
        net(1)
        p.step()
print(states, clean())
"""
    )
    assert out == "[False, True, True, False, True, True, False] True\n"
    found = names(stage, "a.sbt")
    assert (found.count("step"), found.count("Net"), len(found)) == (4, 4, 4 * 6)


def test_what_torch_refuses_is_an_error_and_nothing_stays(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + NET
        + """
with torch.autograd.profiler.emit_nvtx():
    try:
        with ts.profile("a.sbt", ops=True, modules=True): pass
    except ts.CaptureError as error:
        print(error.message)
print(clean())
with ts.profile("b.sbt", ops=True): Net()(1)
sys.modules["torch"] = None
try:
    ts.profile("c.sbt", modules=True).start()
except ts.NotAvailableError as error:
    print(str(error)[:26])
"""
    )
    assert out.splitlines() == [
        "PyTorch cannot name its operators: Profiler is already enabled on this thread",
        "True",
        "modules=True needs PyTorch",
    ]


def test_the_trainer_records_its_active_steps(stage: Stage) -> None:
    out, errors = stage.run(
        START
        + """
from trainer import Trainer
from tracesmith.integrations.transformers import TracesmithCallback
callback = TracesmithCallback("train.sbt")
print(callback.profile, "transformers" in sys.modules, "torch" in sys.modules)
Trainer(callback).train()
print(callback.profile.report.rows.kernels, callback.profile.lost)
ready = []
callback = TracesmithCallback("again.sbt", schedule=ts.schedule(active=1, wait=3), on_trace_ready=lambda p: ready.append(p.path))
Trainer(callback, steps=8).train()
print([path.rsplit("/")[-1] for path in ready])
"""
    )
    assert out == "None False False\n55 0\n['again-1.sbt', 'again-2.sbt']\n", errors
    assert names(stage, "train.sbt") == ["step", "optimizer"] * 5


def test_the_trainer_records_rank_0_or_all(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
from trainer import Trainer
from tracesmith.integrations.transformers import TracesmithCallback
one = ts.schedule(active=1, repeat=1)
for ranks in ("zero", "all"):
    callback = TracesmithCallback("train.sbt", schedule=one, ranks=ranks)
    Trainer(callback, rank=3).train()
    Trainer(callback, rank=3).train()
    print(callback.profile and callback.profile.path.rsplit("/")[-1])
"""
    )
    assert out == "None\ntrain-rank3-run2.sbt\n"
    assert sorted(path.name for path in stage.work.glob("*.sbt")) == [
        "train-rank3-run2.sbt",
        "train-rank3.sbt",
    ]


def test_a_recording_that_fails_does_not_end_the_training(stage: Stage) -> None:
    out, errors = stage.run(
        START
        + """
from trainer import Trainer
from tracesmith.integrations.transformers import TracesmithCallback
trainer = Trainer(TracesmithCallback("no/such/folder.sbt", schedule=ts.schedule(active=2)))
trainer.train()
print(trainer.state.global_step)
Trainer(TracesmithCallback("short.sbt"), steps=3).train()
"""
    )
    assert out == "20\n"
    assert "the training is not recorded: cannot create" in errors
    assert "no step was recorded: training ended in step 3" in errors


@pytest.mark.parametrize("installed", [True, False])
def test_lightning_records_its_active_steps(stage: Stage, installed: bool) -> None:
    out, errors = stage.run(
        START
        + f"""
import lightning.pytorch as pl
if not {installed}:
    sys.modules["lightning.pytorch.profilers"] = sys.modules["pytorch_lightning"] = None
from tracesmith.integrations.lightning import TracesmithProfiler
profiler = TracesmithProfiler("fit.sbt")
pl.Trainer(profiler).fit(20)
print(profiler.recording.report.rows.kernels, profiler.recording.lost)
profiler = TracesmithProfiler("validate.sbt", schedule=ts.schedule(wait=2, active=3, repeat=1))
pl.Trainer(profiler).validate(8)
print(profiler.recording.report.rows.kernels, [base.__module__ for base in type(profiler).__bases__])
"""
    )
    base = "lightning.pytorch.profilers" if installed else "tracesmith.integrations.lightning"
    assert "50 0\n" in out and f"30 ['{base}']\n" in out, out + errors
    assert "tracesmith: " in out and "noop" in out, "the summary"
    found = names(stage, "fit.sbt")
    assert found == ["step", "run_training_batch", "[Strategy]SingleDeviceStrategy.training_step"] * 5


def test_lightnings_actions_need_not_nest(stage: Stage) -> None:
    stage.run(
        START
        + """
from tracesmith.integrations.lightning import TracesmithProfiler
profiler = TracesmithProfiler("fit.sbt", schedule=ts.schedule(active=9))
print(profiler.summary())
profiler.setup("fit")
profiler.start("data"); profiler.start("transfer"); profiler.stop("data"); profiler.stop("transfer")
profiler.stop("never started")
profiler.teardown("fit")
"""
    )
    assert set(names(stage, "fit.sbt")) >= {"data", "transfer"}


def test_a_benchmark_has_the_times_of_the_gpu(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
calls = 0
def work(count, scale=1):
    global calls
    calls += 1
    gpu.launches(count * scale)
few = ts.benchmark(work, 3, iterations=10)
many = ts.benchmark(work, 30, scale=10, warmup=0, iterations=7, name="many", path="many.sbt")
print(calls, set(few.kernels), set(many.kernels), few.kernels_per_call, many.kernels_per_call, many.lost)
by_trace = sum(row["end"] - row["start"] for row in many.trace.kernels.to_dicts())
print(0 < sum(many.gpu_ns) <= by_trace, all(map(int.__le__, many.gpu_ns, many.span_ns)))
print(many.min_ns <= many.median_ns <= many.p95_ns <= max(many.gpu_ns), len(many.cpu_ns), min(many.cpu_ns) > 0)
print(few.speedup_over(many) == many.median_ns / few.median_ns, few.speedup_over(many) > 1)
print(few)
"""
    )
    lines = out.splitlines()
    assert lines[:4] == ["20 {3} {300} 3.0 300 0", "True True", "True 7 True", "True True"], out
    assert lines[4].startswith("work: ") and "of GPU time per call (median of 10)" in lines[4]
    assert lines[6].startswith("  3 kernels per call, "), out
    assert (stage.work / "many.sbt").exists()


def test_a_benchmark_of_nothing_is_an_error(stage: Stage) -> None:
    out, _ = stage.run(
        START
        + """
def named_twice():
    with ts.range("twice"): gpu.launches(1)
for attempt in (
    lambda: ts.benchmark(len, [], iterations=2),
    lambda: ts.benchmark(named_twice, name="twice"),
    lambda: ts.benchmark(gpu.launches, 1, iterations=0),
):
    try: attempt()
    except (ts.CaptureError, ValueError) as error: print(str(error).splitlines()[0])
"""
    )
    assert out.splitlines() == [
        "len launched no GPU work",
        "the trace has 40 of the 20 calls of twice",
        "warmup must be at least 0 and iterations at least 1, not 3 and 0",
    ]


def test_the_magic_records_a_cell(stage: Stage) -> None:
    pytest.importorskip("IPython", reason="needs IPython")
    out, errors = stage.run(
        START
        + """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.user_ns["gpu"] = gpu
shell.run_line_magic("load_ext", "tracesmith")
shell.run_cell("%%tracesmith -o cell.sbt --stacks none\\ngpu.launches(4)\\n6 * 7")
first = shell.user_ns["_trace"]
print("rows", len(first.kernels), first.path.name)
shell.run_cell("%%tracesmith -o cell.sbt\\ngpu.launches(6)")
print("rows", len(shell.user_ns["_trace"].kernels))
shell.run_cell("%%tracesmith\\nx = 1")
print("x", shell.user_ns["x"])
shell.run_cell("%%tracesmith --level light\\ngpu.launches(3)\\n1 / 0")
print("rows", len(shell.user_ns["_trace"].kernels))
for line in ("--level high", "-o no/such/folder.sbt"):
    shell.run_cell(f"%%tracesmith {line}\\nx = 2")
print("x", shell.user_ns["x"])
shell.run_line_magic("unload_ext", "tracesmith")
print("tracesmith" in shell.magics_manager.magics["cell"])
"""
    )
    lines = out.splitlines()
    assert [line for line in lines if line.startswith(("rows", "x "))] == [
        "rows 4 cell.sbt",
        "rows 6",
        "x 1",
        "rows 3",
        "x 1",
    ], out + errors
    assert "Out[" in out and "42" in out and "Trace(cell.sbt: 4 kernels" in out, out
    assert "The cell launched no GPU work." in out and "ZeroDivisionError" in out
    assert "error: argument --level: invalid choice" in errors
    assert "error: the cell was not run: cannot create" in errors and "Traceback" not in errors
    assert lines[-1] == "False"
