"""Events as typed objects."""

from __future__ import annotations

import pytest

import tracesmith

pytestmark = pytest.mark.usefixtures("binary")


def test_events_have_names_times_and_stacks(train: tracesmith.Trace) -> None:
    events = train.events("kernel", name="triton*", limit=10, stacks=True)
    assert len(events) == 10
    for event in events:
        assert event.kind == "kernel" and event.name.startswith("triton")
        assert event.duration_ns is not None and event.duration_ns > 0
        assert event.fields["place.stream"] == 7
    frames = [frame for event in events for frame in event.stack]
    assert any(frame.kind == "python" and frame.file.endswith("train.py") and frame.line for frame in frames)
    assert any(frame.kind == "native" and frame.image for frame in frames)


def test_events_agree_with_tables(train: tracesmith.Trace) -> None:
    pytest.importorskip("polars")
    assert len(train.events("kernel")) == len(train.kernels)
    both = train.events(["kernel", "copy"], sort="duration")
    assert len(both) == len(train.kernels) + len(train.copies)
    assert both[0].duration_ns == max(event.duration_ns or 0 for event in both)
    assert both[0].stack == ()
    assert both.to_polars()["name"].len() == len(both)


def test_a_part_is_selected(train: tracesmith.Trace) -> None:
    step = train.steps[3]
    in_step = train.events("kernel", range=(step.start_ns, step.end_ns))
    assert 0 < len(in_step) < len(train.kernels)
    assert len(train.events("kernel", name="no-such-kernel")) == 0
    with pytest.raises(tracesmith.TraceError, match="no stream 99"):
        train.events("kernel", stream=99)
    assert len(train.events("kernel", device=[0], stream=7)) == 150


def test_wrong_arguments_are_refused(train: tracesmith.Trace) -> None:
    with pytest.raises(tracesmith.TraceError):
        train.events("nothing")  # type: ignore[arg-type]
