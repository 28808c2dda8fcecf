"""The first window of a program, in which CUPTI comes up while the program makes graphs ready: it must live on. One that
dies leaves its native stack in first-N.txt.

    FIRST_STARTS    starts of the program (60)
    FIRST_READY     starts of it with CUPTI made ready before, by `tracesmith env --ready` (20)
    FIRST_DELAYED   starts of it by `tracesmith profile --delay` (20)
    FIRST_AT_ONCE   how many of it at a time (1: with others beside it a program is at its graphs less often)
    FIRST_GAPS      starts with another thread that watches CUPTI's table come (20), and as many of a client that does
                    nothing about that
    FIRST_COSTS     starts of each that are timed (15): as it is, armed, armed with CUPTI ready
"""

import collections
import os
import re
import signal
import statistics
import subprocess
import threading
import time


class Starter(threading.Thread):
    """Starts programs, one after another."""

    def __init__(self, tools, variables, number, starts):
        super().__init__()
        self.tools, self.variables, self.number, self.starts = tools, variables, number, starts
        self.ends, self.kernels, self.errors = collections.Counter(), 0, []

    def run(self):
        for _ in range(self.starts):
            self.one_program()

    def one_program(self):
        stacks = self.tools.OUTPUT / f"first-{self.number}.txt"
        watch = {"LD_PRELOAD": str(self.tools.PROGRAMS / "libcrash_stacks.so"), "CRASH_STACKS": str(stacks)}
        environment = self.tools.preloading(self.variables, watch)
        target = subprocess.Popen([str(self.tools.PROGRAMS / "graphs"), "forever"], env=environment, stdout=subprocess.PIPE, text=True)
        trace = f"first-{self.number}.sbt"
        try:
            target.stdout.readline()
            order = [self.tools.TRACESMITH, "record", "--force", "--pid", str(target.pid), "-d", "0.1", "-o", str(self.tools.OUTPUT / trace)]
            done = subprocess.run(order, capture_output=True, text=True)
            # One that dies is not gone at once.
            time.sleep(0.05)
            if done.returncode:
                self.errors.append(done.stderr.strip())
            else:
                self.kernels += self.tools.counts(trace)["kernels"]
            self.ends[target.poll()] += 1
        finally:
            target.kill()
            target.wait()
        if stacks.exists() and not stacks.stat().st_size:
            stacks.unlink()


def measure(tools):
    measure_starts(tools, "armed", tools.armed(), int(os.environ.get("FIRST_STARTS", "60")))
    measure_starts(tools, "armed, CUPTI ready", tools.armed("--ready"), int(os.environ.get("FIRST_READY", "20")))
    measure_delayed(tools, int(os.environ.get("FIRST_DELAYED", "20")))
    measure_gaps(tools, int(os.environ.get("FIRST_GAPS", "20")))
    measure_costs(tools, int(os.environ.get("FIRST_COSTS", "15")))


def measure_starts(tools, how, variables, starts):
    at_once = int(os.environ.get("FIRST_AT_ONCE", "1"))
    starters = [Starter(tools, variables, number, starts // at_once) for number in range(at_once)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    ends = sum((starter.ends for starter in starters), collections.Counter())
    died = {code: count for code, count in ends.items() if code is not None}
    for error in {error for starter in starters for error in starter.errors}:
        tools.row("first", "a window that could not be recorded", error[-300:].replace("\n", " ⏎ "))
    tools.row("first", f"programs that make graphs, {how}, {at_once} at a time, one window in each: started; died, by their codes; kernels in those windows",
              f"{ends.total()}; {died}; {sum(starter.kernels for starter in starters)}", "; {}")


def measure_delayed(tools, starts):
    """Windows that open later in programs that we start: libcupti is to be there when its first graphs have run,
    a quarter of a second before the window."""
    begun, ends, kernels = 0, collections.Counter(), 0
    for _ in range(starts):
        order = tools.profile("delayed.sbt", [str(tools.PROGRAMS / "graphs"), "forever"], "--delay", "0.5", "--duration", "0.1")
        profiler = subprocess.Popen(order, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            profiler.stdout.readline()
            program = int(open(f"/proc/{profiler.pid}/task/{profiler.pid}/children").read().split()[0])
            begun += "libcupti" in open(f"/proc/{program}/maps").read()
            time.sleep(0.8)
            os.kill(program, signal.SIGTERM)
            # Our own, which says how the program ended.
            ends[profiler.wait(60)] += 1
        finally:
            profiler.kill()
            profiler.wait()
        kernels += tools.counts("delayed.sbt")["kernels"]
    tools.row("first", "programs that make graphs, `profile --delay 0.5 --duration 0.1`: with libcupti when their first graphs have run; ends, by their codes; kernels in those windows",
              f"{begun}; {dict(ends)}; {kernels}", f"{starts}; {{-15: {starts}}}")


def measure_costs(tools, starts):
    """Until a program has its context and a first graph: how long that takes, and what memory it has then."""
    cases = {"bare": {}, "armed": tools.armed(), "armed, CUPTI ready": tools.armed("--ready")}
    taken = {name: [] for name in cases}
    for _ in range(starts):
        for name, variables in cases.items():
            begun = time.monotonic()
            target = subprocess.Popen([str(tools.PROGRAMS / "graphs"), "forever"], env=dict(os.environ, **variables), stdout=subprocess.PIPE, text=True)
            try:
                target.stdout.readline()
                milliseconds = (time.monotonic() - begun) * 1e3
                status = open(f"/proc/{target.pid}/status").read()
                taken[name].append((milliseconds, int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1024))
            finally:
                target.kill()
                target.wait()
    for name, found in taken.items():
        times, sizes = ([each[place] for each in found] for place in (0, 1))
        tools.row("first", f"{name}: ms until the program's first graph, least; median; most; MiB of memory, median",
                  f"{min(times):.1f}; {statistics.median(times):.1f}; {max(times):.1f}; {statistics.median(sizes):.1f}")


def measure_gaps(tools, starts):
    clients = {"a thread of another client": plain_gap, "a first window": window_gap}
    gaps = collections.defaultdict(list)
    for _ in range(starts):
        for name, gap in clients.items():
            path = tools.OUTPUT / "gap.txt"
            path.unlink(missing_ok=True)
            gap(tools, path)
            if path.exists():
                gaps[name].append(int(path.read_text()))
    for name in clients:
        found = gaps[name]
        words = f"{statistics.median(found):.0f}; {min(found)} to {max(found)}; {len(found)}" if found else "not known of this libcupti"
        tools.row("first", f"{name} subscribes: ns that CUPTI has a client and no table; least to most; starts", words)


def watching_gap(tools, variables, path):
    return tools.preloading(variables, {"LD_PRELOAD": str(tools.PROGRAMS / "libtable_gap.so"), "TABLE_GAP": str(path)})


def plain_gap(tools, path):
    client = {"CUDA_INJECTION64_PATH": str(tools.PROGRAMS / "libnull_client.so"), "NULL_CALLBACKS": "driver", "NULL_THREAD": "1"}
    subprocess.run([str(tools.PROGRAMS / "graphs")], env=watching_gap(tools, client, path), check=True, capture_output=True)


def window_gap(tools, path):
    environment = watching_gap(tools, tools.armed(), path)
    target = subprocess.Popen([str(tools.PROGRAMS / "graphs"), "forever"], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        target.stdout.readline()
        order = [tools.TRACESMITH, "record", "--force", "--pid", str(target.pid), "-d", "0.05", "-o", str(tools.OUTPUT / "gap.sbt")]
        subprocess.run(order, check=True, capture_output=True)
    finally:
        target.kill()
        target.wait()
