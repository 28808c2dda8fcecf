"""A training loop of PyTorch, timed: bound by launches or by the GPU, alone or under a profiler of its own.

    torch_loop.py launch|gpu STEPS none|cuda|full|stacks|proton|forever

Runs the loop three times. Prints `seconds N kernels M bytes B`: N is the median, M what the profiler saw in the last
loop, B what it wrote for it (0 for none). With `forever` it prints a line for each loop until it is killed.
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


for _ in range(10):
    step()
torch.cuda.synchronize()
kernels = size = 0
LOOPS = 3
if profiler == "forever":
    while True:
        print(f"seconds {loop():.5f}", flush=True)
if profiler == "none":
    times = [loop() for _ in range(LOOPS)]
elif profiler == "proton":
    import triton.profiler as proton

    with tempfile.TemporaryDirectory() as folder:
        proton.start(os.path.join(folder, "proton"))
        times = [loop() for _ in range(LOOPS)]
        proton.finalize()
        size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
else:
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if profiler != "cuda" else [])
    times = []
    for _ in range(LOOPS):
        with profile(activities=activities, with_stack=profiler == "stacks") as recorded:
            times.append(loop())
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recorded.export_chrome_trace(file.name)
        size = os.path.getsize(file.name)
        kernels = open(file.name).read().count('"cat": "kernel"')
print(f"seconds {statistics.median(times):.4f} kernels {kernels} bytes {size}")
