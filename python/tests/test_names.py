"""The names of the earlier TraceSmith: all are there, and do the thing or say what works instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from capture_stage import Stage, stage  # noqa: F401 - a fixture

import tracesmith as ts
from tracesmith import compat

ROOT = Path(__file__).resolve().parents[2]
TRAIN = ROOT / "fixtures/train-h200.sbt"
REPLAY = ROOT / "fixtures/replay-h200.sbt"

#: What its documents name.
NAMES = [
    "__version__",
    "detect_platform",
    "PlatformType",
    "platform_type_to_string",
    "create_profiler",
    "ProfilerConfig",
    "OverflowPolicy",
    "CUPTIProfiler",
    "MCPTIProfiler",
    "MetalProfiler",
    "StackCapture",
    "MemoryProfiler",
    "BPFTracer",
    "DeviceInfo",
    "is_cuda_available",
    "is_metal_available",
    "is_rocm_available",
    "is_maca_available",
    "get_cuda_device_count",
    "get_metal_device_count",
    "get_rocm_device_count",
    "get_maca_device_count",
    "TracingSession",
    "TracingConfig",
    "TraceEvent",
    "EventType",
    "MemoryEvent",
    "MemoryCategory",
    "CounterEvent",
    "FlowInfo",
    "FlowType",
    "KernelParams",
    "MemoryParams",
    "SBTWriter",
    "SBTReader",
    "TraceMetadata",
    "build_timeline",
    "TimelineBuilder",
    "Timeline",
    "TimelineViewer",
    "GPUStateMachine",
    "InstructionStreamBuilder",
    "PerfettoExporter",
    "export_perfetto",
    "XRayImporter",
    "ReplayEngine",
    "ReplayConfig",
    "ReplayResult",
    "ReplayMode",
    "StreamScheduler",
    "DeterminismChecker",
    "FrameCapture",
    "GPUTopology",
    "MultiGPUProfiler",
    "TimeSync",
    "ClockCorrelator",
    "NCCLTracker",
    "CommAnalysis",
]

#: Methods that its documents name.
METHODS = {
    "CUPTIProfiler": "initialize start_capture stop_capture get_events",
    "MemoryProfiler": "start stop get_peak_usage detect_leaks generate_report",
    "TracingSession": "start emit emit_counter stop export_to_file get_statistics",
    "SBTWriter": "write_event write_events finalize",
    "SBTReader": "read_all read_events read_metadata",
    "TimelineBuilder": "add_event add_events build",
    "Timeline": "spans gpu_utilization max_concurrent_ops",
    "TimelineViewer": "render",
    "InstructionStreamBuilder": "get_execution_order get_dependencies export_to_dot",
    "PerfettoExporter": "set_enable_gpu_tracks set_enable_flow_events export_to_file",
    "ReplayEngine": "load_trace replay",
    "FrameCapture": "trigger_capture resource_state replay_to",
    "GPUTopology": "discover links bandwidth to_ascii to_graphviz to_json",
    "ClockCorrelator": "offset drift",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_package_has_the_name(name: str) -> None:
    assert getattr(ts, name) is not None
    assert name in dir(ts)
    assert name in ts.__all__


@pytest.mark.parametrize(("name", "methods"), METHODS.items())
def test_the_class_has_its_methods(name: str, methods: str) -> None:
    assert [method for method in methods.split() if not hasattr(getattr(ts, name), method)] == []


def test_the_page_lists_every_name() -> None:
    page = (ROOT / "docs/python-names.md").read_text(encoding="utf-8")
    missing = [name for name in [*NAMES, *compat.__all__] if f"`{name}" not in page and name != "__version__"]
    assert missing == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'create_profilr'"):
        ts.create_profilr  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_no_old_name() -> None:
    program = "import sys, tracesmith; print('tracesmith.compat' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out == "False\n"


# What cannot work says what does


@pytest.mark.parametrize(
    ("use", "hint"),
    [
        (lambda: ts.create_profiler(ts.PlatformType.ROCm), "rocprofv3"),
        (lambda: ts.create_profiler(ts.PlatformType.Metal), "tracesmith.xctrace"),
        (lambda: ts.create_profiler(ts.PlatformType.MACA), "--mctracer"),
        (lambda: ts.create_profiler(ts.PlatformType.Unknown), "tracesmith doctor"),
        (lambda: ts.MetalProfiler(), "--xctrace"),
        (lambda: ts.MCPTIProfiler(), "--mctracer"),
        (lambda: ts.BPFTracer(), "tracesmith.profile"),
        (lambda: ts.TimeSync(), "ClockCorrelator"),
        (lambda: ts.NCCLTracker(), "pass a trace"),
        (lambda: ts.SimulationProfiler(), "TracingSession"),
        (lambda: ts.ReplayEngine().load_events([]), "record=True"),
        (lambda: ts.MemoryProfiler().take_snapshot(), "flight_recorder"),
        (lambda: ts.MemoryProfiler().record_alloc(1, 2), "TracingSession"),
        (lambda: ts.PerfettoExporter().set_enable_flow_events(False), "hide them"),
        (
            lambda: ts.create_profiler().initialize(
                ts.ProfilerConfig(overflow_policy=ts.OverflowPolicy.Block)
            ),
            "DropNewest",
        ),
    ],
)
def test_what_is_not_available_names_what_works(use: object, hint: str) -> None:
    with pytest.raises(ts.NotAvailableError) as raised:
        use()  # type: ignore[operator]
    assert raised.value.hint is not None and hint in raised.value.hint


def test_instruments_need_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracesmith.xctrace import XCTraceProfiler, profile_with_xctrace

    monkeypatch.setattr(sys, "platform", "linux")
    assert not XCTraceProfiler.is_available()
    with pytest.raises(ts.NotAvailableError, match="macOS"):
        profile_with_xctrace(["python", "train.py"], duration=60, template="Metal System Trace")


def test_other_platforms_are_never_claimed() -> None:
    assert not (ts.is_rocm_available() or ts.is_metal_available() or ts.is_maca_available())
    assert (ts.get_rocm_device_count(), ts.get_metal_device_count(), ts.get_maca_device_count()) == (0, 0, 0)
    assert ts.platform_type_to_string(ts.PlatformType.ROCm) == "ROCm"


# Reading


def test_events_of_a_trace_have_durations_and_stacks() -> None:
    events = compat.TraceEvents(ts.open(TRAIN))
    kernels = [event for event in events if event.type is ts.EventType.KernelComplete]
    calls = {event.correlation_id: event for event in events if event.type is ts.EventType.KernelLaunch}
    assert (len(kernels), len(calls)) == (150, 150)
    trace = ts.open(TRAIN)
    assert sum(kernel.duration for kernel in kernels) == sum(row["duration"] for row in trace.kernels)
    assert all(calls[kernel.correlation_id].timestamp < kernel.timestamp for kernel in kernels)
    assert all(kernel.thread_id == calls[kernel.correlation_id].thread_id > 0 for kernel in kernels)
    lines = [frame for frame in kernels[0].call_stack if "train.py" in frame]
    assert lines[0].startswith("loss_of (") and lines[0].endswith("train.py:24)"), lines
    assert any(frame.startswith("libcuda.so.1+0x") for frame in kernels[0].call_stack)
    assert [event.timestamp for event in events] == sorted(event.timestamp for event in events)
    assert {event.type.name for event in events} == {
        *("KernelLaunch", "KernelComplete", "MemcpyH2D", "MemcpyD2H", "StreamSync", "RangeStart")
    }
    shallow = compat.TraceEvents(trace, limit=10, depth=2)
    assert len(shallow) == 10 and max(len(event.call_stack) for event in shallow) <= 2


def test_a_timeline_counts_each_moment_once() -> None:
    timeline = ts.build_timeline(TRAIN)
    assert len(timeline.spans) == 180 and timeline.max_concurrent_ops == 1
    (device,) = timeline.devices
    assert timeline.gpu_utilization == device.utilization == device.busy_ns / device.span_ns
    builder = ts.TimelineBuilder()
    builder.add_events(compat.TraceEvents(ts.open(TRAIN)))
    assert builder.build().gpu_utilization == timeline.gpu_utilization


def test_states_and_order() -> None:
    machine = ts.GPUStateMachine(TRAIN)
    nanos = machine.statistics()
    assert nanos["running"] == sum(row["duration"] for row in machine.states.where(state="running"))
    running = next(iter(machine.states.where(state="running")))
    assert machine.state_at(running["start"], running["stream"]) == "running"
    builder = ts.InstructionStreamBuilder(REPLAY)
    assert [row["name"] for row in builder.get_execution_order()] == sorted(
        (row["name"] for row in builder.get_execution_order()),
        key=[row["name"] for row in ts.open(REPLAY).gpu_ops].index,
    )


def test_dependencies_are_those_of_the_graph(tmp_path: Path, binary: str) -> None:
    builder = ts.InstructionStreamBuilder(REPLAY)
    text = builder.export_to_dot(tmp_path / "graph.dot")
    assert text.startswith("digraph") and (tmp_path / "graph.dot").read_text() == text
    pairs = builder.get_dependencies()
    assert len(pairs) == text.count(" -> ") > 0
    assert any("scale" in first and "total" in second for first, second in pairs), pairs


def test_pictures_and_exports(tmp_path: Path, binary: str) -> None:
    assert "gpu 0 NVIDIA H200" in ts.TimelineViewer(TRAIN).render()
    events = compat.TraceEvents(ts.open(TRAIN))
    assert ts.export_perfetto(events, tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())
    exporter = ts.PerfettoExporter()
    exporter.set_enable_gpu_tracks(False)
    assert exporter.export_to_file(TRAIN, tmp_path / "trace.perfetto-trace")
    assert len(ts.open(tmp_path / "trace.perfetto-trace").kernels) == 150


def test_several_machines() -> None:
    comm = ts.CommAnalysis(ROOT / "fixtures/synthetic-v1.sbt")
    assert comm.by_name()[0]["count"] == len(comm.operations) > 0
    assert sum(row["ns"] for row in comm.load_balance()) == sum(row["ns"] for row in comm.by_name())
    assert comm.overlap()[0]["communication_ns"] >= comm.overlap()[0]["communication_exposed_ns"]
    clocks = ts.ClockCorrelator(TRAIN)
    assert abs(clocks.drift(1, 2)) < 1e6 and clocks.offset(1, 2) > 1_700_000_000_000_000_000
    with pytest.raises(ValueError, match="not read together"):
        clocks.offset(1, 99)


def test_a_replay_by_its_old_name(binary: str) -> None:
    engine = ts.ReplayEngine()
    with pytest.raises(ts.ReplayError, match="no recording is loaded"):
        engine.replay()
    assert engine.load_trace(REPLAY)
    result = engine.replay(ts.ReplayConfig(mode=ts.ReplayMode.DryRun))
    assert result.success and (result.operations_total, result.operations_executed) == (7, 0)
    times = {row["number"]: row["time"] for row in ts.open(REPLAY).commands}
    partial = ts.ReplayConfig(time_range=(times[3], times[5]), mode=ts.ReplayMode.DryRun)
    assert engine.replay(partial).replay.selected == (3, 4)
    with pytest.raises(ValueError, match="needs operation_range"):
        engine.replay(ts.ReplayConfig(mode=ts.ReplayMode.Partial))
    with pytest.raises(ts.NotAvailableError, match="priorities"):
        engine.replay(ts.ReplayConfig(scheduler=ts.StreamScheduler.PriorityBased))


# Against the fake driver


START = """
import gpu, tracesmith as ts
gpu.start()
"""


def test_a_window_gives_real_events(stage: Stage) -> None:  # noqa: F811
    out, _ = stage.run(
        START
        + """
