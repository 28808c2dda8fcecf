"""Everything that is measured on a machine with a GPU, in one run and as one table.

    figures.py PROGRAMS OUTPUT [SECTION...]

PROGRAMS is a folder with the compiled programs (ci/gpu makes it), OUTPUT gets traces and figures.md. Runs of what is
compared alternate, and medians are printed. Needs `tracesmith` and `check_capture` (TRACESMITH, CHECK_CAPTURE, or
target/release), for some sections PyTorch and Nsight Systems; what is missing is named.
"""

import csv
import io
import json
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import first_windows
import guests
import neighbours
import redrawn
import replayed
import survivors
import switched
import training

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench" / "gpu"
PROGRAMS, OUTPUT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TRACESMITH = os.environ.get("TRACESMITH", str(ROOT / "target/release/tracesmith"))
CHECK = os.environ.get("CHECK_CAPTURE", str(ROOT / "target/release/examples/check_capture"))
LIGHT_KINDS = "8,9,10,1,22,2"
# Calls, waits and events are told by callbacks.
STANDARD_KINDS = "8,9,37,10,1,22,2,49,50,17,52"
rows = []


def row(section, what, value, asked=""):
    rows.append((section, what, value, asked))
    print(f"{section} | {what} | {value} | {asked}", flush=True)


