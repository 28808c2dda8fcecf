"""What the recorder noted about a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracesmith.compat._events import Source, trace_of

__all__ = ["TraceMetadata"]


@dataclass
class TraceMetadata:
    """What the recorder noted.

    >>> import tracesmith as ts
    >>> metadata = ts.TraceMetadata.of("fixtures/train-h200.sbt")
    >>> metadata.devices, metadata.duration > 0
    (['NVIDIA H200'], True)
    """

    #: The recorded command line.
    command_line: str = ""
    hostname: str = ""
    #: In nanoseconds of the trace's clock.
    start_time: int = 0
    end_time: int = 0
    #: The names of the GPUs.
    devices: list[str] = field(default_factory=list)
    #: Everything, by key.
    entries: Mapping[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> int:
        """From the first to the last moment, in nanoseconds."""
        return self.end_time - self.start_time

    @classmethod
    def of(cls, source: Source) -> TraceMetadata:
        """The metadata of a file, a trace or events."""
        trace = trace_of(source)
        start, end = trace.span or (0, 0)
        hosts = [row["name"] or "" for row in trace.table("hosts")]
        return cls(
            command_line=trace.metadata.get("command", ""),
            hostname=hosts[0] if hosts else "",
            start_time=start,
            end_time=end,
            devices=[row["name"] or "" for row in trace.table("devices")],
            entries=trace.metadata,
        )
