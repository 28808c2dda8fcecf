"""Figures of the Python package over a large trace.

    python bench/python_tables.py TRACE [COMMAND]

TRACE is what `cargo run --release -p tracesmith-bench --example write_trace 10000000 TRACE` writes. COMMAND is the `tracesmith`
to compare analyses with. Needs the package and polars. Each figure is the best of three.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import polars

import tracesmith


def best(work: Callable[[], object], times: int = 3) -> float:
    """The shortest of some runs, in seconds."""
    runs = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        runs.append(time.perf_counter() - begun)
    return min(runs)


def show(figure: str, measured: str, asked: str = "") -> None:
    """One line of the table."""
    print(f"{figure:62} {measured:>12}   {asked}", flush=True)


def main() -> None:
    """Prints the figures."""
    path, *command = sys.argv[1:]
    print(f"{'figure':62} {'measured':>12}   asked")
    show("open", f"{best(lambda: tracesmith.open(path)) * 1e3:.1f} ms", "5 ms")
    trace = tracesmith.open(path)
    show("kernels", f"{len(trace.kernels):,}")
    columns = ["start", "end", "name"]
    show("start, end, name to polars", f"{best(lambda: trace.kernels.to_polars(columns)):.2f} s", "0.5 s")
    show("start, end, name to polars, by the stream", f"{best(lambda: polars.DataFrame(trace.kernels.select(*columns))):.2f} s")
    show("duration to numpy", f"{best(lambda: trace.kernels.to_numpy(['duration'])):.2f} s")
    middle = trace.kernels.between("50%", "51%").select(*columns)
    show("one percent of the time to polars", f"{best(middle.to_polars) * 1e3:.0f} ms")
    group = "select name, sum(duration) from kernels group by 1"
    show("sum of durations by name, SQL", f"{best(lambda: trace.sql(group)):.2f} s")
    # Results are kept with the trace, so only the first analysis of a trace counts.
    show("analyze, first", f"{best(lambda: tracesmith.open(path).analyze(), 2):.2f} s")
    if command:
        run = [command[0], "analyze", path, "--format", "json"]
        show("tracesmith analyze --format json", f"{best(lambda: subprocess.run(run, stdout=subprocess.DEVNULL, check=True), 2):.2f} s")
    show("peak memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
