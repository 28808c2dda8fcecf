"""What CUPTI makes of callbacks and kinds that are switched while a program launches: cases of switching.cu, each in a
process of its own. What TraceSmith does at the ends of windows rests on it.

    SWITCHING_WINDOWS   windows of each case (60)
"""

import os

# What is launched, whose callbacks are on, what is switched off first, where the thread then is, what the client does.
CASES = [
    "graph none kinds inside stay",
    "graph driver kinds inside stay",
    "graph runtime kinds inside stay",
    "graph both kinds inside stay",
    "graph both kinds outside stay",
    "graph both callbacks inside stay",
    "graph both callbacks inside leave",
    "graph driver callbacks inside stay",
    "kernel driver kinds inside stay",
    "kernel both kinds inside stay",
]


def measure(tools):
    windows = os.environ.get("SWITCHING_WINDOWS", "60")
    for case in CASES:
        what, callbacks, first, where, client = case.split()
        words = tools.run([str(tools.PROGRAMS / "switching"), *case.split(), windows])
        inside, launches, kernels, wrong, number, begun, ended = (
            int(tools.number(words, key)) for key in ("inside", "launches", "kernels", "wrong", "first", "begun", "ended"))
        where = f", {inside} of them within a launch" if where == "inside" else " outside of calls"
        tools.row("switching", f"{what}, callbacks {callbacks}, {first} off first, client to {client}: windows{where}: "
                  "launches; kernels; windows with launches that have others' kernels (the first); beginnings and ends told",
                  f"{windows}: {launches}; {kernels}; {wrong} ({number}); {begun}, {ended}")
