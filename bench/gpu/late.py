"""Windows of a PyTorch process into which TraceSmith is loaded after torch.profiler has run: both must get everything.

    late.py TRACESMITH FOLDER [SCENARIO...]    SCENARIO: before, clean, running, repeated, threads; all of them without a name

Each scenario is a process of its own, started with none of TraceSmith's variables. It prints what it expected and what it
got, one line for each count, and this program ends with 1 if any of them differs. TRACESMITH is the program or its path.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

STEPS = 50
LAYERS = 8
SCENARIOS = {
    "before": "torch.profiler before the first window, within one, and after it",
    "clean": "torch.profiler never before, then within a window and after it",
    "running": "torch.profiler's session is running when a window opens: it must keep everything",
    "repeated": "ten windows and ten sessions in turns",
    "threads": "a session before, then windows while four threads launch kernels",
}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tracesmith, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 5 and sys.argv[3] == "--within":
        sys.exit(Scenario(tracesmith, folder, sys.argv[4]).run())
    wanted = sys.argv[3:] or list(SCENARIOS)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TRACESMITH_", "CUDA_INJECTION", "NVTX_INJECTION"))}
    clean.pop("LD_PRELOAD", None)
    failed = []
    for name in wanted:
        print(f"\n== {name}: {SCENARIOS[name]}", flush=True)
        done = subprocess.run([sys.executable, __file__, tracesmith, str(folder), "--within", name], env=clean, timeout=300)
        if done.returncode:
            print(f"== {name}: FAILED, exit code {done.returncode}", flush=True)
            failed.append(name)
    print("\n" + (f"failed: {', '.join(failed)}" if failed else f"all {len(wanted)} scenarios as expected"), flush=True)
    sys.exit(bool(failed))


class Scenario:
    def __init__(self, tracesmith, folder, name):
        self.tracesmith, self.folder, self.name = tracesmith, folder, name
        self.library, self.wrong, self.windows = None, 0, 0

    def run(self):
        import torch

        self.torch = torch
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(LAYERS)]).cuda()
        self.x = torch.randn(32, 128, device="cuda")
        self.steps(20)
        print(f"torch {torch.__version__} cuda {torch.version.cuda} gpu {torch.cuda.get_device_name()} python {sys.version.split()[0]}")
        print(f"tracesmith {subprocess.run([self.tracesmith, '--version'], capture_output=True, text=True).stdout.strip()}")
        try:
            # A step's kernels, by a session or by a window: whichever is known to be alone.
            getattr(self, self.name)()
        except Exception:
            traceback.print_exc()
            self.wrong += 1
        self.steps(20)
        maps = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcupti" in line}
        print("libcupti:", ", ".join(sorted(maps)) or "none")
        print("the process ends", flush=True)
        return int(self.wrong > 0)

    # What is done

    def steps(self, count):
        for _ in range(count):
            self.model(self.x).relu()
        self.torch.cuda.synchronize()

    def session(self, within=lambda: None):
        """How many events of the GPU torch.profiler gives for STEPS steps."""
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
            within()
            self.steps(STEPS)
        on_gpu = [event for event in recorded.events() if str(event.device_type).endswith("CUDA")]
        longest = max((event.time_range.elapsed_us() for event in on_gpu), default=0)
        print(f"    torch.profiler: {len(on_gpu)} events of the GPU, the longest takes {longest:.0f} us", flush=True)
        return len(on_gpu)

    def arm(self):
        if self.library:
            return
        start = time.perf_counter()
        answer = json.loads(subprocess.check_output([self.tracesmith, "--format", "json", "env"]))
        variables = answer[0] if isinstance(answer, list) else answer
        for name in ("TRACESMITH_ARMED", "TRACESMITH_RUNTIME_DIR"):
            os.environ[name] = variables[name]
        loading = time.perf_counter()
        library = ctypes.CDLL(variables["CUDA_INJECTION64_PATH"])
        assert library.InitializeInjection() == 1
        del os.environ["TRACESMITH_ARMED"]
        self.library = library
        end = time.perf_counter()
        print(f"    armed in {(end - start) * 1e3:.1f} ms, of which loading {(end - loading) * 1e3:.1f} ms", flush=True)

    def open(self, *options):
        self.arm()
        self.windows += 1
        self.path = self.folder / f"{self.name}-{self.windows}.sbt"
        start = time.perf_counter()
        command = [self.tracesmith, "record", "--pid", str(os.getpid()), "-o", str(self.path), "--force", *options]
        self.recorder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        line = self.recorder.stderr.readline().strip()
        print(f"    opened in {(time.perf_counter() - start) * 1e3:.0f} ms: {line[:160]}", flush=True)

    def close(self):
        """What the trace of the window has: kernels, and what it says is missing."""
        start = time.perf_counter()
        self.recorder.send_signal(signal.SIGINT)
        said = self.recorder.stderr.read()
        code = self.recorder.wait()
        print(f"    closed in {(time.perf_counter() - start) * 1e3:.0f} ms, exit code {code}")
        for line in said.strip().splitlines():
            print("      |", line[:200])
        info = json.loads(subprocess.check_output([self.tracesmith, "info", "--format", "json", str(self.path)]))
        version = [value for name, value in info["metadata"].items() if name.endswith("cupti.version")]
        earlier = [value for name, value in info["metadata"].items() if name.endswith("cupti.earlier_client")]
        kernels = next((table["rows"] for table in info["tables"] if table["name"] in ("kernel", "kernels")), 0)
        print(f"    window: {kernels} kernels, CUPTI {version}, earlier client {earlier}, health {json.dumps(info['health'])[:400]}", flush=True)
        return kernels, json.dumps(info["health"])

    def expect(self, what, got, expected):
        is_right = got == expected
        self.wrong += not is_right
        print(f"  {'ok   ' if is_right else 'WRONG'} {what}: got {got}, expected {expected}", flush=True)

    # Scenarios. A step launches KERNELS_OF_A_STEP kernels, which the first clean window or session counts.

    def window(self, action, *options):
        self.open(*options)
        action()
        return self.close()

    def before(self):
        print("  torch.profiler, before anything else")
        events = self.session()
        print("  a window after it")
        first, _ = self.window(lambda: self.steps(STEPS))
        print("  the same window again")
        second, _ = self.window(lambda: self.steps(STEPS))
        self.expect("kernels of the first window", first > 0 and first == second, True)
        self.expect("kernels of the second window", second, first)
        seen = []
        print("  a session within a window")
        within, _ = self.window(lambda: seen.append(self.session()))
        self.expect("events of the session within the window", seen[0], events)
        self.expect("kernels of the window around the session", within, first)
        print("  a session behind all windows")
        self.expect("events of the session behind them", self.session(), events)
        print("  a window and a replay capture behind that")
        last, _ = self.window(lambda: self.steps(STEPS), "--record")
        self.expect("kernels of the last window", last, first)
        self.expect("events of the last session", self.session(), events)

    def clean(self):
        first, _ = self.window(lambda: self.steps(STEPS))
        seen = []
        within, _ = self.window(lambda: seen.append(self.session()))
        self.expect("kernels of the window around a session", within, first)
        after = self.session()
        self.expect("events of the session within the window", seen[0], after)
        self.expect("events are there", after > 0, True)
        last, _ = self.window(lambda: self.steps(STEPS))
        self.expect("kernels of the last window", last, first)

    def running(self):
        events = self.session()
        seen = []
        self.arm()

        def recorded_in_vain():
            self.open()
            self.steps(1)
            seen.append(self.close())

        got = self.session(within=recorded_in_vain)
        per_step = events // STEPS
        kernels, health = seen[0]
        print(f"  a session of {STEPS + 1} steps, around a window of one")
        self.expect("events of the session around it", got, events + per_step)
        self.expect("kernels of the window", kernels, 0)
        self.expect("its health names the reason", "recording" in health, True)
        first, _ = self.window(lambda: self.steps(STEPS))
        second, _ = self.window(lambda: self.steps(STEPS))
        self.expect("kernels of the window behind the session", first > 0 and first == second, True)
        self.expect("events of a session behind that", self.session(), events)

    def repeated(self):
        events = self.session()
        first = None
        for turn in range(10):
            kernels, _ = self.window(lambda: self.steps(STEPS))
            first = first or kernels
            self.expect(f"kernels of window {turn}", kernels, first)
            self.expect(f"events of session {turn}", self.session(), events)

    def threads(self):
        events = self.session()
        ending = threading.Event()

        def launch():
            stream = self.torch.cuda.Stream()
            with self.torch.cuda.stream(stream):
                while not ending.is_set():
                    self.model(self.x).relu()
                    stream.synchronize()

        launching = [threading.Thread(target=launch) for _ in range(4)]
        for thread in launching:
            thread.start()
        try:
            for turn in range(5):
                kernels, health = self.window(lambda: time.sleep(0.3))
                self.expect(f"window {turn} has kernels", kernels > 100, True)
        finally:
            ending.set()
            for thread in launching:
                thread.join()
        self.expect("events of a session behind that", self.session(), events)


if __name__ == "__main__":
    main()