profiler = ts.create_profiler(ts.PlatformType.CUDA)
config = ts.ProfilerConfig()
config.capture_kernels = True
config.callstack_depth = 64
profiler.initialize(config)
gpu.launches(2)
profiler.start_capture()
gpu.launches(5)
profiler.stop_capture()
events = profiler.get_events()
kernels = [e for e in events if e.type is ts.EventType.KernelComplete]
print(len(kernels), all(e.duration > 0 and e.thread_id > 0 for e in kernels))
print(any(frame.startswith("launches (") and "gpu.py:" in frame for frame in kernels[0].call_stack))
print(sum(e.type is ts.EventType.KernelLaunch for e in events), len(profiler.get_events(3)))
timeline = ts.build_timeline(events)
print(0 < timeline.gpu_utilization <= 1, timeline.max_concurrent_ops, profiler.events_dropped())
ts.export_perfetto(events, "trace.json")
print(ts.detect_platform().name, ts.get_cuda_device_count())
"""
    )
    assert out.splitlines() == ["5 True", "True", "5 3", "True 1 0", "CUDA 1"]
    assert (stage.work / "trace.json").exists()


def test_events_of_a_window_are_written_again(stage: Stage) -> None:  # noqa: F811
    out, _ = stage.run(
        START
        + """
