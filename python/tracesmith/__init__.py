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
    from tracesmith._analyses import Selection
    from tracesmith._arm import arm
    from tracesmith._around import Run, record, run
    from tracesmith._devices import DeviceInfo
    from tracesmith._diff import diff
    from tracesmith._events import Event, Frame
    from tracesmith._files import merge
    from tracesmith._machine import Check, Device, Doctor, devices, doctor
    from tracesmith._profile import profile
    from tracesmith._ranges import Range, mark, range
    from tracesmith._report import CaptureReport, Loss, RowCounts
    from tracesmith._reports import (
        BadFree,
        Breakdown,
        CauseTotal,
        Churn,
        Comparison,
        CopiesReport,
        CopyDiff,
        CopyRow,
        CriticalPathReport,
        DamagedPart,
        DataQuality,
        DeviceIdle,
        DeviceUtilization,
        DiffReport,
        Distribution,
        Evidence,
        Finding,
        Findings,
        Gap,
        Health,
        HealthEntry,
        Holder,
        HostActivityReport,
        HostRow,
        HostTime,
        IdleDiff,
        IdleReport,
        Items,
        KernelDiff,
        KernelRow,
        KernelsReport,
        LaunchBound,
        LaunchesReport,
        LoadPoint,
        MemoryDiff,
        MemoryPoint,
        MemoryPool,
        MemoryReport,
        OpSlack,
        PathTotal,
        Queue,
        QueuePoint,
        Report,
        RunDiff,
        Segment,
        ShortKernels,
        SlackReport,
        SlackRow,
        StepDevice,
        StepPart,
        StepRow,
        StepSource,
        StepsReport,
        StreamIdle,
        StreamUtilization,
        Summary,
        UtilizationReport,
        WhatIfReport,
    )
    from tracesmith._schedule import Action, schedule
    from tracesmith._steps import Step, Steps
    from tracesmith._timeline import Timeline, TimelineRow

# Loaded when it is used: most programs need little of it.
_LAZY = {
    "Action": "_schedule",
    "BadFree": "_reports",
    "Breakdown": "_reports",
    "CaptureReport": "_report",
    "CauseTotal": "_reports",
    "Check": "_machine",
    "Churn": "_reports",
    "Comparison": "_reports",
    "CopiesReport": "_reports",
    "CopyDiff": "_reports",
    "CopyRow": "_reports",
    "CriticalPathReport": "_reports",
    "DamagedPart": "_reports",
    "DataQuality": "_reports",
    "Device": "_machine",
    "DeviceIdle": "_reports",
    "DeviceInfo": "_devices",
    "DeviceUtilization": "_reports",
    "DiffReport": "_reports",
    "Distribution": "_reports",
    "Doctor": "_machine",
    "Event": "_events",
    "Evidence": "_reports",
    "Finding": "_reports",
    "Findings": "_reports",
    "Frame": "_events",
    "Gap": "_reports",
    "Health": "_reports",
    "HealthEntry": "_reports",
    "Holder": "_reports",
    "HostActivityReport": "_reports",
    "HostRow": "_reports",
    "HostTime": "_reports",
    "IdleDiff": "_reports",
    "IdleReport": "_reports",
    "Items": "_reports",
    "KernelDiff": "_reports",
    "KernelRow": "_reports",
    "KernelsReport": "_reports",
    "LaunchBound": "_reports",
    "LaunchesReport": "_reports",
    "LoadPoint": "_reports",
    "Loss": "_report",
    "MemoryDiff": "_reports",
    "MemoryPoint": "_reports",
    "MemoryPool": "_reports",
    "MemoryReport": "_reports",
    "OpSlack": "_reports",
    "PathTotal": "_reports",
    "Queue": "_reports",
    "QueuePoint": "_reports",
    "Range": "_ranges",
    "Report": "_reports",
    "RowCounts": "_report",
    "Run": "_around",
    "RunDiff": "_reports",
    "Segment": "_reports",
    "Selection": "_analyses",
    "ShortKernels": "_reports",
    "SlackReport": "_reports",
    "SlackRow": "_reports",
    "Step": "_steps",
    "StepDevice": "_reports",
    "StepPart": "_reports",
    "StepRow": "_reports",
    "StepSource": "_reports",
    "Steps": "_steps",
    "StepsReport": "_reports",
    "StreamIdle": "_reports",
    "StreamUtilization": "_reports",
    "Summary": "_reports",
    "Timeline": "_timeline",
    "TimelineRow": "_timeline",
    "UtilizationReport": "_reports",
    "WhatIfReport": "_reports",
    "arm": "_arm",
    "devices": "_machine",
    "diff": "_diff",
    "doctor": "_machine",
    "mark": "_ranges",
    "merge": "_files",
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
    "BadFree",
    "Breakdown",
    "CaptureError",
    "CaptureReport",
    "CauseTotal",
    "Check",
    "Churn",
    "Column",
    "Comparison",
    "ConflictError",
    "CopiesReport",
    "CopyDiff",
    "CopyRow",
    "CriticalPathReport",
    "DamagedPart",
    "DataQuality",
    "Device",
    "DeviceIdle",
    "DeviceInfo",
    "DeviceUtilization",
    "DiffReport",
    "Distribution",
    "Doctor",
    "Event",
    "Evidence",
    "Finding",
    "Findings",
    "Frame",
    "Gap",
    "Health",
    "HealthEntry",
    "Holder",
    "HostActivityReport",
    "HostRow",
    "HostTime",
    "IdleDiff",
    "IdleReport",
    "Items",
    "KernelDiff",
    "KernelRow",
    "KernelsReport",
    "LaunchBound",
    "LaunchesReport",
    "LoadPoint",
    "Loss",
    "MemoryDiff",
    "MemoryPoint",
    "MemoryPool",
    "MemoryReport",
    "NotAvailableError",
    "OpSlack",
    "PathTotal",
    "Queue",
    "QueuePoint",
    "Range",
    "ReplayError",
    "Report",
    "RowCounts",
    "Rows",
    "Run",
    "RunDiff",
    "Segment",
    "Selection",
    "ShortKernels",
    "SlackReport",
    "SlackRow",
    "Step",
    "StepDevice",
    "StepPart",
    "StepRow",
    "StepSource",
    "Steps",
    "StepsReport",
    "StreamIdle",
    "StreamUtilization",
    "Summary",
    "Table",
    "Timeline",
    "TimelineRow",
    "Trace",
    "TraceError",
    "TracesmithError",
    "UtilizationReport",
    "WhatIfReport",
    "__version__",
    "arm",
    "devices",
    "diff",
    "doctor",
    "mark",
    "merge",
    "open",
    "profile",
    "range",
    "record",
    "run",
    "schedule",
]
