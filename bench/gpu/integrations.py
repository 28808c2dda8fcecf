"""The integrations of the Python package, with the real PyTorch on a real GPU.

    integrations.py

Prints a line `ok` or `WRONG` for each check, with what was expected and what was got. Exits with 1 if one is wrong. Without
transformers, a loop that calls the same events stands in for its Trainer, and a line says so.

    callback   5 steps of 25 are recorded, each with the kernels of one step
    modules    ranges of modules, by place, only while recording; also with torch.compile and after an error
    ops        ranges of operators, forward and backward, and the kernels that analyze --by operator gives them
    benchmark  times of a matrix product, against CUDA events around a queue of 50
"""

import statistics
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch

import tracesmith as ts
from tracesmith.integrations.transformers import TracesmithCallback

WIDTH, LAYERS, BATCH = 256, 4, 32

wrong = 0


def check(name, expected, got, is_right=None):
    global wrong
    right = got == expected if is_right is None else is_right
    wrong += not right
    print(f"{'ok   ' if right else 'WRONG'} {name}: expected {expected}, got {got}", flush=True)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x)))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))

    def forward(self, x, labels=None):
        for block in self.blocks:
            x = block(x)
        return {"loss": (x - labels).square().mean(), "logits": x} if labels is not None else x


class StandIn:
    """The events of transformers.Trainer, in its order."""

    def __init__(self, model, callback, steps):
        self.model, self.callback, self.steps = model, callback, steps

    def train(self):
        args, state, control = SimpleNamespace(process_index=0), SimpleNamespace(), SimpleNamespace()
        optimizer = torch.optim.AdamW(self.model.parameters())

        def call(event):
            getattr(self.callback, event)(args, state, control, model=self.model)

        call("on_train_begin")
        for _ in range(self.steps):
            call("on_step_begin")
            x = torch.randn(BATCH, WIDTH, device="cuda")
            self.model(x, labels=x)["loss"].backward()
            call("on_pre_optimizer_step")
            optimizer.step()
            call("on_optimizer_step")
            optimizer.zero_grad()
            call("on_step_end")
        call("on_train_end")


def trainer(model, callback, steps):
    try:
        import transformers
    except ImportError:
        print("transformers is not installed: a loop that calls the same events stands in for its Trainer")
        return StandIn(model, callback, steps)
    print(f"transformers {transformers.__version__}")
    rows = [{"x": torch.randn(WIDTH), "labels": torch.randn(WIDTH)} for _ in range(BATCH * steps)]
    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=steps,
        per_device_train_batch_size=BATCH,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    return transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[callback])


def callback(folder):
    callback = TracesmithCallback(folder / "train.sbt")
    trainer(Net().cuda(), callback, 25).train()
    report = callback.profile.report
    check("callback, lost records", 0, report.lost)
    steps = callback.profile.trace.markers.where(name="step").to_dicts()
    check("callback, steps", 5, len(steps))
    optimizers = callback.profile.trace.markers.where(name="optimizer").to_dicts()
    check("callback, ranges of the optimizer", 5, len(optimizers))
    each = [
        row["kernels"]
        for row in callback.profile.trace.sql(
            "select m.start, count(*) as kernels from markers m join launches l "
            "on l.call_start >= m.start and l.call_start < m.end join gpu_ops g on g.op = l.op "
            "where m.name = 'step' and g.class = 'compute' group by m.start"
        ).to_dicts()
    ]
    check(
        "callback, kernels",
        f"5 equal numbers of which the sum is {report.rows.kernels}",
        each,
        len(each) == 5 and len(set(each)) == 1 and sum(each) == report.rows.kernels,
    )


def names(trace):
    rows = trace.markers.to_dicts(["start", "name"])
    return [row["name"].split(",")[0] for row in sorted(rows, key=lambda row: row["start"])]


def hooks():
    module = torch.nn.modules.module
    return len(module._global_forward_hooks) + len(module._global_forward_pre_hooks)


