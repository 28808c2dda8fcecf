"""TraceSmith: profile and replay GPU programs.

```python
import tracesmith as ts

trace = ts.open("train.sbt")
trace.kernels.to_polars()
```

Importing this package starts nothing and changes nothing in the process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from tracesmith._arm import arm
    from tracesmith._around import Run, record, run
    from tracesmith._machine import Check, Device, Doctor, devices, doctor
    from tracesmith._profile import profile
    from tracesmith._ranges import Range, mark, range
    from tracesmith._report import CaptureReport, Loss, RowCounts
    from tracesmith._schedule import Action, schedule

# What records is loaded when it is used: most programs only read.
_LAZY = {
    "Action": "_schedule",
    "CaptureReport": "_report",
    "Check": "_machine",
    "Device": "_machine",
    "Doctor": "_machine",
    "Loss": "_report",
    "Range": "_ranges",
    "RowCounts": "_report",
    "Run": "_around",
    "arm": "_arm",
    "devices": "_machine",
    "doctor": "_machine",
    "mark": "_ranges",
    "profile": "_profile",
    "range": "_ranges",
    "record": "_around",
    "run": "_around",
    "schedule": "_schedule",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'tracesmith' has no attribute '{name}'")
    value = getattr(import_module(f"tracesmith.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [
    "Action",
    "CaptureError",
    "CaptureReport",
    "Check",
    "Column",
    "ConflictError",
    "Device",
    "Doctor",
    "Loss",
    "NotAvailableError",
    "Range",
    "ReplayError",
    "RowCounts",
    "Rows",
    "Run",
    "Table",
    "Trace",
    "TraceError",
    "TracesmithError",
    "__version__",
    "arm",
    "devices",
    "doctor",
    "mark",
    "open",
    "profile",
    "range",
    "record",
    "run",
    "schedule",
]
