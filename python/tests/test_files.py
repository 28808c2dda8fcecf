"""What a trace is written to: exports, pictures, parts."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import tracesmith

pytestmark = pytest.mark.usefixtures("binary")


@pytest.mark.parametrize("name", ["t.pftrace", "t.sqlite", "t.pt.trace.json"])
def test_an_export_is_read_back(train: tracesmith.Trace, tmp_path: Path, name: str) -> None:
    file = train.export(tmp_path / name)
    files = [file] if file.exists() else sorted(tmp_path.glob("*.json"))
    assert len(tracesmith.open(files[0]).kernels) == 150


def test_options_of_an_export_are_passed_on(train: tracesmith.Trace, tmp_path: Path) -> None:
    file = train.export(tmp_path / "kernels", format="csv", table="kernels")
    assert len(file.read_text().splitlines()) == 151
    with pytest.raises(tracesmith.TraceError, match="exists; replace it with overwrite=True"):
        train.export(file, format="csv", table="kernels", overwrite=False)
    with pytest.raises(tracesmith.TraceError, match="table does not apply to the format perfetto"):
        train.export(tmp_path / "x.pftrace", table="kernels")
    with pytest.raises(tracesmith.TraceError, match="unexpected argument 'no_such'"):
        train.export(tmp_path / "x.pftrace", no_such=1)
    with pytest.raises(tracesmith.TraceError):
        train.export(tmp_path / "x", format="no-format")


def test_pages_and_pictures_are_written(train: tracesmith.Trace, tmp_path: Path) -> None:
    assert train.flame(tmp_path / "flame.svg").read_text().lstrip().startswith("<")
    page = train.report(tmp_path / "report.html", title="my <title>").read_text()
    assert "my &lt;title&gt;" in page


def test_a_part_is_cut_and_parts_are_merged(train: tracesmith.Trace, tmp_path: Path) -> None:
    step = train.steps[3]
    part = tracesmith.open(train.cut(step.start_ns, step.end_ns, tmp_path / "part.sbt"))
    assert 0 < len(part.kernels) < 150
    first = train.cut(step.start_ns, step.start_ns + 1000, tmp_path / "a.sbt")
    merged = tracesmith.open(tracesmith.merge([part.path, first], tmp_path / "both.sbt"))  # type: ignore[list-item]
    assert len(merged.kernels) >= len(part.kernels)
    with pytest.raises(tracesmith.TraceError, match="same trace"):
        tracesmith.merge([first, first], tmp_path / "twice.sbt")


def test_a_trace_without_a_file_is_exported(fixtures: Path, tmp_path: Path) -> None:
    content = (fixtures / "train-h200.sbt").read_bytes()
    in_memory = tracesmith.Trace.from_bytes(content)
    assert len(tracesmith.open(in_memory.export(tmp_path / "a.pftrace")).kernels) == 150
    several = tracesmith.open([fixtures / "train-h200.sbt", fixtures / "demo-h200.sbt"])
    assert len(tracesmith.open(several.export(tmp_path / "b.pftrace")).kernels) == len(several.kernels)


def test_a_timeline_is_drawn(train: tracesmith.Trace) -> None:
    timeline = train.timeline(cells=120)
    assert timeline.cells == 120 and timeline.rows[0].row == "device"
    assert sum(timeline.rows[0].busy_ns_by_cell) == timeline.rows[0].busy_ns == 305_763
    text = str(timeline)
    assert "GPU 0" in text and "stream 7" in text and "0.2 %" in text
    svg = ElementTree.fromstring(timeline._repr_svg_())
    names = [element.text or "" for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"GPU 0", "stream 7"} <= {name.strip() for name in names}
    assert not list(svg.iter("{http://www.w3.org/2000/svg}script"))
    assert len(train.timeline(kinds=["api", "marker"]).rows) > len(timeline.rows) - 2


def test_a_label_is_escaped(train: tracesmith.Trace) -> None:
    row = tracesmith.TimelineRow("<b>", None, None, 1, None, None, None, 1, 1, 0.1, {}, (1,))
    timeline = tracesmith.TimelinePicture(0, 10, 1, 0, 0, 0, False, (row,))
    assert "<b>" not in timeline._repr_svg_()
    ElementTree.fromstring(timeline._repr_svg_())


def test_an_empty_timeline_is_drawn() -> None:
    timeline = tracesmith.TimelinePicture(None, None, 0, 0, 0, 0, False, ())
    ElementTree.fromstring(timeline._repr_svg_())
    assert str(timeline) == "no events"
