"""TraceSmith: profile and replay GPU programs.

```python
import tracesmith as ts

trace = ts.open("train.sbt")
trace.kernels.to_polars()
```

Importing this package starts nothing and changes nothing in the process.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tracesmith._clash import warn_of_clash
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
    from tracesmith._arm import (
        arm,
    )
    from tracesmith._around import (
        Run,
        record,
        run,
    )
    from tracesmith._machine import (
        Check,
        Device,
        Doctor,
        devices,
        doctor,
    )
    from tracesmith._profile import (
        profile,
    )
    from tracesmith._ranges import (
        Range,
        mark,
        range,
    )
    from tracesmith._recording import (
        Kernel,
        Recording,
    )
    from tracesmith._replay import (
        Replay,
        replay,
    )
    from tracesmith._report import (
        CaptureReport,
        Loss,
        RowCounts,
    )
    from tracesmith._schedule import (
        Action,
        schedule,
    )
    from tracesmith.compat import (
        BPFTracer,
        ClockCorrelator,
        CommAnalysis,
        CUPTIProfiler,
        DeterminismChecker,
        DeviceInfo,
        FrameCapture,
        GPULink,
        GPUStateMachine,
        GPUTopology,
        InstructionStreamBuilder,
        MCPTIProfiler,
        MemoryLeak,
        MemoryProfiler,
        MemoryProfilerConfig,
        MemorySummary,
        MetalProfiler,
        MultiGPUProfiler,
        NCCLTracker,
        OverflowPolicy,
        PerfettoExporter,
        PlatformType,
        Profiler,
        ProfilerConfig,
        ReplayConfig,
        ReplayEngine,
        ReplayMode,
        ReplayResult,
        SimulationProfiler,
        StackCapture,
        StreamScheduler,
        Timeline,
        TimelineBuilder,
        TimelineDevice,
        TimelineViewer,
        TimeSync,
        TraceEvents,
        TraceMetadata,
        XRayImporter,
        build_timeline,
        create_profiler,
        detect_platform,
        export_perfetto,
        format_bytes,
        format_duration,
        get_cuda_device_count,
        get_maca_device_count,
        get_metal_device_count,
        get_rocm_device_count,
        is_bpf_available,
        is_cuda_available,
        is_maca_available,
        is_metal_available,
        is_protobuf_available,
        is_rocm_available,
        platform_type_to_string,
        replay_trace,
    )

# What records, replays or has an old name is loaded when it is used: most programs only read.
_LAZY = {
    "Action": "_schedule",
    "BPFTracer": "compat",
    "CUPTIProfiler": "compat",
    "CaptureReport": "_report",
    "Check": "_machine",
    "ClockCorrelator": "compat",
    "CommAnalysis": "compat",
    "DeterminismChecker": "compat",
    "Device": "_machine",
    "DeviceInfo": "compat",
    "Doctor": "_machine",
    "FrameCapture": "compat",
    "GPULink": "compat",
    "GPUStateMachine": "compat",
    "GPUTopology": "compat",
    "InstructionStreamBuilder": "compat",
    "Kernel": "_recording",
    "Loss": "_report",
    "MCPTIProfiler": "compat",
    "MemoryLeak": "compat",
    "MemoryProfiler": "compat",
    "MemoryProfilerConfig": "compat",
    "MemorySummary": "compat",
    "MetalProfiler": "compat",
    "MultiGPUProfiler": "compat",
    "NCCLTracker": "compat",
    "OverflowPolicy": "compat",
    "PerfettoExporter": "compat",
    "PlatformType": "compat",
    "Profiler": "compat",
    "ProfilerConfig": "compat",
    "Range": "_ranges",
    "Recording": "_recording",
    "Replay": "_replay",
    "ReplayConfig": "compat",
    "ReplayEngine": "compat",
    "ReplayMode": "compat",
    "ReplayResult": "compat",
    "RowCounts": "_report",
    "Run": "_around",
    "SimulationProfiler": "compat",
    "StackCapture": "compat",
    "StreamScheduler": "compat",
    "TimeSync": "compat",
    "Timeline": "compat",
    "TimelineBuilder": "compat",
    "TimelineDevice": "compat",
    "TimelineViewer": "compat",
    "TraceEvents": "compat",
    "TraceMetadata": "compat",
    "XRayImporter": "compat",
    "arm": "_arm",
    "build_timeline": "compat",
    "create_profiler": "compat",
    "detect_platform": "compat",
    "devices": "_machine",
    "doctor": "_machine",
    "export_perfetto": "compat",
    "format_bytes": "compat",
    "format_duration": "compat",
    "get_cuda_device_count": "compat",
    "get_maca_device_count": "compat",
    "get_metal_device_count": "compat",
    "get_rocm_device_count": "compat",
    "is_bpf_available": "compat",
    "is_cuda_available": "compat",
    "is_maca_available": "compat",
    "is_metal_available": "compat",
    "is_protobuf_available": "compat",
    "is_rocm_available": "compat",
    "mark": "_ranges",
    "platform_type_to_string": "compat",
    "profile": "_profile",
    "range": "_ranges",
    "record": "_around",
    "replay": "_replay",
    "replay_trace": "compat",
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
    "BPFTracer",
    "CUPTIProfiler",
    "CaptureError",
    "CaptureReport",
    "Check",
    "ClockCorrelator",
    "Column",
    "CommAnalysis",
    "ConflictError",
    "DeterminismChecker",
    "Device",
    "DeviceInfo",
    "Doctor",
    "FrameCapture",
    "GPULink",
    "GPUStateMachine",
    "GPUTopology",
    "InstructionStreamBuilder",
    "Kernel",
    "Loss",
    "MCPTIProfiler",
    "MemoryLeak",
    "MemoryProfiler",
    "MemoryProfilerConfig",
    "MemorySummary",
    "MetalProfiler",
    "MultiGPUProfiler",
    "NCCLTracker",
    "NotAvailableError",
    "OverflowPolicy",
    "PerfettoExporter",
    "PlatformType",
    "Profiler",
    "ProfilerConfig",
    "Range",
    "Recording",
    "Replay",
    "ReplayConfig",
    "ReplayEngine",
    "ReplayError",
    "ReplayMode",
    "ReplayResult",
    "RowCounts",
    "Rows",
    "Run",
    "SimulationProfiler",
    "StackCapture",
    "StreamScheduler",
    "Table",
    "TimeSync",
    "Timeline",
    "TimelineBuilder",
    "TimelineDevice",
    "TimelineViewer",
    "Trace",
    "TraceError",
    "TraceEvents",
    "TraceMetadata",
    "TracesmithError",
    "XRayImporter",
    "__version__",
    "arm",
    "build_timeline",
    "create_profiler",
    "detect_platform",
    "devices",
    "doctor",
    "export_perfetto",
    "format_bytes",
    "format_duration",
    "get_cuda_device_count",
    "get_maca_device_count",
    "get_metal_device_count",
    "get_rocm_device_count",
    "is_bpf_available",
    "is_cuda_available",
    "is_maca_available",
    "is_metal_available",
    "is_protobuf_available",
    "is_rocm_available",
    "mark",
    "open",
    "platform_type_to_string",
    "profile",
    "range",
    "record",
    "replay",
    "replay_trace",
    "run",
    "schedule",
]

warn_of_clash(os.path.dirname(__file__))
