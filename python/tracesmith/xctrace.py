"""Recordings with Apple's Instruments, on macOS.

The command runs `xctrace`, and converts what it recorded. Elsewhere this raises: record on the Mac, and open the file here.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence

from tracesmith import _command
from tracesmith._errors import CaptureError, NotAvailableError
from tracesmith._trace import open as open_trace
from tracesmith.compat._events import TraceEvents
from tracesmith.compat._export import export_perfetto

__all__ = ["XCTraceProfiler", "profile_with_xctrace"]

TEMPLATES = ("Metal System Trace", "GPU Driver", "Game Performance", "Animation Hitches")


class XCTraceProfiler:
    """Records a command with Instruments.

    ```python
    profiler = XCTraceProfiler()
    events = profiler.profile_command(["python", "train.py"])
    profiler.export_perfetto("metal_trace.json")
    ```
    """

    def __init__(self, template: str = TEMPLATES[0]) -> None:
        self.template = template
        #: The trace of the last command.
        self.trace_file: str | None = None

    @staticmethod
    def is_available() -> bool:
        """Whether this is a Mac."""
        return sys.platform == "darwin"

    def profile_command(self, command: Sequence[str], duration: float | None = None) -> TraceEvents:
        """Runs a command, and returns its events. After `duration` seconds, Instruments end the recording and the command."""
        if not self.is_available():
            raise NotAvailableError(
                "Instruments run on macOS only",
                hint="record there: tracesmith profile --xctrace -o metal.sbt -- PROGRAM; tracesmith.open reads the file",
            )
        self.trace_file = os.path.join(tempfile.mkdtemp(prefix="tracesmith-"), "metal.sbt")
        limit = [] if duration is None else ["--duration", f"{duration:g}s"]
        options = ["--xctrace", "--xctrace-template", self.template, *limit]
        _command.run(["profile", *options, "-o", self.trace_file, "--", *command], error=CaptureError)
        return TraceEvents(open_trace(self.trace_file))

    def export_perfetto(self, path: str | os.PathLike[str]) -> bool:
        """Writes the last recording for ui.perfetto.dev."""
        if self.trace_file is None:
            raise CaptureError("nothing has been recorded yet", hint="call profile_command() first")
        return export_perfetto(self.trace_file, path)


def profile_with_xctrace(
    command: Sequence[str], duration: float | None = None, template: str = TEMPLATES[0]
) -> tuple[TraceEvents, str]:
    """Records a command with Instruments. Returns its events, and the trace's file."""
    profiler = XCTraceProfiler(template)
    events = profiler.profile_command(command, duration)
    assert profiler.trace_file is not None
    return events, profiler.trace_file