def modules():
    net, x = Net().cuda(), torch.randn(BATCH, WIDTH, device="cuda")
    net(x)
    with ts.profile(modules=True) as p:
        net(x)
    expected = ["Net"] + [
        f"Net.blocks.{layer}{part}" for layer in range(LAYERS) for part in ("", ".norm", ".linear")
    ]
    check("modules, ranges", expected, names(p.trace))
    check("modules, hooks that are left", 0, hooks())
    try:
        with ts.profile(modules=True) as p:
            net(torch.randn(BATCH, WIDTH + 1, device="cuda"))
    except RuntimeError:
        pass
    check("modules, ranges up to an error", ["Net", "Net.blocks.0", "Net.blocks.0.norm"], names(p.trace))
    check("modules, hooks after an error", 0, hooks())
    compiled = torch.compile(net, backend="eager")
    expected = compiled(x)
    with ts.profile(modules=True) as p:
        got = compiled(x)
    check("modules, a compiled model computes the same", True, torch.allclose(expected, got, atol=1e-4))
    check("modules, ranges inside of compiled code", 0, len([n for n in names(p.trace) if "linear" in n]))


def operators():
    net, x = Net().cuda(), torch.randn(BATCH, WIDTH, device="cuda")
    net(x, labels=x)["loss"].backward()
    with ts.profile(ops=True, stacks=False) as p:
        net(x, labels=x)["loss"].backward()
        torch.cuda.synchronize()
    found = names(p.trace)
    check("ops, aten::linear", LAYERS, found.count("aten::linear"))
    check("ops, aten::native_layer_norm", LAYERS, found.count("aten::native_layer_norm"))
    backward = [name for name in found if name.endswith("Backward0")]
    check(
        "ops, ranges of backward operators",
        f"{LAYERS} or more of AddmmBackward0",
        backward.count("AddmmBackward0"),
        backward.count("AddmmBackward0") >= LAYERS,
    )
    with ts.profile(stacks=False) as p:
        net(x)
    check("ops, none after the recording", 0, len([name for name in names(p.trace) if "aten" in name]))
    with ts.profile(ops=True, stacks=False, schedule=ts.schedule(wait=1, active=2, repeat=1)) as p:
        for _ in range(5):
            net(x)
            p.step()
    found = names(p.trace)
    check("ops, with a schedule", (2, 2 * LAYERS), (found.count("step"), found.count("aten::linear")))


def benchmark():
    for size in (1024, 4096):
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        ours = ts.benchmark(torch.matmul, a, b, warmup=20, iterations=50, name=f"matmul {size}")
        print(ours)
        by_events, busy = [], torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
        for _ in range(5):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            # Work that keeps the GPU busy while the CPU launches: else the events time the launching of small products.
            for _ in range(4):
                torch.matmul(busy, busy)
            start.record()
            for _ in range(50):
                torch.matmul(a, b)
            end.record()
            end.synchronize()
            by_events.append(start.elapsed_time(end) * 1e6 / 50)
        theirs = statistics.median(by_events)
        # A queue of kernels has gaps of one to two microseconds, and runs at other clocks than single kernels do.
        near = 0.75 * theirs - 3000 < ours.median_ns < 1.25 * theirs + 1000
        check(
            f"benchmark, matmul {size}",
            f"about {theirs / 1e3:.1f} µs by events",
            f"{ours.median_ns / 1e3:.1f} µs",
            near,
        )
        check(
            f"benchmark, kernels of matmul {size}",
            "the same in all calls, 1 or 2",
            set(ours.kernels),
            len(set(ours.kernels)) == 1 and ours.kernels[0] in (1, 2),
        )
        check(f"benchmark, lost records of matmul {size}", 0, ours.lost)


def main():
    folder = Path(tempfile.mkdtemp())
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    # First, as NVTX in PyTorch looks for a tool only once.
    operators()
    modules()
    callback(folder)
    benchmark()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