def run(command, env=None, limit=300, check=True):
    """Output of a command, standard error at its end."""
    environment = dict(os.environ, **(env or {}))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command} gave {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def number(text, key):
    found = re.findall(rf"{key} ([0-9.]+)", text)
    if not found:
        raise RuntimeError(f"no {key} in {text!r}")
    return float(found[-1])


def numbers(text, key):
    return [float(word) for word in re.findall(rf"{key} ([0-9.]+)", text)]


def profile(trace, command, *options):
    return [TRACESMITH, "profile", "--force", "-o", str(OUTPUT / trace), *options, "--", *command]


def counts(trace):
    words = run([CHECK, str(OUTPUT / trace)]).split()
    return {key: int(value) for key, value in zip(words[::2], words[1::2])}


def armed(*options):
    """The variables that arm a process."""
    lines = run([TRACESMITH, "env", *options]).splitlines()
    pairs = (line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
    return {key: value.strip("'\"") for key, value in pairs}


def preloading(variables, added):
    """The environment with these variables and others; what both preload is preloaded."""
    libraries = filter(None, (variables.get("LD_PRELOAD"), added.get("LD_PRELOAD")))
    return {**os.environ, **variables, **added, "LD_PRELOAD": ":".join(libraries)}


def python():
    """A Python with PyTorch, or None."""
    for candidate in (os.environ.get("PYTHON"), "python3"):
        if candidate and subprocess.run([candidate, "-c", "import torch"], capture_output=True).returncode == 0:
            return candidate
    return None


def nsys():
    found = os.environ.get("NSYS") or shutil.which("nsys")
    if found:
        return found
    places = sorted(Path("/opt/nvidia").glob("nsight-*/*/host/target-linux-x64/nsys"))
    return str(places[-1]) if places else None


def million():
    """Every launch arrives, and is joined to its call."""
    loop = str(PROGRAMS / "launch_loop")
    cases = {
        "1,000,000 launches, 1 thread": (profile("million.sbt", [loop, "999000"]), "million.sbt", 1_000_000),
        "8 threads on 8 streams": (profile("threads.sbt", [loop, "124875", "8"]), "threads.sbt", 1_000_000),
        "4 processes at once": (
            profile("processes.sbt", ["sh", "-c", " ".join([f"{loop} 249000 &"] * 4) + " wait"]),
            "processes.sbt",
            1_000_000,
        ),
    }
    for name, (command, trace, launches) in cases.items():
        run(command)
        found = counts(trace)
        lost = found["ring_full"] + found["vendor_dropped"]
        row("arrived", f"{name}: kernels of {launches}", found["kernels"], launches)
        row("arrived", f"{name}: joined to their call", found["joined"], launches)
        row("arrived", f"{name}: dropped", lost, 0)
        row("arrived", f"{name}: processes", found["processes"])
        row("arrived", f"{name}: bytes a kernel, API rows included", f"{found['bytes'] / found['kernels']:.2f}")


def launches():
    """Microseconds per launch, alternating."""
    # Processes differ from one another: many short ones.
    loop = [str(PROGRAMS / "launch_loop"), "40000", "1", "2"]
    launches = 81_000
    null = {"CUDA_INJECTION64_PATH": str(PROGRAMS / "libnull_client.so")}
    dormant = armed()
    cases = {
        "bare": (loop, {}),
        "dormant": (loop, dormant),
        "null client, kinds of light": (loop, dict(null, NULL_KINDS=LIGHT_KINDS)),
        "ours, light": (profile("light.sbt", loop, "--level", "light"), {}),
        "null client, kinds of standard, called at launches": (loop, dict(null, NULL_KINDS=STANDARD_KINDS, NULL_CALLBACKS="driver")),
        "ours, standard": (profile("standard.sbt", loop), {}),
        "ours, standard without stacks": (profile("quiet.sbt", loop, "--stacks", "none"), {}),
        "ours, full": (profile("full.sbt", loop, "--level", "full"), {}),
    }
    if nsys():
        report = str(OUTPUT / "nsys")
        cases["Nsight Systems, -t cuda"] = (
            [nsys(), "profile", "-t", "cuda", "-o", report, "--force-overwrite", "true", *loop],
            {},
        )
        # What it has of stacks, where it may sample.
        with_stacks = [nsys(), "profile", "-t", "cuda", "--cudabacktrace=kernel:0", "-o", report + "-stacks", "--force-overwrite", "true", *loop]
        if subprocess.run(with_stacks, capture_output=True).returncode == 0:
            cases["Nsight Systems, -t cuda with backtraces"] = (with_stacks, {})
        else:
            row("launch", "Nsight Systems, -t cuda with backtraces", "refused here")
    else:
        row("launch", "Nsight Systems", "not on this machine")
    taken = {name: [] for name in cases}
    for _ in range(int(os.environ.get("ROUNDS", "7"))):
        for name, (command, env) in cases.items():
            taken[name] += numbers(run(command, env), "us_per_launch")
    medians = {name: statistics.median(times) for name, times in taken.items()}
    # One process in two is slower by half, whatever it does, and stays so: what else runs on the machine can only add. So
    # the fastest tells what a program costs, and the median how it went that day.
    fastest = {name: min(times) for name, times in taken.items()}
    for name, median in medians.items():
        times = sorted(taken[name])
        row("launch", f"{name}: µs per launch (fastest; median; quartiles; rounds)",
            f"{fastest[name]:.3f}; {median:.3f} ({times[len(times) // 4]:.3f}–{times[3 * len(times) // 4]:.3f}; {len(times)})")
    percent = lambda times, a, b: f"{(times[a] / times[b] - 1) * 100:+.1f} %"
    ratio = lambda a, b: f"{percent(fastest, a, b)} by the fastest, {percent(medians, a, b)} by the medians"
    row("launch", "dormant against bare", ratio("dormant", "bare"), "within 1 %")
    row("launch", "light against the null client", ratio("ours, light", "null client, kinds of light"), "within 5 %")
    row("launch", "standard against the null client", ratio("ours, standard", "null client, kinds of standard, called at launches"))
    if nsys():
        row("launch", "standard against Nsight Systems", ratio("ours, standard", "Nsight Systems, -t cuda"), "below")
        files = sorted(OUTPUT.glob("nsys.nsys-rep")) or sorted(OUTPUT.glob("nsys.qdstrm"))
        for file in files:
            row("launch", f"bytes a kernel in Nsight's file ({file.suffix})", f"{file.stat().st_size / launches:.1f}")
    for trace in ("light.sbt", "standard.sbt", "full.sbt"):
        found = counts(trace)
        row("launch", f"{trace}: bytes a kernel", f"{found['bytes'] / found['kernels']:.2f}")
        row("launch", f"{trace}: kernels", found["kernels"], launches)


class Turns:
    """A program that launches when it is its turn: everything that is compared is alive at once, so that what else the
    machine does falls on all of it alike."""

    def __init__(self, name, command, env):
        path = OUTPUT / name
        for end in ("order", "answer"):
            os.mkfifo(f"{path}.{end}")
        # For both ends, so that neither waits for the other to open it.
        self.order = os.open(f"{path}.order", os.O_RDWR)
        self.answer = os.open(f"{path}.answer", os.O_RDWR)
        environment = dict(os.environ, LAUNCH_TURNS=str(path), **env)
        self.target = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.path = path

    def take(self):
        os.write(self.order, b"go\n")
        if not select.select([self.answer], [], [], 60)[0]:
            raise RuntimeError(f"{self.path.name} does not answer")
        return number(os.read(self.answer, 4096).decode(), "us_per_launch")

    def end(self):
        self.target.wait(60)
        os.close(self.order)
        os.close(self.answer)
        for end in ("order", "answer"):
            os.unlink(f"{self.path}.{end}")


def many():
    """What is asked of single launches: programs that take turns of 4,000, all on one CPU, in several sets of processes.

        MANY_SETS, MANY_TURNS   how many sets, and turns in each
        MANY_CASES              just these programs, divided by ";"
    """
    sets, turns = int(os.environ.get("MANY_SETS", "10")), int(os.environ.get("MANY_TURNS", "40"))
    loop = [str(PROGRAMS / "launch_loop"), "4000", "1", str(turns)]
    null = {"CUDA_INJECTION64_PATH": str(PROGRAMS / "libnull_client.so")}
    cases = {
        "bare": (loop, {}),
        "dormant": (loop, armed()),
        "dormant, CUPTI ready": (loop, armed("--ready")),
        "null client, kinds of light": (loop, dict(null, NULL_KINDS=LIGHT_KINDS)),
        "ours, light": (profile("turns-light.sbt", loop, "--level", "light"), {}),
        "null client, kinds of standard, called at launches": (loop, dict(null, NULL_KINDS=STANDARD_KINDS, NULL_CALLBACKS="driver")),
        "the same, called by the runtime too": (loop, dict(null, NULL_KINDS=STANDARD_KINDS, NULL_CALLBACKS="both")),
        "the same, with CUPTI's own records of waits and events": (loop, dict(null, NULL_KINDS=STANDARD_KINDS + ",38,36", NULL_CALLBACKS="driver")),
        "ours, standard": (profile("turns-standard.sbt", loop), {}),
        "ours, standard without stacks": (profile("turns-quiet.sbt", loop, "--stacks", "none"), {}),
    }
    if nsys():
        report = str(OUTPUT / "turns-nsys")
        cases["Nsight Systems, -t cuda"] = ([nsys(), "profile", "-t", "cuda", "-o", report, "--force-overwrite", "true", *loop], {})
    else:
        row("many", "Nsight Systems", "not on this machine")
    if wanted := os.environ.get("MANY_CASES"):
        cases = {name: cases[name] for name in wanted.split(";")}
    # A list for each set of processes, of one time for each turn.
    taken = {name: [] for name in cases}
    for number_of_set in range(sets):
        cpu = {"LAUNCH_CPU": str(number_of_set % os.cpu_count())}
        programs = {name: Turns(f"turn-{place}", command, dict(env, **cpu)) for place, (name, (command, env)) in enumerate(cases.items())}
        times = {name: [] for name in cases}
        for turn in range(turns):
            for name in list(cases) if turn % 2 else reversed(cases):
                times[name].append(programs[name].take())
        for name, program in programs.items():
            program.end()
            # What is done once for a process is done.
            taken[name].append(times[name][turns // 5 :])
    for name, processes in taken.items():
        low, middle, high = statistics.quantiles([time for times in processes for time in times], n=4)
        each = " ".join(f"{statistics.median(times):.2f}" for times in processes)
        row("many", f"{name}: µs per launch (quartiles; median of each process)", f"{low:.3f}, {middle:.3f}, {high:.3f}; {each}")
    compared = [
        ("dormant", "bare", "within 1 %"),
        ("dormant, CUPTI ready", "bare", ""),
        ("ours, light", "null client, kinds of light", "within 5 %"),
        ("ours, standard", "null client, kinds of standard, called at launches", ""),
        ("the same, called by the runtime too", "null client, kinds of standard, called at launches", ""),
        ("the same, with CUPTI's own records of waits and events", "null client, kinds of standard, called at launches", ""),
        ("ours, standard", "Nsight Systems, -t cuda", "below"),
        ("ours, standard without stacks", "Nsight Systems, -t cuda", ""),
        ("null client, kinds of standard, called at launches", "Nsight Systems, -t cuda", ""),
    ]
    for one, other, asked in compared:
        if one in taken and other in taken:
            row("many", f"{one} against {other}: median of the sets (95 % of redrawn sets); each set", against(taken[one], taken[other]), asked)


def against(ours, theirs):
    """How the times of two programs stand to each other, turn by turn, in each set of processes; and how far the median may be off."""
    percent = lambda ratio: f"{(ratio - 1) * 100:+.1f}"
    ratios = [statistics.median(one / other for one, other in zip(*times)) for times in zip(ours, theirs)]
    low, high = redrawn.interval(ratios, 2000)
    each = " ".join(percent(ratio) for ratio in ratios)
    return f"{percent(statistics.median(ratios))} % ({percent(low)} to {percent(high)}); {each}"


def graphs():
    """The order of graphs, as recorded, against the one that the program gave them."""
    run(profile("graphs.sbt", [str(PROGRAMS / "graphs")]))
    found = orders("graphs.sbt")
    row("graphs", "launches whose kernels are in the order that the program gave them", found.count("right"), 9)
    path = json.loads(run([TRACESMITH, "analyze", "-q", "--only", "critical-path", "--format", "json", str(OUTPUT / "graphs.sbt")]))
    row("graphs", "launches whose order is not known; dependencies that the times contradict",
        f"{find(path, 'unordered_graphs')}; {find(path, 'contradicted')}", "0; 0")
    target = subprocess.Popen([str(PROGRAMS / "graphs"), "forever"], env=dict(os.environ, **armed()), stdout=subprocess.PIPE, text=True)
    try:
        target.stdout.readline()
        for level in ("standard", "full", "standard"):
            graphs_in_windows(target.pid, level)
        row("graphs", "the program runs on", target.poll() is None, True)
    finally:
        target.kill()
        target.wait()


def graphs_in_windows(pid, level):
    """Windows of a program that copies, makes ready, launches and destroys graphs all the time."""
    found, edges, asked, took = [], [], 0, {}
    windows = int(os.environ.get("GRAPH_WINDOWS", "20"))
    for _ in range(windows):
        run([TRACESMITH, "record", "--force", "--pid", str(pid), "--level", level, "-d", "0.1", "-o", str(OUTPUT / "graphs-window.sbt")])
        order = orders("graphs-window.sbt")
        # The first and the last launch of a window may have run in it in part.
        edges += order[:1] + order[1:][-1:]
        found += order[1:-1]
        calls = table("graphs-window.sbt", "api_calls")
        asked += len({call["correlation"] for call in calls if call["name"] in ("cuGraphLaunch", "cudaGraphLaunch")})
        for call in calls:
            if call["name"].startswith(("cudaGraph", "cudaStream", "cuGraph", "cuStream")):
                took.setdefault(call["name"], []).append((int(call["end"]) - int(call["start"])) / 1e3)
    row("graphs", f"{windows} windows of 0.1 s at {level}: launches in the right order", found.count("right"), len(found))
    row("graphs", f"{level}, first and last launch of each window: right; not known; else",
        f"{edges.count('right')}; {edges.count('unknown')}; {edges.count('wrong')}")
    row("graphs", f"{level}, launches by their calls; by their kernels", f"{asked}; {len(found) + len(edges)}", "alike, but for 2 a window")
    each = "; ".join(f"{name} {statistics.median(times):.0f} ({len(times)})" for name, times in sorted(took.items()))
    row("graphs", f"{level}, calls in those windows: median of µs (calls)", each)


def table(trace, name):
    """The rows of a table of a trace."""
    text = run([TRACESMITH, "export", "-q", "--as", "csv", "--table", name, "-o", "-", str(OUTPUT / trace)])
    return list(csv.DictReader(io.StringIO(text)))


def orders(trace):
    """Of each launch of a graph, whether the order of its kernels is that which the program gave it."""
    before = {}
    for edge in table(trace, "graph_edges"):
        before.setdefault(edge["node"], set()).add(edge["before"])
    launches = {}
    for kernel in table(trace, "kernels"):
        if kernel["graph_node"] not in ("", "0"):
            launches.setdefault(kernel["correlation"], {})[kernel["graph_node"]] = int(kernel["grid_x"])
    captured = {(1, 2), (1, 3), (1, 4), (2, 5), (3, 5), (4, 5)}
    by_hand = captured | {(11, 13), (12, 13), (13, 1), (5, 14), (11, 14)}
    found = []
    for _, grids in sorted(launches.items(), key=lambda launch: int(launch[0])):
        pairs = set()
        for node, grid in grids.items():
            waiting, seen = list(before.get(node, ())), set()
            while waiting:
                other = waiting.pop()
                if other in seen:
                    continue
                seen.add(other)
                # Nodes without a kernel are stepped over.
                if other in grids:
                    pairs.add((grids[other], grid))
                else:
                    waiting += before.get(other, ())
        wanted = by_hand if max(grids.values()) > 10 else captured
        found.append("right" if pairs == wanted else "wrong" if pairs else "unknown")
    return found


def find(document, key):
    """A value of a document by its name, wherever it is."""
    if isinstance(document, dict):
        if key in document:
            return document[key]
        document = list(document.values())
    for part in document if isinstance(document, list) else []:
        value = find(part, key)
        if value is not None:
            return value
    return None


def window():
    """What a window leaves behind: programs that take turns, before one of them was recorded and after."""
    sets, turns = int(os.environ.get("WINDOW_SETS", "4")), 30
    loop = [str(PROGRAMS / "launch_loop"), "4000", "1", "1000000"]
    cases = {"bare": {}, "armed": armed(), "recorded": armed()}
    # For each phase and program a list for each set of processes.
    phases = ("before", "after a window", "after three windows")
    taken = {phase: {name: [] for name in cases} for phase in phases}
    kernels = []
    for number_of_set in range(sets):
        cpu = {"LAUNCH_CPU": str(number_of_set % os.cpu_count())}
        programs = {name: Turns(f"window-{name}", loop, dict(env, **cpu)) for name, env in cases.items()}
        target = programs["recorded"]

        def record():
            order = [TRACESMITH, "record", "--force", "--pid", str(target.target.pid), "-d", "0.3", "-o", str(OUTPUT / "window.sbt")]
            recorder = subprocess.Popen(order, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while recorder.poll() is None:
                target.take()
            found = counts("window.sbt")
            kernels.append((found["kernels"], found["distinct"], found["joined"]))

        for phase, windows in zip(phases, (0, 1, 2)):
            for _ in range(windows):
                record()
            times = {name: [] for name in cases}
            for turn in range(turns + 8):
                for name in list(cases) if turn % 2 else reversed(cases):
                    times[name].append(programs[name].take())
            for name in cases:
                taken[phase][name].append(times[name][8:])
        for program in programs.values():
            program.target.kill()
            program.end()
    row("window", "kernels in windows of 0.3 s at standard; with the correlation of another; without their call",
        f"{sum(each[0] for each in kernels)}; {sum(each[0] - each[1] for each in kernels)}; {sum(each[0] - each[2] for each in kernels)}",
        "; 0; at most 1 a window and thread")
    for phase in phases:
        for name, asked in (("armed", "within 1 %"), ("recorded", "within 2 %" if phase != "before" else "within 1 %")):
            row("window", f"{phase}: {name} against bare, µs per launch: median of the sets (95 % of redrawn sets); each set",
                against(taken[phase][name], taken[phase]["bare"]), asked)
    for phase in phases:
        medians = (f"{name} {statistics.median(time for times in each for time in times):.3f}" for name, each in taken[phase].items())
        row("window", f"{phase}: median of µs per launch", ", ".join(medians))


class Loops:
    """A training loop that runs on, alone or within windows: what is compared happens in one process, one after another,
    so that nothing else differs (which CPUs its threads got, for one)."""

    def __init__(self, interpreter, bound, steps, env=None):
        command = [interpreter, str(BENCH / "torch_loop.py"), bound, str(steps), "forever"]
        self.target = subprocess.Popen(command, env=preloading(armed(), env or {}), stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        while not self.lines:
            if self.target.poll() is not None:
                raise RuntimeError(f"{command} ended")
            time.sleep(0.05)

    def read(self):
        for line in self.target.stdout:
            self.lines.append((time.monotonic(), number(line, "seconds")))

    def window(self, trace, options, seconds):
        """Times of the loops that lay within a window; None for options is no window."""
        start = time.monotonic()
        if options is None:
            time.sleep(seconds)
            opened, closed = start, time.monotonic()
        else:
            order = [TRACESMITH, "record", "--force", "--pid", str(self.target.pid), "-d", str(seconds)]
            run([*order, *options, "-o", str(OUTPUT / trace)])
            # It takes a moment until it is open, and what is left is handed over at its end.
            opened, closed = start + 0.1, start + seconds
        return [took for when, took in self.lines if when <= closed and when - took >= opened]

    def end(self):
        self.target.kill()
        self.target.wait()
        self.reader.join()


def alternate(section, loops, sets, rounds, seconds, unit=""):
    """What each set of options adds, in percent; a row for each.

    Times drift by more than is asked for, so each window is held against the loops just before and just after it.
    """
    ratios, taken = {name: [] for name in sets}, {name: [] for name in sets}
    kernels, unlike = 0, 0
    before = loops.window("", None, seconds)
    for _ in range(rounds):
        for name, options in sets.items():
            trace = f"{section}-{name.replace(' ', '-').replace(',', '')}.sbt"
            inside = loops.window(trace, options, seconds)
            found = counts(trace)
            kernels += found["kernels"]
            unlike += found["kernels"] - found["distinct"]
            after = loops.window("", None, seconds)
            if before and inside and after:
                bare = (statistics.median(before) + statistics.median(after)) / 2
                ratios[name].append((statistics.median(inside) / bare - 1) * 100)
            taken[name] += inside
            before = after
    ends = [when for when, _ in loops.lines] + [time.monotonic()]
    pause = max(later - earlier for earlier, later in zip(ends, ends[1:]))
    row(section, f"{unit}how the loop was before we ended it; longest time without the end of one", f"{loops.target.poll()}; {pause:.1f} s", "None; some loops' time")
    added = {}
    for name, found in ratios.items():
        if not found:
            row(section, f"{unit}{name}", "no loop fell into a window")
            continue
        added[name] = statistics.median(found)
        spread = sorted(found)
        quartiles = f"{spread[len(found) // 4]:+.1f} to {spread[3 * len(found) // 4]:+.1f}"
        row(section, f"{unit}{name}: against nothing just before and after (quartiles; windows; median of seconds; loops)",
            f"{added[name]:+.1f} % ({quartiles}; {len(found)}; {statistics.median(taken[name]):.4f}; {len(taken[name])})")
    row(section, f"{unit}kernels in those windows; with the correlation of another", f"{kernels}; {unlike}", "; 0")
    return added


def survival():
    """Windows in training loops that must not notice."""
    survivors.measure(sys.modules[__name__])


def kinds():
    """What each kind costs."""
    interpreter = python()
    if not interpreter:
        row("kinds", "PyTorch", "not on this machine")
        return
    light = "kernels,copies"
    chosen = {
        "kernels, copies": light,
        "and counters": f"{light},counters",
        "and api": f"{light},api",
        "and sync": f"{light},sync",
        "and memory": f"{light},memory",
        "and modules, streams, overhead": f"{light},modules,streams,overhead",
    }
    sets = {name: ["-t", words] for name, words in chosen.items()}
    sets |= {
        "standard without stacks": ["--stacks", "none"],
        "standard with native stacks": ["--stacks", "native"],
        "standard": [],
    }
    loops = Loops(interpreter, "launch", 20)
    alternate("kinds", loops, sets, int(os.environ.get("KIND_ROUNDS", "5")), 0.7, "20 steps, ")
    loops.end()


def torch_loops():
    """PyTorch's training loops, ours and others'."""
    training.measure(sys.modules[__name__])


def two_profilers():
    """Other profilers."""
    neighbours.measure(sys.modules[__name__])


def vendors_tools():
    """NVIDIA's tools around programs that are armed or recorded."""
    neighbours.within_others(sys.modules[__name__])


def clients():
    """Profilers of the program's own."""
    guests.measure(sys.modules[__name__])


def benchmark():
    """The command of the same name."""
    text = run([TRACESMITH, "benchmark", "-n", "10000"])
    for line in text.splitlines():
        if line.strip():
            row("benchmark", line.strip(), "")


def stacks():
    """Stacks of every launch: what they cost, whether all are there, and whether they are right."""
    plugins = [str(PROGRAMS / name) for name in ("paths_plugin.so", "paths_bare.so")]
    paths = [str(PROGRAMS / "paths"), *plugins]
    for launches in (10_000, 1_000_000):
        trace = f"stacks-{launches}.sbt"
        run(profile(trace, [*paths, str(launches // 50)], "--stacks", "native"), limit=600)
        found = counts(trace)
        row("stacks", f"{launches} launches on 50 paths: with a stack", found["with_stack"], launches)
        row("stacks", f"{launches} launches: distinct stacks", found["stacks"], "50")
        share = 100 * found["named"] / max(1, found["resolvable"])
        row("stacks", f"{launches} launches: frames named, of files with symbols", f"{share:.2f} % of {found['resolvable']}", "at least 99 %")
    for line in run([TRACESMITH, "benchmark", "-n", "10000", "--stacks"]).splitlines():
        if line.strip():
            row("stacks", line.strip(), "")
    interpreter = python()
    if not interpreter:
        row("stacks", "PyTorch", "not on this machine")
        return
    steps = 100
    bare = [interpreter, str(BENCH / "torch_loop.py"), "launch", str(steps), "none"]
    for name, options in (("native", ["--stacks", "native"]), ("python", ["--stacks", "native,python"])):
        run(profile(f"stacks-{name}.sbt", bare, *options))
    found = {name: counts(f"stacks-{name}.sbt") for name in ("native", "python")}
    # The loop runs three times, after ten steps that are recorded too.
    calls = found["native"]["kernels"] * steps / (3 * steps + 10)
    client = {"CUDA_INJECTION64_PATH": str(PROGRAMS / "libnull_client.so"), "NULL_KINDS": STANDARD_KINDS}
    empty, walking = [], []
    for _ in range(2):
        empty.append(number(run(bare, client), "seconds"))
        walking.append(number(run(bare, dict(client, NULL_BACKTRACE="1")), "seconds"))
    added = (statistics.median(walking) - statistics.median(empty)) / calls * 1e6
    row("stacks", "PyTorch, glibc's backtrace() in an empty client: µs added to a launch", f"{added:.2f}", "about 10")
    for name in ("native", "python"):
        here = found[name]
        row("stacks", f"PyTorch, {name}: kernels, with a stack", f"{here['kernels']}, {here['with_stack']}", "all")
        per = lambda kind: here[f"{kind}_frames"] / max(1, here["stacks"])
        row("stacks", f"PyTorch, {name}: frames of a stack, distinct stacks", f"{per('native'):.1f} native, {per('python'):.1f} Python, {here['stacks']}")
        row("stacks", f"PyTorch, {name}: ns to take a stack that was taken before, by our own clock", own_nanos(f"stacks-{name}.sbt"), "at most 1000" if name == "native" else "at most 1500")
        row("stacks", f"PyTorch, {name}: bytes of the file for a launch", f"{stack_bytes(f'stacks-{name}.sbt') / here['kernels']:.2f}", "at most 2")
        share = 100 * here["named"] / max(1, here["resolvable"])
        row("stacks", f"PyTorch, {name}: frames named, of files with symbols", f"{share:.2f} % of {here['resolvable']}", "at least 99 %")


def own_nanos(trace):
    """What a recording says of its own cost."""
    metadata = json.loads(run([TRACESMITH, "info", "--format", "json", str(OUTPUT / trace)]))["metadata"]
    return ", ".join(value for key, value in metadata.items() if key.endswith(".stacks.nanos_each"))


def stack_bytes(trace):
    """What stacks take in a file: their columns, their tables and every text, whoever else uses it."""
    tables = json.loads(run([TRACESMITH, "info", "--columns", "--format", "json", str(OUTPUT / trace)]))["tables"]
    whole = sum(table["bytes"] for table in tables if table["name"] in ("frames", "stacks", "images", "symbols", "strings"))
    return whole + sum(table["columns"].get("stack", 0) for table in tables)


def programs():
    """The programs of the end-to-end tests, on the real driver: exit codes and rows."""
    launcher = str(PROGRAMS / "launcher")
    cases = [
        # words, options, exit code, rows that must be there
        ("launch 1000", [], 0, {"kernels": 1000, "joined": 1000}),
        ("threads 4 500", [], 0, {"kernels": 2000, "joined": 2000}),
        ("processes 2 100", [], 0, {"kernels": 200, "joined": 200, "processes": 2}),
        ("graph 20 100", [], 0, {"kernels": 2000, "graph_kernels": 2000}),
        ("diamond 100", [], 0, {"kernels": 500, "graph_kernels": 400}),
        ("graph 20 100", ["--graphs", "whole"], 0, {"kernels": 0}),
        ("copies 10", [], 0, {"copies": 30, "sets": 10}),
        ("events", [], 0, {"kernels": 20, "syncs": 5}),
        ("modules", [], 0, {"kernels": 4, "modules": 4}),
        ("nvtx", [], 0, {"kernels": 9, "markers": 6}),
        ("nvtx", ["--capture-range", "nvtx:outer"], 0, {"kernels": 5, "markers": 2}),
        ("profiler", [], 0, {"kernels": 60}),
        ("profiler", ["--capture-range", "cuda-profiler-api"], 0, {"kernels": 20, "joined": 20}),
        ("client", [], 0, {"kernels": 60, "conflicts": 0}),
        ("client", ["--no-preload"], 0, {"kernels": 60, "conflicts": 0}),
        ("fork", [], 0, {"kernels": 200}),
        ("segv", [], -signal.SIGSEGV, {"died": 1}),
        # Its kernels are handed over before it leaves.
        ("exit_early", [], 3, {"died": 0}),
        ("exit 7", [], 7, {"kernels": 10, "died": 0}),
    ]
    failed = 0
    for words, options, code, wanted in cases:
        done = subprocess.run(profile("program.sbt", [launcher, *words.split()], *options), capture_output=True, text=True)
        found = counts("program.sbt")
        wrong = {key: (found[key], value) for key, value in wanted.items() if found[key] != value}
        if done.returncode != code:
            wrong["exit code"] = (done.returncode, code)
        if words == "client" and "client kernels 20" not in done.stdout:
            wrong["the other client"] = done.stdout.strip()
        if wrong:
            failed += 1
            row("programs", f"launcher {words} {' '.join(options)}", f"found and wanted: {wrong}")
    row("programs", "programs of the end-to-end tests that were recorded as they must be", len(cases) - failed, len(cases))
    flight(launcher)
    beside()
    interpreter = python()
    if interpreter:
        worker = "import torch; x = torch.ones(8, device='cuda'); [x.add_(1) for _ in range(100)]; print(x[0].item())"
        (OUTPUT / "worker.py").write_text(worker)
        run(profile("torchrun.sbt", [interpreter, "-m", "torch.distributed.run", "--nproc_per_node=2", str(OUTPUT / "worker.py")]))
        info = run([TRACESMITH, "info", str(OUTPUT / "torchrun.sbt")])
        ranks = [line for line in info.splitlines() if re.search(r"^ *\d+ +\S+ +[01] +exit", line)]
        row("programs", "torchrun with 2 workers: processes and kernels", f"{counts('torchrun.sbt')['processes']}, {counts('torchrun.sbt')['kernels']}")
        row("programs", "their ranks in `info`", " / ".join(" ".join(line.split()) for line in ranks))


def beside():
    """Kernels beside one that takes seconds: what they refer to must not wait for that one."""
    program = str(PROGRAMS / "beside")
    run(profile("beside.sbt", [program, "3000", "20000"]))
    recorded = {"from its start": table("beside.sbt", "kernels")}
    target = subprocess.Popen([program, "1500", "20000", "forever"], env=dict(os.environ, **armed()), stdout=subprocess.PIPE, text=True)
    try:
        target.stdout.readline()
        run([TRACESMITH, "record", "--force", "--pid", str(target.pid), "-d", "4", "-o", str(OUTPUT / "beside.sbt")])
        recorded["in a window of 4 s"] = table("beside.sbt", "kernels")
    finally:
        target.kill()
        target.wait()
    for how, kernels in recorded.items():
        lost = sum(kernel["device"] in ("", "0") for kernel in kernels)
        row("programs", f"kernels beside one that takes seconds, {how}: recorded; without their device", f"{len(kernels)}; {lost}", "; 0")


# Programs that have a function `here` launch their kernels.
FRAMEWORKS = {
    "torch": "import torch\ndef here():\n    return (torch.ones(1000, device='cuda') * 2).sum()\nhere(); torch.cuda.synchronize()",
    "triton": """import torch, triton, triton.language as tl
@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)
def here():
    x = torch.zeros(1000, device='cuda')
    add_one[(8,)](x, 1000, BLOCK=128)
here(); torch.cuda.synchronize()""",
    "jax": "import jax, jax.numpy as jnp\ndef here():\n    return (jnp.ones(1000) * 2).sum().block_until_ready()\nhere()",
    "cupy": "import cupy\ndef here():\n    return (cupy.ones(1000) * 2).sum()\nhere(); cupy.cuda.Device().synchronize()",
}


def frameworks():
    """Stacks of other frameworks lead to the line of the script, and those of a graph's kernels to where it was captured."""
    interpreter = python() or "python3"
    for name, program in FRAMEWORKS.items():
        script = OUTPUT / f"with_{name}.py"
        script.write_text(program)
        if subprocess.run([interpreter, "-c", f"import {name}"], capture_output=True).returncode != 0:
            row("frameworks", name, "not on this machine")
            continue
        start = time.monotonic()
        run(profile(f"{name}.sbt", [interpreter, str(script)]))
        found = counts(f"{name}.sbt")
        kernels = stacks_of_kernels(f"{name}.sbt")
        here = sum("here" in names for names, _ in kernels)
        row("frameworks", f"{name}: kernels; with a stack; called by the script's function", f"{found['kernels']}; {found['with_stack']}; {here}", "all have one")
        row("frameworks", f"{name}: seconds with us", f"{time.monotonic() - start:.1f}")
    script = OUTPUT / "with_graph.py"
    script.write_text("""import torch
x = torch.zeros(1000, device='cuda')
graph = torch.cuda.CUDAGraph()
def captured_here():
    with torch.cuda.graph(graph):
        x.add_(1).mul_(2)
def launched_here():
    graph.replay()
captured_here()
for _ in range(5): launched_here()
torch.cuda.synchronize()""")
    run(profile("graph.sbt", [interpreter, str(script)]))
    kernels = stacks_of_kernels("graph.sbt")
    captured = sum("captured_here" in names for names, _ in kernels)
    launched = sum("captured_here" in names and "launched_here" in launch for names, launch in kernels)
    row("frameworks", "CUDA graph of torch, 5 launches of 2 kernels: stack of the place of capture; and beside it of the launch", f"{captured}; {launched}", "10; 10")


def stacks_of_kernels(trace):
    """The names of the functions of each kernel's stack, and of its launch's where that is another."""
    text = run([TRACESMITH, "view", str(OUTPUT / trace), "--kind", "kernel", "--stacks", "--limit", "0", "--format", "json"])
    events = [json.loads(line.rstrip(",")) for line in text.splitlines() if line.startswith("{")]
    names = lambda frames: [frame["function"] for frame in frames or []]
    return [(names(event.get("stack")), names(event.get("launch_stack"))) for event in events]


def await_file(name):
    """Until a dump is there and whole, at most ten seconds."""
    for _ in range(100):
        time.sleep(0.1)
        if (OUTPUT / name).exists() and subprocess.run([CHECK, str(OUTPUT / name)], capture_output=True).returncode == 0:
            return


def flight(launcher):
    """The flight recorder, by signal and by order."""
    words = OUTPUT / "flight.txt"
    with open(words, "w") as output:
        recorder = subprocess.Popen(
            profile("flight.sbt", [launcher, "forever"], "--flight-recorder", "8M"), stdout=subprocess.DEVNULL, stderr=output
        )
    try:
        time.sleep(3)
        recorder.send_signal(signal.SIGUSR2)
        await_file("flight.sbt")
        row("programs", "flight recorder of 8 MiB, by signal: kernels kept", counts("flight.sbt")["kernels"])
        target = int(run(["pgrep", "-P", str(recorder.pid)]).split()[0])
        run([TRACESMITH, "record", "--dump", "--pid", str(target)])
        await_file("flight-2.sbt")
        row("programs", "by order: kernels kept", counts("flight-2.sbt")["kernels"])
        os.kill(target, signal.SIGKILL)
        recorder.wait(30)
        row("programs", "by the program's death: kernels kept, deaths", f"{counts('flight-3.sbt')['kernels']}, {counts('flight-3.sbt')['died']}", "…, 1")
    except Exception as error:
        recorder.kill()
        raise RuntimeError(f"{error}; the recorder said: {words.read_text()}; files: {sorted(OUTPUT.glob('flight*'))}") from error


def replay():
    """Windows that are recorded and run again."""
    replayed.measure(sys.modules[__name__])


def replayed_programs():
    """The part of it that needs no framework."""
    replayed.measure_programs(sys.modules[__name__])


def replay_ends():
    """Windows that end while the program launches."""
    replayed.measure_ends(sys.modules[__name__])


def switching():
    """What CUPTI makes of what we do at the ends of windows."""
    switched.measure(sys.modules[__name__])


def first():
    """Programs whose first window opens while they make graphs ready."""
    first_windows.measure(sys.modules[__name__])


def leaving():
    """Programs that end without exit handlers: their last kernels are in the trace, and they are not held up for long."""
    program, launched = str(PROGRAMS / "leaving"), 80_000
    for way, code in {"return": 0, "_exit": 0, "quick_exit": 0, "exec": 0, "fork": 0, "abort": -6, "terminate": -6, "busy": 0}.items():
        times = {}
        for name, command in {
            "bare": [program, way, str(launched)],
            "recorded": profile(f"leaving-{way}.sbt", [program, way, str(launched)]),
        }.items():
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            # The command ends as a shell says that a program was ended by a signal.
            expected = {code, 128 - code} if code < 0 else {code}
            if done.returncode not in expected:
                raise RuntimeError(f"{command} gave {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}")
            times[name] = time.monotonic() - number(done.stdout, "left")
        words = run([TRACESMITH, "info", str(OUTPUT / f"leaving-{way}.sbt")])
        health = next((line for line in words.splitlines() if line.startswith("health")), "health not shown")
        row("leaving", f"{way}: kernels of {launched}; seconds from then to the end, bare and recorded; health",
            f"{counts(f'leaving-{way}.sbt')['kernels']}; {times['bare']:.3f}, {times['recorded']:.3f}; {health}", launched)
    interpreter = python()
    if interpreter:
        script = "import os, torch; x = torch.ones(1, device='cuda')\nfor _ in range(5000): x.add_(1)\nos._exit(0)"
        run(profile("leaving-python.sbt", [interpreter, "-c", script]))
        row("leaving", "Python's os._exit: kernels of 5,001", counts("leaving-python.sbt")["kernels"], 5001)
    names = [f"sh -c '{' & '.join([program + ' return 5000'] * 24)} & wait'"]
    run(profile("leaving-many.sbt", ["sh", "-c", names[0]]))
    found = counts("leaving-many.sbt")
    row("leaving", "24 processes at once, 5,000 launches each: kernels; dropped",
        f"{found['kernels']}; {found['ring_full'] + found['vendor_dropped']}", "120000; 0")


def from_python():
    """The Python package, in an interpreter that has it and PyTorch: PACKAGE_PYTHON, or this one."""
    interpreter = os.environ.get("PACKAGE_PYTHON", sys.executable)
    if run([interpreter, "-c", "import torch, tracesmith"], check=False):
        row("python", "the package and PyTorch", f"not both in {interpreter}")
        return
    folder = OUTPUT / "python"
    folder.mkdir(exist_ok=True)
    asked = {"open_ms": "≤ 200", "close_ms": "≤ 50", "lost": "0", "us_no_tool": "< 1", "us_armed": "< 1", "conflict": "none", "replay_verdict": "same"}
    script = str(BENCH / "from_python.py")
    ways = {"": [interpreter], "run: ": [interpreter, "-m", "tracesmith", "run"]}
    for way, command in ways.items():
        for what in ("windows", "schedule", "before", "within", "record", "names", "ranges", "early"):
            done = subprocess.run([*command, script, what], cwd=folder, capture_output=True, text=True, timeout=300)
            for line in done.stdout.splitlines():
                name, _, value = line.partition(" ")
                wanted = next((limit for ending, limit in asked.items() if name.endswith(ending)), "")
                row("python", f"{way}{what}: {name}", value, wanted)
            if done.returncode != 0:
                row("python", f"{way}{what}: FAILED", done.stderr[-800:].replace("\n", " ⏎ "))


def studio():
    """Studio beside a PyTorch loop that is recorded, and its memory debugger on a recorded training step."""
    interpreter = python()
    if interpreter is None:
        row("studio", "PyTorch", "not found")
        return
    loop = [str(BENCH / "torch_loop.py"), "launch", "200", "forever"]
    done = subprocess.run(
        [interpreter, str(BENCH / "studio_live.py"), TRACESMITH, *loop], capture_output=True, text=True, timeout=300)
    if not done.stdout:
        raise RuntimeError(f"studio_live.py: {done.stderr[-800:]}")
    (OUTPUT / "studio_live.json").write_text(done.stdout)
    for way, found in json.loads(done.stdout).items():
        if way != "good":
            for name, value in found.items():
                row("studio", f"live, {way}: {name}", json.dumps(value))
    row("studio", "live: rows grow, nothing is lost", done.returncode == 0, "True")
    step = [interpreter, str(BENCH / "replay" / "steps.py"), "train"]
    run(profile("studio-step.sbt", step, "--record", "--capture-range", "cuda-profiler-api"))
    out = OUTPUT / "studio_replay.json"
    done = subprocess.run(
        [sys.executable, str(BENCH / "studio_replay.py"), TRACESMITH, str(OUTPUT / "studio-step.sbt"), "-o", str(out)],
        capture_output=True, text=True, timeout=300)
    if not out.exists():
        raise RuntimeError(f"studio_replay.py: {done.stderr[-800:]}")
    found = json.loads(out.read_text())
    for name, value in found.get("times_s", {}).items():
        row("studio", f"memory debugger: {name} (s)", value)
    checks = found["checks"]
    for name, check in checks.items():
        if not check["pass"]:
            row("studio", f"memory debugger: {name}", json.dumps(check), "pass")
    passed = sum(check["pass"] for check in checks.values())
    row("studio", "memory debugger: checks passed", f"{passed} of {len(checks)}", "all")


SECTIONS = {
    "studio": studio,
    "million": million,
    "launches": launches,
    "many": many,
    "graphs": graphs,
    "window": window,
    "leaving": leaving,
    "survival": survival,
    "first": first,
    "switching": switching,
    "kinds": kinds,
    "torch": torch_loops,
    "neighbours": two_profilers,
    "tools": vendors_tools,
    "clients": clients,
    "programs": programs,
    "python": from_python,
    "benchmark": benchmark,
    "stacks": stacks,
    "frameworks": frameworks,
    "replay_ends": replay_ends,
    "replay": replay,
    "replayed_programs": replayed_programs,
}


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    # The last is a part of the one before.
    wanted = sys.argv[3:] or list(SECTIONS)[:-1]
    gpu = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).strip()
    row("machine", "GPU and driver", gpu)
    row("machine", "date", time.strftime("%Y-%m-%d", time.gmtime()))
    row("machine", "command", "ci/gpu " + " ".join(wanted))
    failed = False
    for name in wanted:
        start = time.monotonic()
        try:
            SECTIONS[name]()
        except Exception as error:  # The other sections are still worth their time.
            row(name, "FAILED", str(error)[-1500:].replace("\n", " ⏎ "))
            failed = True
        row(name, "seconds for this section", f"{time.monotonic() - start:.0f}")
        # A run that is cut short leaves what it has.
        write_table()
    return 1 if failed else 0


def write_table():
    with open(OUTPUT / "figures.md", "w") as table:
        table.write("| section | what | measured | asked |\n|---|---|---|---|\n")
        for section, what, value, asked in rows:
            table.write(f"| {section} | {what} | {value} | {asked} |\n")


sys.exit(main())
