"""Analyses of a trace, or of one of its steps, as methods that answer with typed reports."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from tracesmith._calls import native

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tracesmith import _native
    from tracesmith import _reports as reports
    from tracesmith._table import Time

__all__ = ["Analyses", "KernelKey", "Selection"]

R = TypeVar("R")

KernelKey = Literal["name", "short", "shape", "line", "nvtx", "operator", "process", "rank", "step"]
"""What makes two kernels the same."""

#: The names of the library for these keys, where they are others.
_KEYS = {"short": "short_name", "line": "stack", "nvtx": "ranges"}


class Selection(TypedDict, total=False):
    """The part of a trace that is analyzed."""

    step: int | None
    """The time of this step, counted from 0."""
    range: tuple[Time, Time] | None
    """A time range, such as `("1s", "2s")`."""
    process: int | str | Sequence[int | str] | None
    """Only these processes: a pid, or `"#ID"`."""
    rank: int | Sequence[int] | None
    """Only the processes of these ranks."""
    device: int | str | Sequence[int | str] | None
    """Only these GPUs: the driver's index, `"HOST:INDEX"`, or `"#ID"`."""
    stream: int | Sequence[int] | None
    """Only these streams."""


class Analyses:
    """The analyses. Each method takes a selection: `step=4`, `range=("1s", "2s")`, `rank=0` and others."""

    def _analysis(self, selection: Selection) -> _native.Analysis:
        """The analysis of a part."""
        raise NotImplementedError

    def analyze(self, **selection: Unpack[Selection]) -> reports.Summary:
        """What a first look wants: utilization, idle causes, steps, kernels, copies, launches and findings.

        ```python
        report = trace.analyze()
        print(report)
        report.utilization.devices[0].busy_ns
        report.findings[0].sentence
        trace.analyze(step=4)
        ```
        """
        from tracesmith._reports import Summary, build

        analysis = self._analysis(selection)
        with native():
            answer: dict[str, Any] = json.loads(analysis.summary())
        return build(Summary, _with_doubts(answer))

    def utilization(self, **selection: Unpack[Selection]) -> reports.UtilizationReport:
        """How busy GPUs and streams were.

        ```python
        trace.utilization().devices[0].utilization
        trace.utilization().streams.to_polars()
        ```
        """
        from tracesmith._reports import UtilizationReport, build

        answer = self._json("utilization", selection)
        answer["streams"] = self._json("streams", selection)["streams"]
        return build(UtilizationReport, answer)

    def idle(self, **selection: Unpack[Selection]) -> reports.IdleReport:
        """Why GPUs and streams were idle, and the longest gaps.

        ```python
        for gap in trace.idle().devices[0].longest[:3]:
            print(gap.cause, gap.to_ns - gap.from_ns, gap.next)
        ```
        """
        from tracesmith._reports import IdleReport

        return self._report(IdleReport, "idle", selection)

    def host_activity(self, **selection: Unpack[Selection]) -> reports.HostActivityReport:
        """What the CPU did while GPUs waited for it: operators, NVTX ranges and Python lines.

        ```python
        [(line.name, line.total_ns) for line in trace.host_activity().idle.lines[:3]]
        ```
        """
        from tracesmith._reports import HostActivityReport

        return self._report(HostActivityReport, "host", selection)

    def kernel_stats(
        self, by: KernelKey = "name", *, limit: int | None = None, **selection: Unpack[Selection]
    ) -> reports.KernelsReport:
        """Kernels by total time, in groups of the same name, line, NVTX range and others.

        ```python
        trace.kernel_stats(by="line").rows[0].name
        trace.kernel_stats(by="short", limit=10).rows.to_polars()
        ```
        """
        from tracesmith._reports import KernelsReport

        options = {"by": _KEYS.get(by, by), "limit": limit}
        return self._report(KernelsReport, "kernels", selection, options)

    def copy_stats(self, **selection: Unpack[Selection]) -> reports.CopiesReport:
        """Memcpys and memsets by direction, with their bandwidth.

        ```python
        [(row.direction, row.bytes, row.gigabytes_per_second) for row in trace.copy_stats().rows]
        ```
        """
        from tracesmith._reports import CopiesReport

        return self._report(CopiesReport, "copies", selection)

    def launch_stats(self, **selection: Unpack[Selection]) -> reports.LaunchesReport:
        """Launch calls, their latency, and the depth of the queues.

        ```python
        trace.launch_stats().latency.p50_ns
        ```
        """
        from tracesmith._reports import LaunchesReport

        return self._report(LaunchesReport, "launches", selection)

    def memory(self, **selection: Unpack[Selection]) -> reports.MemoryReport:
        """Memory use: the peak, who holds it, and what is never freed.

        ```python
        trace.memory().peak
        ```
        """
        from tracesmith._reports import MemoryReport

        return self._report(MemoryReport, "memory", selection)

    def critical_path(self, **selection: Unpack[Selection]) -> reports.CriticalPathReport:
        """What determines the total time.

        ```python
        path = trace.critical_path(step=4)
        [(total.part, total.share) for total in path.totals[:3]]
        ```
        """
        from tracesmith._reports import CriticalPathReport

        return self._report(CriticalPathReport, "critical-path", selection)

    def slack(self, **selection: Unpack[Selection]) -> reports.SlackReport:
        """How much later each GPU operation could have ended without delaying the end.

        ```python
        trace.slack(step=4).slack.to_polars()
        ```
        """
        from tracesmith._reports import SlackReport

        return self._report(SlackReport, "slack", selection)

    def findings(self, **selection: Unpack[Selection]) -> reports.Findings:
        """Problems, with advice and what a fix saves at most.

        ```python
        for finding in trace.findings():
            print(finding.sentence, finding.evidence[0])
        ```
        """
        from tracesmith._reports import Findings, build
        from tracesmith._reports.findings import Finding

        # No lambda: reports can be pickled.
        return Findings(self._json("findings", selection)["findings"], functools.partial(build, Finding))

    def what_if(
        self,
        *,
        speedup: Mapping[str, float] | None = None,
        streams: int | Literal["unlimited"] | None = None,
        without_sync: bool | str | None = None,
        **selection: Unpack[Selection],
    ) -> reports.WhatIfReport:
        """The predicted time with a change.

        `speedup` has name patterns of GPU work and how many times as fast it is. `streams` is the number of streams on
        each GPU. `without_sync` removes the CPU's waits for the GPU: all of them, or those in functions or code lines
        that a pattern matches. A warning says if a pattern matches nothing.

        ```python
        trace.what_if(speedup={"triton*": 2}).changed_ns
        trace.what_if(streams="unlimited", without_sync=True).speedup
        ```
        """
        from tracesmith._reports import WhatIfReport, build

        change = {
            "scales": [{"name": name, "factor": _factor(times)} for name, times in (speedup or {}).items()],
            "streams": _streams(streams),
            "host_waits": _waits(without_sync),
        }
        answer = self._json("what-if", selection, {"what_if": change})
        report = build(WhatIfReport, {**answer["what_if"][0], "doubts": answer["doubts"]})
        with native():
            unmatched = self._analysis(selection).unmatched_patterns(json.dumps(change), report.left_waits)
        for target, pattern, suggestion in unmatched:
            warnings.warn(f"{_UNMATCHED[target].format(pattern)}{suggestion}", RuntimeWarning, stacklevel=2)
        return report

    def _report(
        self, kind: type[R], name: str, selection: Selection, options: Mapping[str, Any] | None = None
    ) -> R:
        from tracesmith._reports import build

        return build(kind, self._json(name, selection, options))

    def _json(
        self, name: str, selection: Selection, options: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        analysis = self._analysis(selection)
        with native():
            answer: dict[str, Any] = json.loads(analysis.report(name, json.dumps(options or {})))
        return answer


def _with_doubts(answer: dict[str, Any]) -> dict[str, Any]:
    """The summary with its data quality in each report, as the reports have it when they stand alone."""
    for name in ("utilization", "idle", "steps", "kernels", "copies", "launches"):
        if answer[name] is not None:
            answer[name]["doubts"] = answer["doubts"]
    return answer


#: Patterns that match nothing, as the command names them.
_UNMATCHED = {
    "work": "no GPU work matches speedup '{}'",
    "waits": "no CPU wait matches without_sync '{}'; none was removed",
}


def _factor(times: float) -> float:
    if not times > 0:
        raise ValueError(f"a speedup is greater than 0, not {times}")
    return 1.0 / times


def _streams(streams: int | str | None) -> object:
    if streams is None:
        return "as_recorded"
    return "unlimited" if streams == "unlimited" else {"at_most": streams}


def _waits(without: bool | str | None) -> object:
    if isinstance(without, str):
        return {"left_in": without}
    return "left" if without else "kept"
