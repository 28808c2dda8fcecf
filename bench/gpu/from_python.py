"""The Python package in a PyTorch process that has used CUDA for a while, with nothing preloaded.

    from_python.py WHAT

Prints lines `name value`. WHAT is

    windows    time to open and close three windows of 50 steps, their kernels, and what torch.profiler sees behind them
    schedule   a schedule with 9 active steps, in one file and in a file for each cycle
    before     torch.profiler runs first, then a window, then torch.profiler again
    within     torch.profiler runs within a window
    record     a window for replay
    ranges     the cost of a range: not armed, armed, and within a window
    early      a window that opens before CUDA is initialized
"""

import os
import sys
import time

import torch

import tracesmith as ts

WHAT = sys.argv[1]
#: Launches of a step: eight linear layers, each a product and a sum or one kernel of both, and a ReLU.
LAYERS = 8


def show(name, value):
    print(name, value, flush=True)


def main():
    if WHAT == "early":
        return early()
    work = Work()
    work.steps(20)
    {
        "windows": windows,
        "schedule": schedule,
        "before": before,
        "within": within,
        "record": record,
        "ranges": ranges,
    }[WHAT](work)


class Work:
    def __init__(self):
        layers = [torch.nn.Linear(128, 128) for _ in range(LAYERS)]
        self.model = torch.nn.Sequential(*layers).cuda()
        self.x = torch.randn(32, 128, device="cuda")

    def step(self):
        self.model(self.x).relu()

    def steps(self, count):
        for _ in range(count):
            self.step()
        torch.cuda.synchronize()


def by_torch(work, steps):
    """Kernels that torch.profiler sees in so many steps."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        work.steps(steps)
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in seen.events())


def window(work, name, steps=50, **options):
    begun = time.perf_counter()
    p = ts.profile(f"{name}.sbt", overwrite=True, **options)
    p.start()
    opened = time.perf_counter()
    work.steps(steps)
    ended = time.perf_counter()
    p.stop()
    closed = time.perf_counter()
    p.wait()
    show(f"{name}_open_ms", f"{(opened - begun) * 1e3:.1f}")
    show(f"{name}_close_ms", f"{(closed - ended) * 1e3:.1f}")
    show(f"{name}_complete_ms", f"{(time.perf_counter() - closed) * 1e3:.1f}")
    show(f"{name}_kernels", p.report.rows.kernels)
    show(f"{name}_lost", p.lost)
    return p


def windows(work):
    begun = time.perf_counter()
    ts.arm()
    show("arm_ms", f"{(time.perf_counter() - begun) * 1e3:.1f}")
    for name in ("first", "second", "third"):
        window(work, name, stacks=True)
        work.steps(10)
    show("torch_events_behind", by_torch(work, 50))


def schedule(work):
    for name, ready in (("one", None), ("each", lambda p: show(f"cycle_{p.cycle}_kernels", p.report.rows.kernels))):
        plan = ts.schedule(wait=2, warmup=1, active=3, repeat=3)
        with ts.profile(f"{name}.sbt", overwrite=True, schedule=plan, on_trace_ready=ready) as p:
            for _ in range(30):
                work.steps(1)
                p.step()
        show(f"{name}_kernels", p.report.rows.kernels)
        show(f"{name}_cycles", p.cycle)
    with ts.profile("of_nine.sbt", overwrite=True) as p:
        work.steps(9)
    show("nine_steps_kernels", p.report.rows.kernels)


def before(work):
    show("torch_events_first", by_torch(work, 50))
    try:
        window(work, "behind_torch")
    except ts.ConflictError as error:
        show("conflict", str(error).replace("\n", " / "))
    show("torch_events_again", by_torch(work, 50))


def within(work):
    with ts.profile("around.sbt", overwrite=True) as p:
        show("torch_events_within", by_torch(work, 50))
    show("around_kernels", p.report.rows.kernels)


def record(work):
    p = window(work, "recorded", steps=5, record=True)
    show("recorded_calls", p.report.rows.recorded_calls)


def ranges(work):
    def cost(count=200_000):
        begun = time.perf_counter()
        for _ in range(count):
            pass
        empty = time.perf_counter() - begun
        kept = ts.range("kept")
        begun = time.perf_counter()
        for _ in range(count):
            with kept:
                pass
        reused = time.perf_counter() - begun - empty
        begun = time.perf_counter()
        for number in range(count):
            with ts.range("new", payload=number):
                pass
        new = time.perf_counter() - begun - empty
        return f"{reused / count * 1e6:.3f} {new / count * 1e6:.3f}"

    show("range_us_no_tool", cost())
    ts.arm()
    show("range_us_armed", cost())
    with ts.profile("ranges.sbt", overwrite=True, kinds=["nvtx"]) as p:
        show("range_us_recorded", cost())
    show("range_markers", p.report.rows.markers)
    show("range_lost", p.lost)


def early():
    assert not torch.cuda.is_initialized()
    with ts.profile("nothing.sbt", overwrite=True):
        pass
    # Whether a window before CUDA is initialized keeps a forked child from using it.
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if torch.ones(3, device="cuda").sum().item() == 3 else 1)
        except RuntimeError as error:
            show("cuda_in_fork_error", str(error).splitlines()[0])
            os._exit(1)
    show("cuda_in_fork", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    with ts.profile("early.sbt", overwrite=True) as p:
        Work().steps(20)
    show("early_kernels", p.report.rows.kernels)
    show("early_lost", p.lost)
    child = os.fork()
    if child == 0:
        with ts.range("in a fork"):
            os._exit(7)
    show("fork", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
