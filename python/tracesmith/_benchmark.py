"""Times of a function's GPU work, from a real recording.

Each call is a range of the trace. The GPU work that is launched from its beginning to the beginning of the next call is
the call's, from whatever thread. The GPU is idle when a call begins, so calls do not overlap.
"""

from __future__ import annotations

import statistics
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracesmith._driver import synchronize
from tracesmith._errors import CaptureError
from tracesmith._options import Path
from tracesmith._reports._text import time as readable_time

if TYPE_CHECKING:
    from tracesmith._trace import Trace

__all__ = ["Benchmark", "benchmark"]

_WORK = """
select l.call_start, l.start, l.end, g.class in ('compute', 'communication') as is_kernel
from launches l join gpu_ops g on g.op = l.op order by l.start
"""


@dataclass(frozen=True)
class Benchmark:
    """What calls of a function cost. All lists have one number for each call."""

    name: str
    gpu_ns: tuple[int, ...]
    """Time in which the GPU worked for the call. Kernels that run at the same time count once."""
    span_ns: tuple[int, ...]
    """Time from the start of the call's first GPU operation to the end of its last one."""
    cpu_ns: tuple[int, ...]
    """Time in the function, on the CPU. Launches return before their kernels do."""
    kernels: tuple[int, ...]
    """Kernels that the call launched."""
    lost: int
    """Records that are missing in the trace. The times are right only with 0."""
    trace: Trace = field(repr=False, compare=False)
    """All of it."""

    @property
    def median_ns(self) -> float:
        """The median GPU time of a call."""
        return statistics.median(self.gpu_ns)

    @property
    def mean_ns(self) -> float:
        """The mean GPU time of a call."""
        return statistics.fmean(self.gpu_ns)

    @property
    def min_ns(self) -> int:
        """The shortest GPU time of a call."""
        return min(self.gpu_ns)

    @property
    def p95_ns(self) -> int:
        """The GPU time that 95 % of the calls do not exceed."""
        return sorted(self.gpu_ns)[-(-95 * len(self.gpu_ns) // 100) - 1]

    @property
    def kernels_per_call(self) -> float:
        """The median number of kernels of a call."""
        return statistics.median(self.kernels)

    @property
    def cpu_median_ns(self) -> float:
        """The median time in the function, on the CPU."""
        return statistics.median(self.cpu_ns)

    def speedup_over(self, other: Benchmark) -> float:
        """How many times faster this is than the other, by the median GPU time."""
        return other.median_ns / self.median_ns

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {readable_time(self.median_ns)} of GPU time per call (median of {len(self.gpu_ns)})",
            f"  mean {readable_time(self.mean_ns)}, min {readable_time(self.min_ns)}, p95 {readable_time(self.p95_ns)}",
            f"  {self.kernels_per_call:g} kernels per call, {readable_time(self.cpu_median_ns)} of CPU time to launch them",
        ]
        if self.lost:
            lines.append(f"  {self.lost} records are missing: the times are too short")
        return "\n".join(lines)


def benchmark(
    function: Callable[..., object],
    *args: Any,
    warmup: int = 3,
    iterations: int = 20,
    name: str | None = None,
    path: Path | None = None,
    overwrite: bool = False,
    **kwargs: Any,
) -> Benchmark:
    """Calls a function and returns the GPU time of each call, as recorded.

    `warmup` calls come first and are not recorded. Arguments that are not named here go to the function. `path` keeps
    the trace. Recording lengthens launches on the CPU, and leaves the times on the GPU as they are.

    >>> import tracesmith as ts
    >>> old = ts.benchmark(attention, q, k, v)                      # doctest: +SKIP
    >>> new = ts.benchmark(flash_attention, q, k, v)                # doctest: +SKIP
    >>> print(new, new.speedup_over(old))                           # doctest: +SKIP
    """
    if warmup < 0 or iterations < 1:
        raise ValueError(
            f"warmup must be at least 0 and iterations at least 1, not {warmup} and {iterations}"
        )
    from tracesmith._arm import is_under_profile
    from tracesmith._profile import profile
    from tracesmith._ranges import range as span

    if is_under_profile():
        raise CaptureError(
            "this process is recorded by an outer 'tracesmith profile', which has the times",
            hint="run the program without it",
        )
    title = name or str(getattr(function, "__qualname__", type(function).__name__))
    for _ in range(warmup):
        function(*args, **kwargs)
    synchronize()
    cpu: list[int] = []
    with profile(
        path, kinds=["kernels", "copies", "api", "graphs", "nvtx"], stacks=False, overwrite=overwrite
    ) as p:
        for number in range(iterations):
            with span(title, payload=number):
                begun = time.perf_counter_ns()
                function(*args, **kwargs)
                cpu.append(time.perf_counter_ns() - begun)
            synchronize()
    starts = [
        row["start"]
        for row in p.trace.markers.where(domain="tracesmith").to_dicts(["start", "name"])
        if row["name"] == title
    ]
    calls = _split(p.trace.sql(_WORK).to_dicts(), sorted(starts), iterations, title)
    return Benchmark(
        name=title,
        gpu_ns=tuple(_busy(work) for work in calls),
        span_ns=tuple(max(op["end"] for op in work) - work[0]["start"] if work else 0 for work in calls),
        cpu_ns=tuple(cpu),
        kernels=tuple(sum(1 for op in work if op["is_kernel"]) for work in calls),
        lost=p.lost,
        trace=p.trace,
    )


def _split(
    work: list[dict[str, Any]], starts: list[int], iterations: int, name: str
) -> list[list[dict[str, Any]]]:
    """The GPU work of each call, in the order of its start."""
    if len(starts) != iterations:
        raise CaptureError(
            f"the trace has {len(starts)} of the {iterations} calls of {name}",
            hint="give the benchmark a name that no other range has",
        )
    calls: list[list[dict[str, Any]]] = [[] for _ in starts]
    for op in work:
        number = bisect_right(starts, op["call_start"]) - 1
        if number >= 0:
            calls[number].append(op)
    if not any(calls):
        raise CaptureError(
            f"{name} launched no GPU work", hint="check that its data are on the GPU, or time it with timeit"
        )
    return calls


def _busy(work: list[dict[str, Any]]) -> int:
    """The time in which at least one operation ran."""
    busy = until = 0
    for op in work:
        start = max(op["start"], until)
        if op["end"] > start:
            busy += op["end"] - start
            until = op["end"]
    return busy
