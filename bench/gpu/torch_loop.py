"""A training loop of PyTorch, timed: bound by launches or by the GPU, alone or under a profiler of its own.

    torch_loop.py launch|gpu STEPS none|forever
    torch_loop.py launch|gpu STEPS turns none|cuda|full|stacks|proton

`none` runs the loop three times and prints `seconds N`, the median. `forever` prints a line for each loop until it is
killed. `turns` says `ready`, runs the loop for each line of its input, after a few steps that are not timed (on other
CPUs than before if the line says `elsewhere`), under a profiler: `cuda`, `full` and `stacks` are torch.profiler's (CUDA
alone, with CPU, with stacks too), `proton` is Triton's. At the end of its input it prints `bytes B kernels K`: what the
profiler wrote, and how many kernels are rows of it.
"""

import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import torch

bound, steps, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
if bound == "launch":
    width, batch, length, untimed_steps = 512, 32, 128, 3
else:
    width, batch, length, untimed_steps = 4096, 32, 512, 1
model = torch.nn.Sequential(
    torch.nn.Linear(width, 4 * width),
    torch.nn.GELU(),
    torch.nn.LayerNorm(4 * width),
    torch.nn.Linear(4 * width, width),
).cuda()
encoder = torch.nn.TransformerEncoderLayer(width, 8, batch_first=True, dropout=0.1).cuda()
optimizer = torch.optim.AdamW(list(model.parameters()) + list(encoder.parameters()), lr=1e-3)
x = torch.randn(batch, length, width, device="cuda")
y = torch.randn(batch, length, width, device="cuda")


def step():
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = ((encoder(model(x)) - y) ** 2).mean()
    loss.backward()
    optimizer.step()


def loop():
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


for _ in range(10):
    step()
torch.cuda.synchronize()


def scatter():
    """Moves every thread of this process to some CPU, and leaves it to the kernel from there. It would keep them where they
    happened to be at first, near each other or not, for as long as the process lives."""
    everywhere = os.sched_getaffinity(0)
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), {random.choice(list(everywhere))})
            os.sched_setaffinity(int(thread), everywhere)
        except ProcessLookupError:
            pass


def take_turns():
    print("ready", flush=True)
    for order in sys.stdin:
        if "elsewhere" in order:
            scatter()
        # Others had the caches and the GPU since the turn before.
        for _ in range(untimed_steps):
            step()
        print(f"seconds {loop():.5f}", flush=True)


def under_torch(profiler):
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if profiler != "cuda" else [])
    with profile(activities=activities, with_stack=profiler == "stacks") as recorded:
        take_turns()
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder, "trace.json")
        recorded.export_chrome_trace(str(trace))
        text = trace.read_bytes()
        return len(text), text.count(b'"cat": "kernel"')


def under_proton():
    import triton.profiler as proton

    with tempfile.TemporaryDirectory() as folder:
        proton.start(os.path.join(folder, "proton"))
        take_turns()
        proton.finalize()
        # It adds kernels up by their names.
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)), 0


if mode == "forever":
    while True:
        print(f"seconds {loop():.5f}", flush=True)
elif mode == "none":
    print(f"seconds {statistics.median(loop() for _ in range(3)):.4f}")
elif sys.argv[4] == "none":
    take_turns()
else:
    written, kernels = under_proton() if sys.argv[4] == "proton" else under_torch(sys.argv[4])
    print(f"bytes {written} kernels {kernels}", flush=True)
