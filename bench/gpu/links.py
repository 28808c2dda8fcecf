"""Links of torch.profiler, from kernels to operators: none may be lost by a window that is refused, opens later, or is around it.

    links.py

Prints, for each session of 20 steps, its kernels, those with an external ID, and those whose ID is an operator's. All lines
must be the same. Needs the package and PyTorch.
"""

import json
import os
import tempfile
import warnings

import torch
from torch.profiler import ProfilerActivity, profile

import tracesmith as ts

warnings.simplefilter("ignore")
FOLDER = tempfile.mkdtemp()
NET = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(8)]).cuda()
BATCH = torch.randn(64, 128, device="cuda")


def steps(count):
    for _ in range(count):
        NET(BATCH)
    torch.cuda.synchronize()


def session(inside=lambda: None):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        steps(10)
        inside()
        steps(10)
    path = os.path.join(FOLDER, "session.json")
    profiler.export_chrome_trace(path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    operators = {event["args"].get("External id") for event in events if event.get("cat") == "cpu_op" and "args" in event}
    linked = sum(event["args"].get("External id") in operators for event in kernels)
    return len(kernels), sum("External id" in event["args"] for event in kernels), linked


def refused():
    try:
        with ts.profile(os.path.join(FOLDER, "refused.sbt")):
            print("WRONG: the window opened within a session")
    except ts.ConflictError as error:
        print("refused:", str(error).splitlines()[0][:120])


steps(20)
print("no window", session())
print("a refused window within", session(refused))
with ts.profile(os.path.join(FOLDER, "after.sbt")) as p:
    steps(10)
print("window after it:", len(p.trace.kernels), "kernels,", p.lost, "lost")
print("a window before", session())
with ts.profile(os.path.join(FOLDER, "around.sbt")) as p:
    counts = session()
print("a window around", counts, "and", len(p.trace.kernels), "kernels,", p.lost, "lost")
