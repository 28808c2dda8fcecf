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
from tracesmith._native import VERSION as __version__
from tracesmith._table import Column, Rows, Table
from tracesmith._trace import Trace, open

__all__ = [
    "CaptureError",
    "Column",
    "ConflictError",
    "NotAvailableError",
    "ReplayError",
    "Rows",
    "Table",
    "Trace",
    "TraceError",
    "TracesmithError",
    "__version__",
    "open",
]
