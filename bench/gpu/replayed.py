"""Windows that are recorded and run again: whether they come out the same, what faults are found, and what it costs."""

import json
import os
import re
import statistics
import subprocess
import time

RUNS = 3

# Windows of a program that a timer ends.
ENDS = 8

# Windows of real programs, by the name of the trace.
FRAMEWORKS = {
    "train": ("one AdamW step of a transformer under autocast", "train", {}),
    "expandable": ("the same with expandable segments", "train", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    "pool": ("the same with cudaMallocAsync", "train", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    "graph": ("an inference step captured as a CUDA graph", "graph", {}),
    "triton": ("two Triton kernels", "triton", {}),
    "matmul": ("cuBLASLt, bf16 and fp8", "matmul", {}),
    "convolution": ("a cuDNN convolution, forward and backward", "convolution", {}),
    "attention": ("cuDNN's attention, with tensor maps and clusters", "attention", {}),
    "resnet18": ("an SGD step of torchvision's resnet18", "resnet18", {}),
    "resnet18_benchmark": ("the same with cudnn.benchmark", "resnet18_benchmark", {}),
    "solve": ("torch.linalg.solve", "solve", {}),
    "eigh": ("torch.linalg.eigh", "eigh", {}),
    "lstm": ("an LSTM, forward and backward", "lstm", {}),
    "batched": ("cuBLAS' batched product with pointer tables of the host", "batched", {}),
}

# What each planted fault must be called.
FAULTS = {
    "atomics": ("a float atomicAdd", "atomic_sum", "atomic operations"),
    "fresh": ("an uninitialised read", "copy_fresh", "nobody wrote"),
    "race": ("a missing stream wait", "add", "does not wait for stream"),
}

WINDOWS = [
    "variables", "graph", "changed", "host", "planes", "pinned", "mapped", "managed", "registered", "texture", "array", "table",
    "pointed", "twins", "reloaded",
]


class Replays:
    def __init__(self, tools):
        self.tools, self.row = tools, tools.row

    def record(self, name, command, *options, env=None):
        """Records the window of a program; the seconds that it took."""
        window = options or ("--capture-range", "cuda-profiler-api")
        start = time.monotonic()
        self.tools.run(self.tools.profile(f"{name}.sbt", command, "--record", *window), env)
        return time.monotonic() - start

    def answer(self, name, *options, codes=(0,)):
        command = [self.tools.TRACESMITH, "replay", str(self.tools.OUTPUT / f"{name}.sbt"), "--format", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        if done.returncode not in codes:
            raise RuntimeError(f"{command} gave {done.returncode}: {done.stdout[-800:]} {done.stderr[-800:]}")
        return json.loads(done.stdout)

    def same(self, name, what):
        """Runs it three times; how often it came out the same is a row."""
        section = "replay"
        try:
            answer = self.answer(name, "--repeat", str(RUNS), codes=(0, 1))
        except RuntimeError as error:
            self.row(section, f"{what}: the same byte for byte", f"FAILED: {str(error)[-600:]}", f"{RUNS} of {RUNS}")
            return None
        runs = answer["runs"]
        good = sum(run["verdict"] == "same" for run in runs)
        self.row(section, f"{what}: the same byte for byte", f"{good} of {len(runs)}", f"{RUNS} of {RUNS}")
        return answer

    def sizes(self, name, what, answer, seconds):
        plan = self.answer(name, "--mode", "dry-run")
        touched = plan["device_bytes"] + plan["host_bytes"]
        file = (self.tools.OUTPUT / f"{name}.sbt").stat().st_size
        calls = answer["runs"][0]["commands"]
        self.row(
            "replay",
            f"{what}: calls; buffers; bytes touched; bytes of the file; of those touched; seconds to record",
            f"{calls}; {len(plan['buffers'])}; {touched:,}; {file:,}; {file / touched:.2f}; {seconds:.1f}",
            "at most 1.2",
        )

    def fault(self, name):
        what, kernel, cause = FAULTS[name]
        answer = self.answer(name, "--check", "determinism", "--repeat", "3", codes=(0, 1))
        found = re.search(rf"\d{kernel}P|^{kernel}$", answer.get("name", "")) and cause in answer.get("cause", "")
        words = f"#{answer.get('command')} {answer.get('name')}: {answer.get('cause')}" if found else f"not found: {answer}"
        self.row("replay", f"{what}: found by name", words, kernel)

    def times(self, name):
        """Time of the replayed calls on the GPU beside that of the recorded ones."""
        answer = self.answer(name, "--mode", "timing", "--repeat", "5")
        calls = [call for call in answer["calls"] if call["recorded_ns"]]
        recorded = sum(call["recorded_ns"] for call in calls)
        replayed = sum(call["median_ns"] for call in calls)
        self.row("replay", f"{name}: GPU time of its {len(calls)} calls, recorded and one by one again",
                 f"{recorded / 1e3:.1f} µs, {replayed / 1e3:.1f} µs ({(replayed / recorded - 1) * 100:+.1f} %)")
        trace = f"{name}-again.sbt"
        self.tools.run(self.tools.profile(trace, [self.tools.TRACESMITH, "replay", str(self.tools.OUTPUT / f"{name}.sbt"), "--repeat", "5"],
                                          "--level", "light"))
        kernels = lambda file: json.loads(self.tools.run(
            [self.tools.TRACESMITH, "analyze", str(self.tools.OUTPUT / file), "--only", "kernels", "--limit", "0", "--format", "json"]))
        before, again = kernels(f"{name}.sbt")["total_ns"], kernels(trace)["total_ns"] / 5
        self.row("replay", f"{name}: GPU time of its kernels, recorded and in whole replays",
                 f"{before / 1e3:.1f} µs, {again / 1e3:.1f} µs ({(again / before - 1) * 100:+.1f} %)", "within 5 %")


def measure_programs(tools):
    """Programs in C and C++."""
    replays = Replays(tools)
    programs = tools.PROGRAMS
    streams, windows = str(programs / "streams"), str(programs / "windows")
    seconds = replays.record("streams", [streams, "streams"])
    answer = replays.same("streams", "a C++ program with several streams and events")
    if answer:
        replays.sizes("streams", "a C++ program with several streams and events", answer, seconds)
    for case in WINDOWS:
        replays.record(f"window-{case}", [windows, case])
        replays.same(f"window-{case}", f"windows {case}")
    for name, what in {"textures": "textures and surfaces of every kind", "device_launch": "a kernel that launches kernels"}.items():
        replays.record(name, [str(programs / name)])
        replays.same(name, what)
        repeats = replays.answer(name, "--check", "determinism", "--repeat", "2", codes=(0, 1))
        tools.row("replay", f"{what}: --check determinism", f"{repeats['verdict']} ({repeats.get('calls')} calls)", "repeats")
    temporary(replays)
    device_functions(replays)


def measure_ends(tools):
    """Windows that a timer ends while the program launches, and copies of the runtime beside our own."""
    replays = Replays(tools)
    for case in ("forever", "counting"):
        program = subprocess.Popen([str(tools.PROGRAMS / "windows"), case], env={**os.environ, **tools.armed()}, stdout=subprocess.DEVNULL)
        time.sleep(3)
        verdicts, calls = [], 0
        for number in range(ENDS):
            name = f"end-{case}-{number}"
            tools.run([tools.TRACESMITH, "record", "--force", "--pid", str(program.pid), "-d", "0.15", "--record",
                       "-o", str(tools.OUTPUT / f"{name}.sbt")])
            run = replays.answer(name, codes=(0, 1))["runs"][0]
            verdicts.append(run["verdict"])
            calls += run["commands"]
        lives = program.poll() is None
        program.kill()
        program.wait()
        tools.row("replay_ends", f"windows {case}: windows that come out the same; calls; the program lives",
                  f"{verdicts.count('same')} of {ENDS}; {calls}; {lives}", f"{ENDS} of {ENDS}; …; True")
    replays.record("runtime-copies", [str(tools.PROGRAMS / "launcher"), "runtime_copies"])
    counted = tools.run([tools.TRACESMITH, "sql", str(tools.OUTPUT / "runtime-copies.sbt"), "--format", "csv", "select count(*) from copies"])
    tools.row("replay_ends", "runtime_copies: copies in the trace", counted.split()[1], 3)
    replays.same("runtime-copies", "three copies of the runtime")


# A kernel with the parameters of `fill` that writes nothing.
NOTHING = """
.version 7.0
.target sm_52
.address_size 64
.visible .entry noop(.param .u64 target, .param .u32 value, .param .u32 n)
{
ret;
}
"""


def temporary(replays):
    """Memory that is allocated and freed within the window is compared too."""
    tools = replays.tools
    replays.record("temporary", [str(tools.PROGRAMS / "launcher"), "temporary", "100000"])
    replays.same("temporary", "memory that the window allocates and frees")
    code = tools.OUTPUT / "nothing.ptx"
    code.write_text(NOTHING)
    for kernel in ("fill#1", "fill#2"):
        answer = replays.answer("temporary", "--kernel", kernel, "--replace", f"fill={code}:noop", codes=(0, 1))
        words = f"{answer['verdict']}, the launch leaves {answer['replaced'][0]['outcome']['verdict']}"
        tools.row("replay", f"{kernel} on such memory, replaced by a kernel that does nothing", words, "differs")


def device_functions(replays):
    """Addresses of device functions in memory are not changed: whatever comes out, it is not called the same wrongly."""
    tools = replays.tools
    replays.record("device_functions", [str(tools.PROGRAMS / "device_functions")])
    command = [tools.TRACESMITH, "replay", str(tools.OUTPUT / "device_functions.sbt")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    text = " ⏎ ".join((done.stdout + done.stderr).strip().splitlines())[-300:]
    tools.row("replay", "a kernel that calls device functions through memory", f"exit {done.returncode}: {text}", "")


def measure(tools):
    measure_programs(tools)
    replays = Replays(tools)
    programs = tools.PROGRAMS
    streams, windows = str(programs / "streams"), str(programs / "windows")
    replays.record("collective", [windows, "collective"], "--stub-collectives", "--capture-range", "cuda-profiler-api")
    replays.same("collective", "windows collective, by what it left (--stub-collectives)")
    refused(replays, windows)
    for case in FAULTS:
        replays.record(case, [streams, case])
        replays.fault(case)
    replays.record("kernel", [streams, "streams"], "--kernel", "scatter")
    replays.same("kernel", "one launch of one kernel (--kernel scatter)")
    running(replays, windows)
    features(replays)
    interpreter = tools.python()
    if interpreter is None:
        tools.row("replay", "PyTorch", "not on this machine")
        return
    steps = [interpreter, str(tools.BENCH / "replay" / "steps.py")]
    for name, (what, case, env) in FRAMEWORKS.items():
        try:
            seconds = replays.record(name, [*steps, case], env=env)
        except RuntimeError as error:
            tools.row("replay", what, f"FAILED: {str(error)[-600:]}", f"{RUNS} of {RUNS}")
            continue
        answer = replays.same(name, what)
        if answer:
            replays.sizes(name, what, answer, seconds)
    # cuDNN's fastest algorithm adds with atomic operations here: every run differs, and the check says which kernel it is.
    replays.record("resnet18_atomics", [*steps, "resnet18_atomics"])
    answer = replays.answer("resnet18_atomics", "--check", "determinism", "--repeat", "3", codes=(0, 1))
    words = f"{answer['verdict']}: #{answer.get('command')} {answer.get('name', '')[:60]}: {answer.get('cause')}"
    tools.row("replay", "resnet18 with cudnn.benchmark and algorithms that need not repeat", words, "named, or repeats")
    repeats = replays.answer("train", "--check", "determinism", "--repeat", "2", codes=(0, 1))
    tools.row("replay", "train: --check determinism", f"{repeats['verdict']} ({repeats.get('calls')} calls)", "repeats")
    replays.times("train")
    replays.times("graph")
    outside(replays, streams)


def features(replays):
    """What else can be done with a recording, each as a user would ask for it."""
    tools, row = replays.tools, replays.row
    cubin = str(tools.PROGRAMS / "others.cubin")
    trace = str(tools.OUTPUT / "streams.sbt")

    def said(what, *options, code, asked="", words="", given=None):
        command = [tools.TRACESMITH, "replay", trace, *options]
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, input=given)
        text = " ⏎ ".join((done.stdout + done.stderr).strip().splitlines()[-6:])[-700:]
        good = done.returncode == code and words in done.stdout + done.stderr
        row("replay", f"{what} ({time.monotonic() - start:.1f} s)", text if good else f"WRONG, exit {done.returncode}: {text}", asked)

    said("--replace by the same kernel", "--replace", f"scatter={cubin}:same", code=0, asked="the same")
    said("--replace by another kernel", "--replace", f"scatter={cubin}:other", code=1, asked="differs")
    said("--replace by a kernel that faults", "--replace", f"scatter={cubin}:fault", code=2, words="scatter", asked="named")
    said("--replace by a kernel that does not end", "--replace", f"scatter={cubin}:hang", "--timeout", "4", code=2,
         words="scatter", asked="named")
    said("after both, the recording itself", code=0, asked="the same")
    said("one kernel, 200 times", "--kernel", "scatter#1", "--mode", "timing", "--repeat", "200", code=0)
    said("--ops 40..60", "--ops", "40..60", code=0)
    said("--mode as-recorded", "--mode", "as-recorded", code=0)
    said("--mode serial", "--mode", "serial", code=0)
    said("--tolerance f32=1e-6", "--tolerance", "f32=1e-6", code=0)
    said("--step", "--step", "--snapshot-every", "20", code=0, given="next 30\nback 5\nbuffers\nquit\n")
    plan = tools.OUTPUT / "plan.json"
    plan.write_text(json.dumps({"repeat": 2, "replace": [{"kernel": "scatter", "file": cubin, "symbol": "same"}]}))
    said("--plan", "--plan", str(plan), code=0)
    folder = tools.OUTPUT / "extracted"
    tools.run([tools.TRACESMITH, "extract", trace, "--kernel", "scatter#1", "-o", str(folder)])
    tools.run(["g++", "-O1", "-o", str(folder / "reproduce"), str(folder / "reproduce.cpp"), "-ldl"])
    for program in (["./reproduce"], ["python3", "reproduce.py"]):
        done = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=60)
        row("replay", f"extract, {' '.join(program)}", f"exit {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}", "exit 0: same")


def refused(replays, windows):
    """What cannot be replayed is said."""
    replays.record("refused-collective", [windows, "collective"])
    reasons_of(replays, "refused-collective", "windows collective")


def reasons_of(replays, name, what):
    plan = replays.answer(name, "--mode", "dry-run", codes=(0, 1))
    reasons = {obstacle["reason"] for obstacle in plan["obstacles"]}
    replays.row("replay", f"{what}: not replayable because", "; ".join(sorted(reasons)) or "NOTHING SAID", "a reason")


def running(replays, windows):
    """Windows in programs that run already."""
    tools = replays.tools
    for case in ("forever", "counting", "both", "looking"):
        target = subprocess.Popen([windows, case], env=dict(os.environ, **tools.armed()), stdout=subprocess.DEVNULL)
        try:
            time.sleep(2)
            tools.run([tools.TRACESMITH, "record", "--pid", str(target.pid), "-d", "0.2", "--record", "--force",
                       "-o", str(tools.OUTPUT / f"running-{case}.sbt")])
        finally:
            target.kill()
        if case == "looking":
            reasons_of(replays, f"running-{case}", f"windows {case}, in a program that runs already")
        else:
            replays.same(f"running-{case}", f"windows {case}, in a program that runs already (record --pid)")


def outside(replays, streams):
    """What recording costs where the window is not."""
    tools = replays.tools
    loop = [str(tools.PROGRAMS / "launch_loop"), "40000", "1", "2"]
    cases = {
        "bare": loop,
        "light": tools.profile("outside-light.sbt", loop, "--level", "light"),
        "recording, outside of its window": tools.profile(
            "outside.sbt", loop, "--record", "--capture-range", "cuda-profiler-api"),
        "recording, waiting for a kernel": tools.profile("outside-kernel.sbt", loop, "--record", "--kernel", "nothing"),
    }
    taken = {name: [] for name in cases}
    for _ in range(int(os.environ.get("ROUNDS", "7"))):
        for name, command in cases.items():
            taken[name] += tools.numbers(tools.run(command), "us_per_launch")
    for name, times in taken.items():
        tools.row("replay", f"{name}: µs per launch (fastest; median)", f"{min(times):.3f}; {statistics.median(times):.3f}",
                  "at most that of light" if "recording" in name else "")