with ts.create_profiler() as profiler:
    gpu.launches(5)
events = profiler.get_events()
writer = ts.SBTWriter("trace.sbt")
writer.write_events(events)
writer.finalize()
again = ts.open("trace.sbt")
print(len(again.kernels), len(again.launches))
print([row["duration"] for row in again.kernels] == [row["duration"] for row in profiler.trace.kernels])
print(ts.build_timeline(list(events)).gpu_utilization == ts.build_timeline(events).gpu_utilization)
"""
    )
    assert out.splitlines() == ["5 5", "True", "True"]


def test_a_flight_recorder_by_its_old_name(stage: Stage) -> None:  # noqa: F811
    out, errors = stage.run(
        START
        + """
config = ts.ProfilerConfig(buffer_size=1000, overflow_policy=ts.OverflowPolicy.DropNewest)
with ts.CUPTIProfiler(config) as profiler:
    gpu.launches(4)
print(sum(e.type is ts.EventType.KernelComplete for e in profiler.get_events()))
try:
    ts.CUPTIProfiler().get_events()
except ts.CaptureError as error:
    print(error.hint)
"""
    )
    assert out.splitlines() == ["4", "call start_capture() and stop_capture() first"]
    assert "taken as a number of events" in errors


def test_memory_of_a_window(stage: Stage) -> None:  # noqa: F811
    out, _ = stage.run(
        START
        + """
