"""A training loop of PyTorch, timed: bound by launches or by the GPU, alone or under a profiler of its own.

    torch_loop.py launch|gpu STEPS none|forever|PROFILER,PROFILER... [ROUNDS]

`none` runs the loop three times and prints `seconds N`, the median. `forever` prints a line for each loop until it is
killed. Otherwise the loop runs five times alone, five times under a profiler and five times alone again, for each
profiler in turn, and all that so often: `cuda`, `full` and `stacks` are torch.profiler's (CUDA alone, with CPU, with
stacks too), `proton` is Triton's. Prints `PROFILER N bytes B added P`: the median of the five, what the profiler wrote,
and how many percent they took more than those before and after.
"""

import os
import statistics
import sys
import tempfile
import time

import torch

bound, steps, profiler = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
if bound == "launch":
    width, batch, length = 512, 32, 128
else:
    width, batch, length = 4096, 32, 512
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


def five():
    return statistics.median(loop() for _ in range(5))


for _ in range(10):
    step()
torch.cuda.synchronize()


def under_torch(profiler):
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if profiler != "cuda" else [])
    with profile(activities=activities, with_stack=profiler == "stacks") as recorded:
        seconds = five()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recorded.export_chrome_trace(file.name)
        return seconds, os.path.getsize(file.name)


def under_proton():
    import triton.profiler as proton

    with tempfile.TemporaryDirectory() as folder:
        proton.start(os.path.join(folder, "proton"))
        seconds = five()
        proton.finalize()
        return seconds, sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


if profiler == "forever":
    while True:
        print(f"seconds {loop():.5f}", flush=True)
elif profiler == "none":
    print(f"seconds {statistics.median(loop() for _ in range(3)):.4f}")
else:
    for _ in range(int(sys.argv[4]) if len(sys.argv) > 4 else 3):
        for name in profiler.split(","):
            before = five()
            seconds, size = under_proton() if name == "proton" else under_torch(name)
            # What a profiler leaves behind for a moment is its own, and not the next one's.
            loop()
            added = (2 * seconds / (before + five()) - 1) * 100
            print(f"{name} {seconds:.4f} bytes {size} added {added:.2f}", flush=True)
