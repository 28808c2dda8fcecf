"""Other profilers beside us: torch.profiler before, inside and after our windows, and NVIDIA's tools around and under us. Each
must find what it finds without us.
"""

import os
import re
import shutil
import signal
import subprocess
import time

ARMED = {"armed": (), "armed, CUPTI ready": ("--ready",)}


def measure(tools):
    interpreter = tools.python()
    if interpreter:
        beside_torch(tools, interpreter)
    else:
        tools.row("two profilers", "PyTorch", "not on this machine")


def beside_torch(tools, interpreter):
    script = [interpreter, str(tools.BENCH / "two_profilers.py")]
    alone = sessions(tools, tools.run(script))
    beside = sessions(tools, tools.run(tools.profile("two.sbt", script)))
    tools.row("two profilers", "torch.profiler's CUDA events alone", alone)
    tools.row("two profilers", "within our recording", beside, alone)
    found = tools.counts("two.sbt")
    tools.row("two profilers", "our kernels then (26 steps)", found["kernels"])
    tools.row("two profilers", "conflicts in our trace", found["conflicts"], 0)
    for how, options in ARMED.items():
        variables = tools.armed(*options)
        # From before the first session to between the two: the second comes after our window.
        for place, words, arguments, steps in ("around", "ready", [], "8 steps"), ("within", "within", ["within"], "1 step"):
            rest, kernels = beside_window(tools, [*script, "1.5", *arguments], variables, words, 2.2)
            tools.row("two profilers", f"{how}, with our window {place} the first of two sessions", rest, alone)
            tools.row("two profilers", f"our kernels in that window ({steps})", kernels)
        tools.row("two profilers", f"{how}, and never recorded", sessions(tools, tools.run(script, variables)), alone)


def sessions(tools, text):
    return tools.numbers(text, "cuda_events")


def beside_window(tools, command, variables, words, seconds):
    """What torch.profiler sees in its sessions, and how many kernels we in a window that opens when the program has said something."""
    target = subprocess.Popen(command, env=dict(os.environ, **variables), stdout=subprocess.PIPE, text=True)
    while words not in (line := target.stdout.readline()):
        if not line:
            raise RuntimeError(f"{command} ended")
    time.sleep(0.2)
    tools.run([tools.TRACESMITH, "record", "--force", "--pid", str(target.pid), "-d", str(seconds), "-o", str(tools.OUTPUT / "two-window.sbt")])
    rest = target.stdout.read()
    target.wait()
    return sessions(tools, rest), tools.counts("two-window.sbt")["kernels"]


def within_others(tools):
    """A program under NVIDIA's tools, as it is and armed."""
    loop = [str(tools.PROGRAMS / "launch_loop"), "1000"]
    cases = {"bare": {}} | {how: tools.armed(*options) for how, options in ARMED.items()}
    all_processes = ["--target-processes", "all"]
    # Their commands, what these need to look into children, and what of their output tells.
    others = {
        "Nsight Compute: kernels": (compute(), all_processes, lambda text: len(re.findall(r"gpu__time_duration\.sum +\w+ +[0-9]", text))),
        "compute-sanitizer: its verdict": (found("compute-sanitizer"), all_processes, lambda text: re.search("ERROR SUMMARY: .*|$", text)[0]),
        "cuda-gdb: how it ends": (found("cuda-gdb", "--batch", "-ex", "run", "--args"), [], lambda text: re.search(r"exited (normally|with code \d+)|$", text)[0]),
    }
    for name, (tool, around, find) in others.items():
        if not tool:
            tools.row("two profilers", name, "not on this machine")
            continue
        seen = []
        for how, variables in cases.items():
            done = subprocess.run([*tool, *loop], env=dict(os.environ, **variables), capture_output=True, text=True, timeout=60)
            seen.append(f"{how} {done.returncode}, {find(done.stdout + done.stderr)}")
        tools.row("two profilers", f"a program of 2,000 launches under {name}, behind the exit code", "; ".join(seen), "alike")
        both_at_once(tools, name, tool, around, find, loop)
    if tool := systems(tools):
        # The first of a program is larger than all that follow, armed or not.
        report_bytes(tools, tool, {}, 1000)
        seen = [f"{how} {bytes_of_a_launch(tools, tool, variables):.1f}" for how, variables in cases.items()]
        tools.row("two profilers", "bytes that Nsight Systems' report takes for a launch", "; ".join(seen), "alike")
        tools.run(tools.profile("two-tools.sbt", [*tool, *loop]))
        tools.row("two profilers", "Nsight Systems under us: bytes of its report; conflicts in our trace", f"{take_report(tools)}; {tools.counts('two-tools.sbt')['conflicts']}", "; 1")
        for how, options in ARMED.items():
            window_within_systems(tools, tool, how, tools.armed(*options))


