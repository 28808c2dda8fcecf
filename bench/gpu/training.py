"""What profilers add to training loops of PyTorch. Each profiler has a process of its own, from its start to its end, and
all of them take turns, in another order each time, so that what else the machine does falls on all alike; in several sets,
because processes differ (which CPUs their threads got, for one).

    TORCH_SETS      sets of processes (4)
    TORCH_TOGETHER  how many of them are there at once and take turns, for many sets in little time (1)
    TORCH_TURNS     loops of each process (20)
    TORCH_CASES     names of CASES, separated by ';', to have only those
    TORCH_CPUS      "elsewhere" has each loop on other CPUs than the one before: processes differ less then
    TORCH_BOUNDS    "launch" or "gpu", to have only that
"""

import os
import random
import select
import statistics
import subprocess
import threading

# By name: the command's options for ours, or the profiler that the loop starts by itself.
CASES = {
    "bare": ("alone", None),
    "armed": ("armed", None),
    "after a window": ("recorded", None),
    "light": ("ours", ["--level", "light"]),
    "standard without stacks": ("ours", ["--stacks", "none"]),
    "standard": ("ours", []),
    "full": ("ours", ["--level", "full"]),
    "torch.profiler, CUDA": ("theirs", "cuda"),
    "torch.profiler, CPU and CUDA": ("theirs", "full"),
    "torch.profiler, with_stack": ("theirs", "stacks"),
    "Triton Proton": ("theirs", "proton"),
}

# Where the GPU is what is waited for, the rest is of no interest.
GPU_BOUND = ["bare", "light", "standard", "torch.profiler, CUDA", "Triton Proton"]

# They write so much that one set of them is enough.
SLOW = ["torch.profiler, CPU and CUDA", "torch.profiler, with_stack"]

# What ours must be below.
PEERS = [name for name, (whose, _) in CASES.items() if whose == "theirs"]

LIMIT_SECONDS = 90
WARM_TURNS = 4


class Turns:
    """A training loop that runs when it is its turn."""

    def __init__(self, tools, interpreter, name, number, bound, steps):
        self.tools, self.name, self.trace, self.left = tools, name, None, ""
        whose, how = CASES[name]
        profiler = how if whose == "theirs" else "none"
        command = [interpreter, str(tools.BENCH / "torch_loop.py"), bound, str(steps), "turns", profiler]
        if whose == "ours":
            self.trace = f"torch-{bound}-{name.replace(' ', '-')}-{number}.sbt"
            command = tools.profile(self.trace, command, "-q", *how)
        environment = dict(os.environ, **(tools.armed() if whose in ("armed", "recorded") else {}))
        self.target = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def prepare(self):
        """Waits until it runs, and has a window in it where one is wanted."""
        while "ready" not in self.answer():
            pass
        if CASES[self.name][0] == "recorded":
            order = [self.tools.TRACESMITH, "record", "-q", "--force", "--pid", str(self.target.pid), "-d", "0.5"]
            recorder = subprocess.Popen([*order, "-o", str(self.tools.OUTPUT / "torch-window.sbt")])
            while recorder.poll() is None:
                self.take()

    def take(self):
        self.target.stdin.write(os.environ.get("TORCH_CPUS", "anywhere") + "\n")
        self.target.stdin.flush()
        return self.tools.number(self.answer(), "seconds")

    def answer(self):
        if not select.select([self.target.stdout], [], [], LIMIT_SECONDS)[0]:
            raise RuntimeError(f"{self.name} does not answer")
        line = self.target.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended: {self.target.wait(LIMIT_SECONDS)}")
        return line

    def end(self):
        """What was written of it, and of how many kernels."""
        self.left, _ = self.target.communicate(timeout=2 * LIMIT_SECONDS)
        if self.target.returncode != 0:
            raise RuntimeError(f"{self.name} gave {self.target.returncode}")
        if self.trace:
            found = self.tools.counts(self.trace)
            return found["bytes"], found["kernels"], found["joined"], found["api"]
        if "bytes" in self.left:
            return int(self.tools.number(self.left, "bytes")), int(self.tools.number(self.left, "kernels")), None, None
        return None


