"""Windows of all sorts in training loops of PyTorch, one after another in each and in several of them at once: none may
notice. A loop that dies or stops leaves its native stacks in survival-N.txt, and another takes its place.

    SURVIVAL_LOOPS    how many at once (7)
    SURVIVAL_WINDOWS  windows in each (24)
    SURVIVAL_SECONDS  of a window (0.25)
    SURVIVAL_LIMIT    seconds after which no more are opened (200)
    SURVIVAL_SORTS    options of windows, separated by ';', each loop having windows of one sort; else of all sorts in turn
"""

import ctypes
import os
import pathlib
import platform
import shlex
import signal
import statistics
import threading
import time

SORTS = ["--level light", "", "--stacks none", "--level full"]

# A loop takes a tenth of a second; with others beside it, and within a window, a few of those.
STOPPED_SECONDS = 15

TGKILL = {"x86_64": 234, "aarch64": 131}


class Survivor(threading.Thread):
    """A training loop, and who opens windows in it."""

    def __init__(self, tools, interpreter, number, sorts):
        super().__init__()
        self.tools, self.interpreter, self.number, self.sorts = tools, interpreter, number, sorts
        self.wanted = int(os.environ.get("SURVIVAL_WINDOWS", "24"))
        self.seconds = float(os.environ.get("SURVIVAL_SECONDS", "0.25"))
        self.until = time.monotonic() + float(os.environ.get("SURVIVAL_LIMIT", "200"))
        self.stacks = tools.OUTPUT / f"survival-{number}.txt"
        self.kernels, self.closing = [], []
        self.unlike, self.unjoined, self.untimed, self.dropped = 0, 0, 0, 0
        self.codes, self.stopped, self.errors = [], 0, []

    def run(self):
        fresh = -1
        while self.is_wanting() and fresh < len(self.kernels):
            # A loop in which no window opens at all is not tried again.
            fresh = len(self.kernels)
            self.one_loop()
        if self.stacks.exists() and not self.stacks.stat().st_size:
            self.stacks.unlink()

    def is_wanting(self):
        return len(self.kernels) < self.wanted and time.monotonic() < self.until

    def one_loop(self):
        preload = {"LD_PRELOAD": str(self.tools.PROGRAMS / "libcrash_stacks.so"), "CRASH_STACKS": str(self.stacks)}
        loops = self.tools.Loops(self.interpreter, "launch", 20, preload)
        try:
            while self.is_wanting() and loops.target.poll() is None and not self.is_stopped(loops):
                self.one_window(loops)
        except RuntimeError as error:
            self.errors.append(str(error))
        time.sleep(1)
        code = loops.target.poll()
        if code is not None:
            self.codes.append(code)
        elif self.is_stopped(loops):
            self.stopped += 1
            self.take_stacks(loops.target.pid)
        loops.end()

    def one_window(self, loops):
        sort = self.sorts[len(self.kernels) % len(self.sorts)]
        trace = f"survival-{self.number}.sbt"
        start = time.monotonic()
        loops.window(trace, shlex.split(sort), self.seconds)
        self.closing.append(time.monotonic() - start - self.seconds)
        found = self.tools.counts(trace)
        self.kernels.append(found["kernels"])
        self.unlike += found["kernels"] - found["distinct"]
        self.unjoined += found["kernels"] - found["joined"] if "light" not in sort else 0
        self.untimed += found["untimed"]
        self.dropped += found["vendor_dropped"] + found["ring_full"]

    def is_stopped(self, loops):
        return time.monotonic() - loops.lines[-1][0] > STOPPED_SECONDS

    def take_stacks(self, process):
        """Every thread says where it is: none blocks the signals that it may cause itself."""
        call = ctypes.CDLL(None).syscall
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            call(TGKILL[platform.machine()], process, int(task.name), int(signal.SIGTRAP))
            time.sleep(0.05)


def measure(tools):
    interpreter = tools.python()
    if not interpreter:
        tools.row("survival", "PyTorch", "not on this machine")
        return
    alone = [sort.strip() for sort in os.environ.get("SURVIVAL_SORTS", "").split(";") if sort.strip()]
    at_once = int(os.environ.get("SURVIVAL_LOOPS", "7"))
    sorts = [[alone[number % len(alone)]] if alone else SORTS for number in range(at_once)]
    survivors = [Survivor(tools, interpreter, number, each) for number, each in enumerate(sorts)]
    for survivor in survivors:
        survivor.start()
    for survivor in survivors:
        survivor.join()
    for survivor in survivors:
        for error in survivor.errors:
            tools.row("survival", "a window that could not be opened", error[-300:].replace("\n", " ⏎ "))
    for sort in alone or ["all sorts in turn"]:
        those = [each for each in survivors if not alone or each.sorts == [sort]]
        codes = [code for each in those for code in each.codes]
        tools.row("survival", f"{sort}: training loops at once; windows in each; loops that died, with their codes; that stopped",
                  f"{len(those)}; {' '.join(str(len(each.kernels)) for each in those)}; {codes}; {sum(each.stopped for each in those)}",
                  f"; {survivors[0].wanted} each; []; 0")
    kernels = [count for each in survivors for count in each.kernels]
    if not kernels:
        raise RuntimeError("no window was opened")
    sums = "; ".join(str(sum(getattr(each, what) for each in survivors)) for what in ("unlike", "unjoined", "untimed", "dropped"))
    tools.row("survival", "kernels in those windows: fewest, median; with the correlation of another; without their call; without times; records dropped",
              f"{min(kernels)}, {statistics.median(kernels):.0f}; {sums}", "; 0; at most 1 a window and thread; 0; 0")
    closing = sorted(seconds for each in survivors for seconds in each.closing)
    tools.row("survival", "seconds that `record` took longer than its window: median, longest", f"{statistics.median(closing):.2f}, {closing[-1]:.2f}")
