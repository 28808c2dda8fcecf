"""Compares two traces."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal

from tracesmith import _native
from tracesmith._calls import native
from tracesmith._reports import DiffReport, build
from tracesmith._trace import open

if TYPE_CHECKING:
    from tracesmith._trace import PathLike, Trace

__all__ = ["diff"]


def diff(
    a: Trace | PathLike,
    b: Trace | PathLike,
    *,
    by: Literal["name", "short"] = "name",
    fail_over: float | None = None,
) -> DiffReport:
    """What changed from a trace to another one, per step and kernel, and how certain that is.

    `a` and `b` are traces or files. With `fail_over`, the report's `is_over` is true if the time grew by more than this
    share, for certain: `0.05` is 5 %.

    ```python
    report = tracesmith.diff("train.sbt", trace, fail_over=0.05)
    report.time.change_ns, report.is_over, report.significant[:3]
    report.kernels.to_polars()
    ```
    """
    if fail_over is not None and not fail_over >= 0:
        raise ValueError(f"fail_over is a share such as 0.05, not {fail_over}")
    before, after = (_whole(one) for one in (a, b))
    with native():
        answer: dict[str, Any] = json.loads(_native.diff(before, after, by))
    if fail_over is not None:
        answer["is_over"] = _is_over(answer, fail_over)
    return build(DiffReport, answer)


def _whole(trace: Trace | PathLike) -> _native.Analysis:
    opened = open(trace) if isinstance(trace, (str, os.PathLike)) else trace
    return opened._analysis({})


def _is_over(answer: dict[str, Any], limit: float) -> bool:
    time = answer["time"]
    # With too few steps for the test, a change counts if it is in every step.
    certain = time["is_significant"] or (not answer["has_enough_steps"] and time["is_in_every_step"])
    return bool(certain) and time["change"] is not None and time["change"] > limit
