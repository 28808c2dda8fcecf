"""Typed reports: one frozen dataclass for each object of the JSON that the analyses answer with."""

from __future__ import annotations

from tracesmith._reports._build import Items, Report, build
from tracesmith._reports.diff import (
    Comparison,
    CopyDiff,
    DiffReport,
    IdleDiff,
    KernelDiff,
    MemoryDiff,
    RunDiff,
)
from tracesmith._reports.findings import Evidence, Finding, Findings
from tracesmith._reports.idle import (
    CauseTotal,
    DeviceIdle,
    Gap,
    HostActivityReport,
    HostRow,
    HostTime,
    IdleReport,
    StreamIdle,
)
from tracesmith._reports.kernels import CopiesReport, CopyRow, KernelRow, KernelsReport
from tracesmith._reports.launches import LaunchBound, LaunchesReport, Queue, QueuePoint, ShortKernels
from tracesmith._reports.memory import BadFree, Churn, Holder, MemoryPoint, MemoryPool, MemoryReport
from tracesmith._reports.path import (
    CriticalPathReport,
    MedianStep,
    OpSlack,
    PathTotal,
    PredictedPath,
    PredictedStep,
    Segment,
    SlackReport,
    SlackRow,
    WhatIfReport,
)
from tracesmith._reports.quality import DamagedPart, DataQuality, Health, HealthEntry
from tracesmith._reports.steps import Distribution, StepDevice, StepPart, StepRow, StepSource, StepsReport
from tracesmith._reports.summary import Summary
from tracesmith._reports.utilization import (
    Breakdown,
    DeviceUtilization,
    LoadPoint,
    StreamUtilization,
    UtilizationReport,
)

__all__ = [
    "BadFree", "Breakdown", "CauseTotal", "Churn", "Comparison", "CopiesReport", "CopyDiff", "CopyRow",
    "CriticalPathReport", "DamagedPart", "DataQuality", "DeviceIdle", "DeviceUtilization", "DiffReport",
    "Distribution", "Evidence", "Finding", "Findings", "Gap", "Health", "HealthEntry", "Holder",
    "HostActivityReport", "HostRow", "HostTime", "IdleDiff", "IdleReport", "Items", "KernelDiff", "KernelRow",
    "KernelsReport", "LaunchBound", "LaunchesReport", "LoadPoint", "MedianStep", "MemoryDiff", "MemoryPoint",
    "MemoryPool", "MemoryReport", "OpSlack", "PathTotal", "PredictedPath", "PredictedStep", "Queue",
    "QueuePoint", "Report", "RunDiff", "Segment", "ShortKernels", "SlackReport", "SlackRow", "StepDevice",
    "StepPart", "StepRow", "StepSource", "StepsReport", "StreamIdle", "StreamUtilization", "Summary",
    "UtilizationReport", "WhatIfReport", "build",
]  # fmt: skip
