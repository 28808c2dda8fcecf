"""What a notebook shows of a trace: its timeline, its health, and the first findings. There are no scripts in it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from tracesmith._errors import TracesmithError
from tracesmith._reports._text import Part, html_of

if TYPE_CHECKING:
    from tracesmith._trace import Trace

__all__ = ["preview"]

#: Findings that are shown.
SHOWN_FINDINGS = 3


def preview(trace: Trace) -> str:
    """A trace as HTML."""
    parts = [f"<p><b>{html.escape(repr(trace))}</b></p>", _timeline(trace)]
    problems = trace.health.problems
    if problems:
        parts.append(html_of([Part("Lost data", remarks=problems)]))
    parts.append(_findings(trace))
    return "".join(parts)


def _timeline(trace: Trace) -> str:
    # A notebook shows the rest if the command is not there, or a picture of this trace cannot be drawn.
    try:
        return trace.timeline()._repr_svg_()
    except TracesmithError as error:
        return f"<p>{html.escape(str(error))}</p>"


def _findings(trace: Trace) -> str:
    try:
        findings = trace.findings()
    except TracesmithError as error:
        return f"<p>{html.escape(str(error))}</p>"
    if not findings:
        return "<p>no findings</p>"
    items = "".join(
        f"<li>{html.escape(finding.sentence)}<br>{html.escape(finding.advice)}</li>"
        for finding in findings[:SHOWN_FINDINGS]
    )
    more = len(findings) - SHOWN_FINDINGS
    rest = f"<p>{more} more: trace.findings()</p>" if more > 0 else ""
    return f"<ol>{items}</ol>{rest}"
