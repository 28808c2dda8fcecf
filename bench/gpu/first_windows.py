"""The first window of a program, in which CUPTI comes up while the program makes graphs ready: it must live on. One that
dies leaves its native stack in first-N.txt.

    FIRST_STARTS    starts of the program (60)
    FIRST_AT_ONCE   how many of it at a time (1: with others beside it a program is at its graphs less often)
"""

import collections
import os
import subprocess
import threading
import time


class Starter(threading.Thread):
    """Starts programs, one after another."""

    def __init__(self, tools, number, starts):
        super().__init__()
        self.tools, self.number, self.starts = tools, number, starts
        self.ends, self.kernels, self.errors = collections.Counter(), 0, []

    def run(self):
        for _ in range(self.starts):
            self.one_program()

    def one_program(self):
        environment = dict(os.environ, **self.tools.armed())
        stacks = self.tools.OUTPUT / f"first-{self.number}.txt"
        preloaded = [str(self.tools.PROGRAMS / "libcrash_stacks.so"), environment.get("LD_PRELOAD")]
        environment |= {"LD_PRELOAD": ":".join(filter(None, preloaded)), "CRASH_STACKS": str(stacks)}
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
    starts, at_once = int(os.environ.get("FIRST_STARTS", "60")), int(os.environ.get("FIRST_AT_ONCE", "1"))
    starters = [Starter(tools, number, starts // at_once) for number in range(at_once)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    ends = sum((starter.ends for starter in starters), collections.Counter())
    died = {code: count for code, count in ends.items() if code is not None}
    for error in {error for starter in starters for error in starter.errors}:
        tools.row("first", "a window that could not be recorded", error[-300:].replace("\n", " ⏎ "))
    tools.row("first", f"programs that make graphs, {at_once} at a time, one window in each: started; died, by their codes; kernels in those windows",
              f"{ends.total()}; {died}; {sum(starter.kernels for starter in starters)}", "; {}")