def at_once(tools, interpreter, sets, bound, steps, turns):
    """Of each set, a list of names: seconds of each turn by name; and what was written, by name. Profilers that are not there
    are taken out of the lists."""
    programs = {(number, name): Turns(tools, interpreter, name, number, bound, steps) for number, names in enumerate(sets) for name in names}
    try:
        for place in list(programs):
            number, name = place
            try:
                programs[place].prepare()
            except RuntimeError:
                if CASES[name][0] != "theirs":
                    raise
                sets[number].remove(name)
        taking = [(number, name) for number, names in enumerate(sets) for name in names]
        times = {place: [] for place in taking}
        for place in orders(taking, turns + WARM_TURNS):
            times[place].append(programs[place].take())
        ending = {}
        ends = [threading.Thread(target=lambda place=place: ending.update({place: programs[place].end()})) for place in taking]
        for end in ends:
            end.start()
        for end in ends:
            end.join()
        lost = [name for number, name in taking if (number, name) not in ending]
        if lost:
            raise RuntimeError(f"{', '.join(lost)}: did not end well")
        taken = [{name: times[number, name][WARM_TURNS:] for name in names} for number, names in enumerate(sets)]
        return taken, {name: written for (_, name), written in ending.items()}
    finally:
        for program in programs.values():
            program.target.kill()
            program.target.wait()


def orders(names, turns):
    """All of them, `turns` times, so that none comes twice in a row and none always after the same other."""
    chance, last = random.Random(1), None
    for _ in range(turns):
        order = chance.sample(names, len(names))
        while len(order) > 1 and order[0] == last:
            chance.shuffle(order)
        yield from order
        last = order[-1]


def measure(tools):
    interpreter = tools.python()
    if not interpreter:
        tools.row("torch", "PyTorch", "not on this machine")
        return
    sets, turns, together = (int(os.environ.get(name, usual)) for name, usual in (("TORCH_SETS", 4), ("TORCH_TURNS", 20), ("TORCH_TOGETHER", 1)))
    chosen = [name.strip() for name in os.environ.get("TORCH_CASES", "").split(";") if name.strip()]
    bounds = {"launch": (20, list(CASES)), "gpu": (2, GPU_BOUND)}
    for bound in os.environ.get("TORCH_BOUNDS", "launch gpu").split():
        steps, all_names = bounds[bound]
        names = [name for name in all_names if not chosen or name in chosen or name == "bare"]
        taken, written = {name: [] for name in names}, {}
        for first in range(0, sets, together):
            those = [[name for name in names if number == 0 or name not in SLOW] for number in range(first, min(first + together, sets))]
            times, ending = at_once(tools, interpreter, those, bound, steps, turns)
            written |= ending
            for each in times:
                for name, seconds in each.items():
                    taken[name].append(seconds)
        report(tools, bound, steps, taken)
        if bound == "launch":
            report_files(tools, written)


def report(tools, bound, steps, taken):
    unit = f"{bound}-bound, {steps} steps"
    for name in taken:
        if name == "bare":
            continue
        if not taken[name]:
            tools.row("torch", f"{unit}: {name}", "not on this machine")
            continue
        asked = "under 1 %" if bound == "gpu" and name == "standard" else ""
        tools.row("torch", f"{unit}: {name} against bare: median of the sets (95 % of redrawn sets); each set",
                  tools.against(taken[name], taken["bare"]), asked)
    if bound == "launch" and "standard" in taken:
        for peer in PEERS:
            if taken.get(peer):
                tools.row("torch", f"{unit}: standard against {peer}: median of the sets (95 % of redrawn sets); each set",
                          tools.against(taken["standard"], taken[peer]), "below 0")
    medians = (f"{name} {statistics.median(time for times in each for time in times):.4f}" for name, each in taken.items() if each)
    tools.row("torch", f"{unit}: median of seconds; turns in each of {len(taken['bare'])} sets", f"{', '.join(medians)}; {len(taken['bare'][0])}")


def report_files(tools, written):
    for name, found in written.items():
        if found is None:
            continue
        size, kernels, joined, calls = found
        each = f"{size / kernels:.1f} a kernel" if kernels else "no row for a kernel"
        rows = "" if joined is None else f"; joined {joined}, API rows {calls}"
        tools.row("torch", f"launch-bound, {name}: bytes written, kernels", f"{size}, {kernels} ({each}){rows}")
