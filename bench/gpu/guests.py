"""Programs with a profiler of their own, linked against CUPTI: the plans of the end-to-end tests, on the real one. What the
profiler is given must be what it is given without us, and our trace must have every kernel.

    crates/fake-cuda/targets/guest_plans.txt    the plans, and what they are about
"""

import os
import signal
import subprocess

from neighbours import ARMED

PROFILED = {"profile": (), "profile --level full": ("--level", "full")}
SECONDS = 60


def measure(tools):
    at_one_go, with_halts = read_plans(tools)
    alone = {plan: answer(subprocess.run(guest(tools, plan), capture_output=True, text=True, timeout=SECONDS)) for plan in at_one_go}
    sample = next(plan for plan in at_one_go if "D" in plan)
    tools.row("clients", f"what the profiler in a program is given alone, plan {sample}", alone[sample])
    for how, options in PROFILED.items():
        compare(tools, how, alone, lambda plan: profiled(tools, plan, options))
    for how, options in ARMED.items():
        environment = dict(os.environ, **tools.armed(*options))
        run = lambda plan: answer(subprocess.run(guest(tools, plan), env=environment, capture_output=True, text=True, timeout=SECONDS))
        compare(tools, f"{how}, and never recorded", alone, run)
    alone = {plan: f"{go_through(tools, plan, {})[0]}; {kernels} in our window" for plan, kernels in with_halts.items()}
    for how, options in ARMED.items():
        variables = tools.armed(*options)
        compare(tools, f"{how}, with a window between its halts", alone, lambda plan: "; ".join(go_through(tools, plan, variables)))


def read_plans(tools):
    at_one_go, with_halts = [], {}
    for line in (tools.ROOT / "crates/fake-cuda/targets/guest_plans.txt").read_text().splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        if "g" in words[0]:
            with_halts[words[0]] = int(words[1])
        else:
            at_one_go.append(words[0])
    return at_one_go, with_halts


def guest(tools, plan):
    return [str(tools.PROGRAMS / "guest"), plan]


def answer(done):
    """What a program says at its end, and its exit code if that is not 0."""
    last = done.stdout.strip().rpartition("\n")[2]
    return last if done.returncode == 0 else f"{last} exit {done.returncode} {done.stderr[-200:]}"


def compare(tools, how, alone, run):
    """A row that says in how many plans the program was told the same, and one for each where it was not."""
    alike = 0
    for plan, expected in alone.items():
        try:
            found = run(plan)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            found = str(error)[-300:]
        if found == expected:
            alike += 1
        else:
            tools.row("clients", f"{how}, plan {plan}", found.replace("\n", " ⏎ "), expected)
    tools.row("clients", f"{how}: plans in which the program's profiler is given what it is given alone", alike, len(alone))


def profiled(tools, plan, options):
    done = subprocess.run(tools.profile("guest.sbt", guest(tools, plan), *options), capture_output=True, text=True, timeout=SECONDS)
    said = answer(done)
    found = tools.counts("guest.sbt")
    launched = int(tools.number(said, "launched"))
    wrong = {key: found[key] for key in ("kernels", "joined") if found[key] != launched}
    if found["conflicts"]:
        wrong["conflicts"] = found["conflicts"]
    return f"{said} but in our trace {wrong}" if wrong else said


def go_through(tools, plan, variables):
    """What a program says that goes through a plan, and how many kernels our window had between its two halts."""
    target = subprocess.Popen(guest(tools, plan), env=dict(os.environ, **variables), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        hear(target)
        recorder = start_recorder(tools, target.pid) if variables else None
        say(target)
        hear(target)
        found = ""
        if recorder:
            recorder.send_signal(signal.SIGINT)
            _, words = recorder.communicate(timeout=SECONDS)
            found = f"{tools.counts('guest.sbt')['kernels']} in our window" if recorder.returncode == 0 else words
        said, errors = target.communicate("\n", timeout=SECONDS)
        return answer(subprocess.CompletedProcess(target.args, target.returncode, said, errors)), found
    finally:
        target.kill()
        target.wait()


def start_recorder(tools, pid):
    """Comes back when its window is open."""
    order = [tools.TRACESMITH, "record", "--force", "--pid", str(pid), "-o", str(tools.OUTPUT / "guest.sbt")]
    recorder = subprocess.Popen(order, stderr=subprocess.PIPE, text=True)
    if not recorder.stderr.readline():
        raise RuntimeError(f"{order} ended")
    return recorder


def hear(target):
    if not target.stdout.readline().startswith("at "):
        raise RuntimeError(f"{target.args} ended: {target.stderr.read()[-300:]}")


def say(target):
    target.stdin.write("\n")
    target.stdin.flush()
