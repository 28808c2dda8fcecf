"""The names of the earlier TraceSmith (0.8), over the API of this one.

Each name does the real thing, or raises an exception with the reason and what works instead. All are in
`tracesmith` itself, too: `tracesmith.create_profiler`. `docs/python-names.md` lists them with their new names.
"""

from __future__ import annotations

from tracesmith.compat._capture import (
    CUPTIProfiler,
    MCPTIProfiler,
    MetalProfiler,
    OverflowPolicy,
    Profiler,
    ProfilerConfig,
    create_profiler,
)
from tracesmith.compat._cluster import (
    ClockCorrelator,
    CommAnalysis,
    GPULink,
    GPUTopology,
    MultiGPUProfiler,
    NCCLTracker,
    TimeSync,
)
from tracesmith.compat._events import TraceEvents
from tracesmith.compat._export import PerfettoExporter, XRayImporter, export_perfetto
from tracesmith.compat._memory import (
    MemoryLeak,
    MemoryProfiler,
    MemoryProfilerConfig,
    MemorySummary,
    format_bytes,
    format_duration,
)
from tracesmith.compat._metadata import TraceMetadata
from tracesmith.compat._platform import (
    PlatformType,
    detect_platform,
    get_cuda_device_count,
    get_maca_device_count,
    get_metal_device_count,
    get_rocm_device_count,
    is_cuda_available,
    is_maca_available,
    is_metal_available,
    is_rocm_available,
    platform_type_to_string,
)
from tracesmith.compat._replays import (
    DeterminismChecker,
    FrameCapture,
    ReplayConfig,
    ReplayEngine,
    ReplayMode,
    ReplayResult,
    StreamScheduler,
    replay_trace,
)
from tracesmith.compat._stacks import (
    BPFTracer,
    SimulationProfiler,
    StackCapture,
    is_bpf_available,
    is_protobuf_available,
)
from tracesmith.compat._timeline import (
    GPUStateMachine,
    InstructionStreamBuilder,
    Timeline,
    TimelineBuilder,
    TimelineDevice,
    TimelineViewer,
    build_timeline,
)

__all__ = [
    "BPFTracer",
    "CUPTIProfiler",
    "ClockCorrelator",
    "CommAnalysis",
    "DeterminismChecker",
    "FrameCapture",
    "GPULink",
    "GPUStateMachine",
    "GPUTopology",
    "InstructionStreamBuilder",
    "MCPTIProfiler",
    "MemoryLeak",
    "MemoryProfiler",
    "MemoryProfilerConfig",
    "MemorySummary",
    "MetalProfiler",
    "MultiGPUProfiler",
    "NCCLTracker",
    "OverflowPolicy",
    "PerfettoExporter",
    "PlatformType",
    "Profiler",
    "ProfilerConfig",
    "ReplayConfig",
    "ReplayEngine",
    "ReplayMode",
    "ReplayResult",
    "SimulationProfiler",
    "StackCapture",
    "StreamScheduler",
    "TimeSync",
    "Timeline",
    "TimelineBuilder",
    "TimelineDevice",
    "TimelineViewer",
    "TraceEvents",
    "TraceMetadata",
    "XRayImporter",
    "build_timeline",
    "create_profiler",
    "detect_platform",
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
    "platform_type_to_string",
    "replay_trace",
]
