"""TraceSmith: profile and replay GPU programs.

```python
import tracesmith as ts

trace = ts.open("train.sbt")
trace.kernels.to_polars()
```

Importing this package starts nothing and changes nothing in the process.
"""

from __future__ import annotations

from tracesmith._errors import (
    CaptureError,
    ConflictError,
    NotAvailableError,
    ReplayError,
    TraceError,
    TracesmithError,
)
from tracesmith._events import (
    CounterEvent,
    EventType,
    FlowInfo,
    FlowType,
    KernelParams,
    MemoryCategory,
    MemoryEvent,
    MemoryParams,
    TraceEvent,
)
from tracesmith._native import VERSION as __version__
from tracesmith._sbt import SBTReader, SBTWriter
from tracesmith._session import Session, TracingConfig, TracingSession
from tracesmith._table import Column, Rows, Table
from tracesmith._trace import Trace, open

__all__ = [
    "CaptureError",
    "Column",
    "ConflictError",
    "CounterEvent",
    "EventType",
    "FlowInfo",
    "FlowType",
    "KernelParams",
    "MemoryCategory",
    "MemoryEvent",
    "MemoryParams",
    "NotAvailableError",
    "ReplayError",
    "Rows",
    "SBTReader",
    "SBTWriter",
    "Session",
    "Table",
    "Trace",
    "TraceError",
    "TraceEvent",
    "TracesmithError",
    "TracingConfig",
    "TracingSession",
    "__version__",
    "open",
]
