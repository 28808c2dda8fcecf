"""torch.profiler within a program that is being recorded: what it sees must be what it sees alone.

    two_profilers.py [PAUSE_SECONDS [within]]

Two sessions of five steps with work before, between and after them; prints what each session saw. With a pause it waits
before, between and after, so that a recording can begin and end around the sessions; with `within` it waits before and after
the third of five steps of each session, so that one can begin and end within.
"""

import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

pause = float(sys.argv[1]) if len(sys.argv) > 1 else 0
is_within = sys.argv[2:] == ["within"]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(64, 512, device="cuda")


def step():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def work(count):
    for _ in range(count):
        step()
    torch.cuda.synchronize()


def session_of_steps():
    if not is_within:
        work(5)
        return
    work(2)
    print("within", flush=True)
    time.sleep(pause)
    work(1)
    time.sleep(pause)
    work(2)


work(5)
print("ready", flush=True)
for session in range(2):
    if not is_within:
        time.sleep(pause)
    work(3)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        session_of_steps()
    events = recorded.events()
    on_gpu = [event for event in events if str(event.device_type).endswith("CUDA")]
    spans = [event.time_range.elapsed_us() for event in on_gpu]
    print(
        f"session {session} cuda_events {len(on_gpu)} cpu_events {len(events) - len(on_gpu)}"
        f" longest_us {max(spans, default=0):.1f}",
        flush=True,
    )
if not is_within:
    time.sleep(pause)
work(3)
print("done", flush=True)
