"""Everything that is measured on a machine with a GPU, in one run and as one table.

    figures.py PROGRAMS OUTPUT [SECTION...]

PROGRAMS is a folder with the compiled programs (ci/gpu makes it), OUTPUT gets traces and figures.md. Runs of what is
compared alternate, and medians are printed. Needs `tracesmith` and `check_capture` (TRACESMITH, CHECK_CAPTURE, or
target/release), for some sections PyTorch and Nsight Systems; what is missing is named.
"""

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench" / "gpu"
PROGRAMS, OUTPUT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
TRACESMITH = os.environ.get("TRACESMITH", str(ROOT / "target/release/tracesmith"))
CHECK = os.environ.get("CHECK_CAPTURE", str(ROOT / "target/release/examples/check_capture"))
LIGHT_KINDS = "8,9,10,1,22,2"
STANDARD_KINDS = "8,9,37,10,1,22,2,5,4,38,36,49,50,17,52"
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


def armed():
    """The variables that arm a process."""
    lines = run([TRACESMITH, "env"]).splitlines()
    pairs = (line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
    return {key: value.strip("'\"") for key, value in pairs}


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
    loop = [str(PROGRAMS / "launch_loop"), "100000", "1", "3"]
    null = {"CUDA_INJECTION64_PATH": str(PROGRAMS / "libnull_client.so")}
    dormant = armed()
    cases = {
        "bare": (loop, {}),
        "dormant": (loop, dormant),
        "null client, kinds of light": (loop, dict(null, NULL_KINDS=LIGHT_KINDS)),
        "ours, light": (profile("light.sbt", loop, "--level", "light"), {}),
        "null client, kinds of standard": (loop, dict(null, NULL_KINDS=STANDARD_KINDS)),
        "ours, standard": (profile("standard.sbt", loop), {}),
        "ours, standard, no counters": (profile("quiet.sbt", loop, "-t", "kernels,copies,api,sync,memory,nvtx,modules,streams,overhead"), {}),
        "ours, full": (profile("full.sbt", loop, "--level", "full"), {}),
    }
    if nsys():
        report = str(OUTPUT / "nsys")
        cases["Nsight Systems, -t cuda"] = (
            [nsys(), "profile", "-t", "cuda", "-o", report, "--force-overwrite", "true", *loop],
            {},
        )
    else:
        row("launch", "Nsight Systems", "not on this machine")
    taken = {name: [] for name in cases}
    for _ in range(int(os.environ.get("ROUNDS", "7"))):
        for name, (command, env) in cases.items():
            taken[name] += numbers(run(command, env), "us_per_launch")
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, median in medians.items():
        times = sorted(taken[name])
        row("launch", f"{name}: µs per launch (median; quartiles)", f"{median:.3f} ({times[len(times) // 4]:.3f}–{times[3 * len(times) // 4]:.3f})")
    ratio = lambda a, b: f"{(medians[a] / medians[b] - 1) * 100:+.1f} %"
    row("launch", "dormant against bare", ratio("dormant", "bare"), "within 1 %")
    row("launch", "light against the null client", ratio("ours, light", "null client, kinds of light"), "within 5 %")
    row("launch", "standard against the null client", ratio("ours, standard", "null client, kinds of standard"))
    if nsys():
        row("launch", "standard against Nsight Systems", ratio("ours, standard", "Nsight Systems, -t cuda"), "below")
        files = sorted(OUTPUT.glob("nsys.nsys-rep")) or sorted(OUTPUT.glob("nsys.qdstrm"))
        for file in files:
            row("launch", f"bytes a kernel in Nsight's file ({file.suffix})", f"{file.stat().st_size / 301_000:.1f}")
    for trace in ("light.sbt", "standard.sbt", "full.sbt"):
        found = counts(trace)
        row("launch", f"{trace}: bytes a kernel", f"{found['bytes'] / found['kernels']:.2f}")
        row("launch", f"{trace}: kernels of 301,000", found["kernels"], 301_000)


def window():
    """A window in a running process, and its speed afterwards."""
    loop = [str(PROGRAMS / "launch_loop"), "20000", "1", "45", "5"]
    before, inside, after, bare_before, bare_after = [], [], [], [], []
    for _ in range(int(os.environ.get("WINDOW_ROUNDS", "5"))):
        alone = numbers(run(loop), "us_per_launch")
        bare_before += alone[5:15]
        bare_after += alone[-10:]
        target = subprocess.Popen(loop, env=dict(os.environ, **armed()), stdout=subprocess.PIPE, text=True)
        seen = []

        def read(count):
            while len(seen) < count:
                line = target.stdout.readline()
                if not line:
                    raise RuntimeError("the target ended")
                seen.append(number(line, "us_per_launch"))

        read(15)
        first = len(seen)
        run([TRACESMITH, "record", "--force", "--pid", str(target.pid), "-d", "1", "-o", str(OUTPUT / "window.sbt")])
        # What was written while the window was open lies in the pipe.
        rest = [number(line, "us_per_launch") for line in target.stdout]
        target.wait()
        found = counts("window.sbt")
        rounds_inside = round(found["kernels"] / 20000)
        before += seen[5:first]
        inside += rest[1 : max(2, rounds_inside - 1)]
        after += rest[-10:]
    row("window", "kernels recorded in the last window of 1 s", found["kernels"])
    phases = {
        "bare, rounds 5 to 15": bare_before,
        "armed, the same rounds, before the window": before,
        "inside the window": inside,
        "bare, the last 10 rounds": bare_after,
        "armed, the same rounds, after the window": after,
    }
    medians = [statistics.median(times) for times in phases.values()]
    for name, median in zip(phases, medians):
        row("window", f"{name}: µs per launch", f"{median:.3f}")
    row("window", "before the window against bare", f"{(medians[1] / medians[0] - 1) * 100:+.1f} %", "within 1 %")
    row("window", "after the window against bare", f"{(medians[4] / medians[3] - 1) * 100:+.1f} %", "within 2 %")


def kinds():
    """What each kind costs, in windows of one process in turn, so that nothing else differs."""
    interpreter = python()
    if not interpreter:
        row("kinds", "PyTorch", "not on this machine")
        return
    light = "kernels,copies"
    sets = {
        "nothing": None,
        "kernels, copies": light,
        "and counters": f"{light},counters",
        "and api": f"{light},api",
        "and sync": f"{light},sync",
        "and memory": f"{light},memory",
        "and modules, streams, overhead": f"{light},modules,streams,overhead",
        "standard": f"{light},api,sync,memory,nvtx,modules,streams,overhead,counters",
    }
    command = [interpreter, str(BENCH / "torch_loop.py"), "launch", "20", "forever"]
    target = subprocess.Popen(command, env=dict(os.environ, **armed()), stdout=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend((time.monotonic(), number(line, "seconds")) for line in target.stdout))
    reader.start()
    while not lines:
        time.sleep(0.1)
    taken = {name: [] for name in sets}
    for _ in range(int(os.environ.get("KIND_ROUNDS", "5"))):
        for name, chosen in sets.items():
            start = time.monotonic()
            if chosen is None:
                time.sleep(1.5)
            else:
                record = [TRACESMITH, "record", "--force", "--pid", str(target.pid), "-d", "1.5", "-t", chosen]
                run([*record, "-o", str(OUTPUT / "kinds.sbt")])
            # The first and the last loops saw the window open or close.
            taken[name] += [seconds for when, seconds in lines if start + 0.4 < when < start + 1.4]
    target.kill()
    target.wait()
    reader.join()
    base = statistics.median(taken["nothing"])
    for name, times in taken.items():
        median = statistics.median(times)
        row("kinds", f"20 steps, {name}: ms (against nothing), loops", f"{median * 1e3:.2f} ({(median / base - 1) * 100:+.1f} %), {len(times)}")


def torch_loops():
    """PyTorch's training loops, ours and others'."""
    interpreter = python()
    if not interpreter:
        row("torch", "PyTorch", "not on this machine")
        return
    script = str(BENCH / "torch_loop.py")
    for bound, steps in (("launch", "200"), ("gpu", "20")):
        bare = [interpreter, script, bound, steps, "none"]
        cases = {
            "bare": bare,
            "ours, light": profile(f"torch-{bound}-light.sbt", bare, "--level", "light"),
            "ours, standard": profile(f"torch-{bound}-standard.sbt", bare),
            "ours, full": profile(f"torch-{bound}-full.sbt", bare, "--level", "full"),
            "torch.profiler, CUDA": [interpreter, script, bound, steps, "cuda"],
            "torch.profiler, CPU and CUDA": [interpreter, script, bound, steps, "full"],
            "Triton Proton": [interpreter, script, bound, steps, "proton"],
        }
        taken, sizes = {name: [] for name in cases}, {}
        for _ in range(int(os.environ.get("TORCH_ROUNDS", "3"))):
            for name, command in list(cases.items()):
                try:
                    text = run(command)
                except RuntimeError as error:
                    row("torch", f"{bound}: {name}", f"failed: {str(error)[-200:]!r}")
                    del cases[name]
                    continue
                taken[name].append(number(text, "seconds"))
                sizes[name] = number(text, "bytes")
        base = statistics.median(taken["bare"])
        for name in cases:
            median = statistics.median(taken[name])
            asked = ""
            if name == "ours, standard":
                asked = "below the others" if bound == "launch" else "under 1 %"
            row("torch", f"{bound}-bound, {name}: seconds", f"{median:.3f} ({(median / base - 1) * 100:+.1f} %)", asked)
            if sizes[name]:
                row("torch", f"{bound}-bound, {name}: bytes written", int(sizes[name]))
        for level in ("light", "standard", "full"):
            found = counts(f"torch-{bound}-{level}.sbt")
            per = found["bytes"] / max(1, found["kernels"])
            row("torch", f"{bound}-bound, {level}: bytes in the file (a kernel)", f"{found['bytes']} ({per:.1f})")
            row("torch", f"{bound}-bound, {level}: kernels, joined, API rows", f"{found['kernels']}, {found['joined']}, {found['api']}")


def neighbours():
    """torch.profiler beside us, before, inside and after our window."""
    interpreter = python()
    if not interpreter:
        row("two profilers", "PyTorch", "not on this machine")
        return
    script = str(BENCH / "two_profilers.py")
    alone = numbers(run([interpreter, script]), "cuda_events")
    beside = numbers(run(profile("two.sbt", [interpreter, script])), "cuda_events")
    row("two profilers", "torch.profiler's CUDA events alone", alone)
    row("two profilers", "within our recording", beside, alone)
    found = counts("two.sbt")
    row("two profilers", "our kernels then (26 steps)", found["kernels"])
    row("two profilers", "conflicts in our trace", found["conflicts"], 0)
    target = subprocess.Popen([interpreter, script, "1.5"], env=dict(os.environ, **armed()), stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    time.sleep(0.2)
    # From before the first session to between the two: the second comes after our window.
    run([TRACESMITH, "record", "--force", "--pid", str(target.pid), "-d", "2.2", "-o", str(OUTPUT / "two-window.sbt")])
    rest = target.stdout.read()
    target.wait()
    row("two profilers", "with our window around the first of two sessions", numbers(rest, "cuda_events"), alone)
    row("two profilers", "our kernels in that window (8 steps)", counts("two-window.sbt")["kernels"])


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
        row("stacks", f"{launches} launches: frames named, of files with symbols", f"{share:.2f} %", "at least 99 %")
    for line in run([TRACESMITH, "benchmark", "-n", "10000", "--stacks"]).splitlines():
        if line.strip():
            row("stacks", line.strip(), "")
    interpreter = python()
    if not interpreter:
        row("stacks", "PyTorch", "not on this machine")
        return
    script, steps = str(BENCH / "torch_loop.py"), "200"
    bare = [interpreter, script, "launch", steps, "none"]
    client = {"CUDA_INJECTION64_PATH": str(PROGRAMS / "libnull_client.so"), "NULL_KINDS": STANDARD_KINDS}
    cases = {
        "bare": (bare, {}),
        "standard": (profile("stacks-none.sbt", bare), {}),
        "native": (profile("stacks-native.sbt", bare, "--stacks", "native"), {}),
        "native and Python": (profile("stacks-python.sbt", bare, "--stacks", "native,python"), {}),
        "an empty client": (bare, client),
        "an empty client with glibc's backtrace()": (bare, dict(client, NULL_BACKTRACE="1")),
        "torch.profiler": ([interpreter, script, "launch", steps, "full"], {}),
        "torch.profiler, with_stack": ([interpreter, script, "launch", steps, "stacks"], {}),
    }
    taken = {name: [] for name in cases}
    for _ in range(int(os.environ.get("TORCH_ROUNDS", "5"))):
        for name, (command, environment) in cases.items():
            taken[name].append(number(run(command, environment), "seconds"))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    found = {name: counts(f"stacks-{name}.sbt") for name in ("none", "native", "python")}
    # The loop runs three times, after ten steps that are recorded too.
    calls = found["native"]["kernels"] * int(steps) / (3 * int(steps) + 10)
    for name, seconds in medians.items():
        row("stacks", f"PyTorch, {name}: seconds", f"{seconds:.3f} ({(seconds / medians['bare'] - 1) * 100:+.1f} %)")
    for name, base, asked in (
        ("native", "standard", "at most 1.0"),
        ("native and Python", "standard", "at most 1.5"),
        ("an empty client with glibc's backtrace()", "an empty client", "about 10"),
        ("torch.profiler, with_stack", "torch.profiler", ""),
    ):
        added = (medians[name] - medians[base]) / calls * 1e6
        row("stacks", f"PyTorch, {name}: µs added to a launch", f"{added:.2f}", asked)
    for name in ("native", "python"):
        here = found[name]
        row("stacks", f"PyTorch, {name}: kernels, with a stack", f"{here['kernels']}, {here['with_stack']}", "all")
        per = lambda kind: here[f"{kind}_frames"] / max(1, here["stacks"])
        row("stacks", f"PyTorch, {name}: frames of a stack", f"{per('native'):.1f} native, {per('python'):.1f} Python")
        added = (here["bytes"] - found["none"]["bytes"]) / max(1, here["kernels"])
        row("stacks", f"PyTorch, {name}: bytes of the file for a launch", f"{added:.2f}", "at most 2")
        share = 100 * here["named"] / max(1, here["resolvable"])
        row("stacks", f"PyTorch, {name}: frames named, of files with symbols", f"{share:.2f} %", "at least 99 %")


def programs():
    """The programs of the end-to-end tests, on the real driver: exit codes and rows."""
    launcher = str(PROGRAMS / "launcher")
    cases = [
        # words, options, exit code, rows that must be there
        ("launch 1000", [], 0, {"kernels": 1000, "joined": 1000}),
        ("threads 4 500", [], 0, {"kernels": 2000, "joined": 2000}),
        ("processes 2 100", [], 0, {"kernels": 200, "joined": 200, "processes": 2}),
        ("graph 20 100", [], 0, {"kernels": 2000, "graph_kernels": 2000}),
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
        ("exit_early", [], 3, {"died": 1}),
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
    interpreter = python()
    if interpreter:
        worker = "import torch; x = torch.ones(8, device='cuda'); [x.add_(1) for _ in range(100)]; print(x[0].item())"
        (OUTPUT / "worker.py").write_text(worker)
        run(profile("torchrun.sbt", [interpreter, "-m", "torch.distributed.run", "--nproc_per_node=2", str(OUTPUT / "worker.py")]))
        info = run([TRACESMITH, "info", str(OUTPUT / "torchrun.sbt")])
        ranks = [line for line in info.splitlines() if re.search(r"^ *\d+ +\S+ +[01] +exit", line)]
        row("programs", "torchrun with 2 workers: processes and kernels", f"{counts('torchrun.sbt')['processes']}, {counts('torchrun.sbt')['kernels']}")
        row("programs", "their ranks in `info`", " / ".join(" ".join(line.split()) for line in ranks))


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


SECTIONS = {
    "million": million,
    "launches": launches,
    "window": window,
    "kinds": kinds,
    "torch": torch_loops,
    "neighbours": neighbours,
    "programs": programs,
    "benchmark": benchmark,
    "stacks": stacks,
}


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[3:] or list(SECTIONS)
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
    with open(OUTPUT / "figures.md", "w") as table:
        table.write("| section | what | measured | asked |\n|---|---|---|---|\n")
        for section, what, value, asked in rows:
            table.write(f"| {section} | {what} | {value} | {asked} |\n")
    return 1 if failed else 0


sys.exit(main())
