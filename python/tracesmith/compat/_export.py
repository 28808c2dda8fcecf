"""Traces for other tools, and traces of other tools."""

from __future__ import annotations

import os

from tracesmith import _command
from tracesmith._errors import NotAvailableError, TraceError
from tracesmith._trace import Trace
from tracesmith._trace import open as open_trace
from tracesmith.compat._events import Source, file_of, trace_of

__all__ = ["PerfettoExporter", "XRayImporter", "export_perfetto"]


class PerfettoExporter:
    """Writes traces for ui.perfetto.dev.

    `set_enable_gpu_tracks` chooses between tracks, which every version of Perfetto shows, and its GPU render stages.
    """

    def __init__(self) -> None:
        self._form = "tracks"

    def set_enable_gpu_tracks(self, enable: bool) -> None:
        """GPU work as tracks (`True`), or as render stages of newer Perfetto versions."""
        self._form = "tracks" if enable else "render-stages"

    def set_enable_flow_events(self, enable: bool) -> None:
        """Launches and their work are always linked by flows."""
        if not enable:
            raise NotAvailableError(
                "exports without flows are not available", hint="hide them in Perfetto: Settings, Flow events"
            )

    def export_to_file(self, source: Source, path: str | os.PathLike[str]) -> bool:
        """Writes events or a trace: JSON if the name ends in `.json`, else Perfetto's own format.

        ```python
        tracesmith.PerfettoExporter().export_to_file(trace, "trace.json")
        ```
        """
        name = os.fspath(path)
        kind = ["json"] if name.endswith((".json", ".json.gz")) else ["perfetto", "--gpu-form", self._form]
        _command.run(
            ["export", file_of(trace_of(source)), "-o", name, "--force", "-f", *kind], error=TraceError
        )
        return True


def export_perfetto(source: Source, path: str | os.PathLike[str]) -> bool:
    """Writes events or a trace for ui.perfetto.dev: JSON if the name ends in `.json`, else Perfetto's own format."""
    return PerfettoExporter().export_to_file(source, path)


class XRayImporter:
    """Opens logs of LLVM's XRay. `tracesmith.open` does, too."""

    def import_file(self, path: str | os.PathLike[str]) -> Trace:
        """The log as a trace. Its calls are in the table `host_calls`."""
        return open_trace(path)