def both_at_once(tools, name, tool, around, find, loop):
    """Two tools that want a program for themselves: it must come to its end, and our trace must say what it lacks."""
    orders = {
        "under us": tools.profile("two-tools.sbt", [*tool, *loop]),
        "around us": [*tool, *around, *tools.profile("two-tools.sbt", loop)],
    }
    for how, order in orders.items():
        try:
            done = subprocess.run(order, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            tools.row("two profilers", f"{name}, {how}", "had not ended after 60 s")
            continue
        text = done.stdout + done.stderr
        ours = tools.counts("two-tools.sbt")
        said = [line for line in text.splitlines() if line.startswith("warning:")]
        tools.row("two profilers", f"{name}, {how}: exit code, what it finds; rounds that the program says; our kernels, conflicts, warnings",
                  f"{done.returncode}, {find(text)}; {len(tools.numbers(text, 'us_per_launch'))}; {ours['kernels']}, {ours['conflicts']}, {said}",
                  "0, as alone; 1; all, or why none")


def bytes_of_a_launch(tools, tool, variables):
    """What is in a report of more launches and not in one of fewer: nothing reads its reports here."""
    few, many = 1000, 41_000
    return (report_bytes(tools, tool, variables, many) - report_bytes(tools, tool, variables, few)) / (many - few)


def report_bytes(tools, tool, variables, launches):
    take_report(tools)
    tools.run([*tool, str(tools.PROGRAMS / "launch_loop"), str(launches)], variables, limit=60)
    return take_report(tools)


def window_within_systems(tools, tool, how, variables):
    """A window of ours in a program that Nsight Systems has: it is told why there is nothing, and that keeps its report."""
    said = tools.OUTPUT / "forever.txt"
    # Its shell says which process it will be.
    program = ["sh", "-c", f"echo $$; exec {tools.PROGRAMS / 'launcher'} forever"]
    with open(said, "w") as output:
        target = subprocess.Popen([*tool, *program], env=dict(os.environ, **variables), stdout=output, stderr=subprocess.DEVNULL)
    numbers = lambda words: [int(number) for number in re.findall(rf"^{words}(\d+)$", said.read_text(), re.MULTILINE)]
    try:
        limit = time.monotonic() + 30
        while not numbers("launched "):
            if target.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"nothing is launched: {said.read_text()[-300:]}")
            time.sleep(0.1)
        pid = numbers("")[0]
        order = [tools.TRACESMITH, "record", "--force", "--pid", str(pid), "-d", "0.3", "-o", str(tools.OUTPUT / "two-window.sbt")]
        window = subprocess.run(order, capture_output=True, text=True, timeout=30)
        then = numbers("launched ")[-1]
        time.sleep(0.3)
        later = numbers("launched ")[-1]
        os.kill(pid, signal.SIGTERM)
        target.wait(30)
    finally:
        target.kill()
        target.wait()
    words = " ⏎ ".join(window.stderr.strip().splitlines())
    tools.row("two profilers", f"`record --pid` in a program under Nsight Systems, {how}: its exit code and words; kernels in 0.3 s behind it; bytes of Nsight's report",
              f"{window.returncode}, {words}; {later - then}; {take_report(tools)}", "another tool has it; goes on; there")


def found(name, *options):
    path = shutil.which(name)
    return path and [path, *options]


def compute():
    return found("ncu", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "-c", "3")


def systems(tools):
    path = tools.nsys()
    return path and [path, "profile", "-t", "cuda", "-o", str(tools.OUTPUT / "neighbour"), "--force-overwrite", "true"]


def take_report(tools):
    """How large the report is that Nsight Systems has just written; it is removed."""
    size = 0
    for path in tools.OUTPUT.glob("neighbour.*"):
        size += path.stat().st_size if path.suffix in (".nsys-rep", ".qdstrm") else 0
        path.unlink()
    return size