import ctypes
def allocate(size):
    address = ctypes.c_uint64()
    gpu.check(gpu.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
    return address
with ts.MemoryProfiler() as memory:
    first, second = allocate(4096), allocate(1024)
    gpu.check(gpu.cuda.cuMemFree_v2(second))
print(memory.get_peak_usage(), [(leak.size, leak.allocations) for leak in memory.detect_leaks()])
print(memory.generate_report().summary().splitlines()[0])
print([(event.is_allocation, event.bytes) for event in memory.to_memory_events()])
"""
    )
    assert out.splitlines() == [
        "5120 [(4096, 1)]",
        "peak: 5.0 KiB",
        "[(True, 4096), (True, 1024), (False, 1024)]",
    ]


def test_a_frame_is_captured_and_replayed(stage: Stage) -> None:  # noqa: F811
    out, _ = stage.run(
        START
        + """
capture = ts.FrameCapture("frame.sbt")
with capture:
    gpu.launches(3)
print([call.function for call in capture.frame.launches])
last = capture.frame.launches[-1]
print(capture.replay_to(last).runs[0].commands, ts.DeterminismChecker().check("frame.sbt").culprit)
engine = ts.ReplayEngine()
engine.load_trace("frame.sbt")
result = engine.replay(ts.ReplayConfig(operation_range=(1, 3), compute_checksums=True))
print(result.deterministic, result.operations_executed, result.errors)
"""
    )
    lines = out.splitlines()
    assert lines[0] == "['noop', 'noop', 'noop']", lines
    assert lines[1].endswith(" None"), lines


def test_the_machine_is_seen(stage: Stage) -> None:  # noqa: F811
    out, _ = stage.run(
        """
import tracesmith as ts
topology = ts.GPUTopology().discover()
print(topology.devices, topology.links, topology.link(0, 0).kind)
print("TraceSmith Fake GPU" in topology.to_ascii(), topology.to_graphviz().splitlines()[1])
print(ts.MultiGPUProfiler().devices[0].name, ts.is_cuda_available())
"""
    )
    assert out.splitlines() == [
        "['TraceSmith Fake GPU'] () X",
        'True   gpu0 [label="GPU 0\\nTraceSmith Fake GPU"];',
        "TraceSmith Fake GPU True",
    ]


def test_without_a_gpu_the_platform_is_unknown(monkeypatch: pytest.MonkeyPatch, binary: str) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a GPU")
    assert ts.detect_platform() is ts.PlatformType.Unknown and not ts.is_cuda_available()
