"""Typed reports: they have exactly the fields of the JSON, for every trace, and read well."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tracesmith
from tracesmith import _native, _reports
from tracesmith._analyses import _with_doubts
from tracesmith._reports._build import differences
from tracesmith._reports.idle import CAUSES

REPORTS: dict[str, type[Any]] = {
    "idle": _reports.IdleReport,
    "host": _reports.HostActivityReport,
    "steps": _reports.StepsReport,
    "kernels": _reports.KernelsReport,
    "copies": _reports.CopiesReport,
    "launches": _reports.LaunchesReport,
    "memory": _reports.MemoryReport,
    "critical-path": _reports.CriticalPathReport,
    "slack": _reports.SlackReport,
}


def wrong_fields(trace: tracesmith.Trace) -> Iterator[str]:
    """What the JSON of each analysis has and the types lack, and the other way round."""
    analysis = trace._analysis({})
    summary = _with_doubts(json.loads(analysis.summary()))
    yield from differences(_reports.Summary, summary)
    for name, kind in REPORTS.items():
        yield from differences(kind, json.loads(analysis.report(name, "{}")))
    both = {**trace._json("utilization", {}), "streams": trace._json("streams", {})["streams"]}
    yield from differences(_reports.UtilizationReport, both)
    found = trace._json("findings", {})
    for finding in found["findings"]:
        yield from differences(_reports.Finding, finding)
    answer = trace._json("what-if", {})
    yield from differences(_reports.WhatIfReport, {**answer["what_if"][0], "doubts": answer["doubts"]})
    yield from differences(_reports.Health, trace._health())
    compared = json.loads(_native.diff(analysis, analysis, "name"))
    yield from differences(_reports.DiffReport, compared)


FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*.sbt"))


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.name)
def test_types_have_the_fields_of_the_json(file: Path) -> None:
    assert list(wrong_fields(tracesmith.open(file))) == []


# Larger ones take minutes and have no other fields.
LIMIT_BYTES = 1_000_000


def test_types_have_the_fields_of_the_json_for_files_of_other_tools(data: Path) -> None:
    wrong = {}
    checked = 0
    for file in sorted(data.rglob("*")):
        if not file.is_file() or file.stat().st_size > LIMIT_BYTES:
            continue
        try:
            trace = tracesmith.open(file)
        except tracesmith.TraceError:
            continue
        fields = list(wrong_fields(trace))
        checked += 1
        if fields:
            wrong[file.name] = fields[:5]
    assert wrong == {}
    assert checked > 5


def test_a_field_that_one_side_lacks_is_seen() -> None:
    whole = {"what": "driver", "a": "1", "b": "2"}
    assert list(differences(_reports.RunDiff, whole)) == []
    assert list(differences(_reports.RunDiff, {**whole, "c": 1})) == ["RunDiff.c is not in the type"]
    assert list(differences(_reports.RunDiff, {"what": "driver", "a": "1"})) == [
        "RunDiff.b is not in the JSON"
    ]
    assert list(differences(_reports.RunDiff, {**whole, "a": 1})) == ["RunDiff.a is 1, not <class 'str'>"]


def test_the_report_has_the_numbers_of_the_command(train: tracesmith.Trace, binary: str) -> None:
    done = subprocess.run(
        [binary, "analyze", str(train.path), "--format", "json"], capture_output=True, check=True, text=True
    )
    printed = json.loads(done.stdout)
    report = train.analyze()
    assert report.utilization.devices[0].busy_ns == printed["utilization"]["devices"][0]["busy_ns"]
    assert report.findings is not None
    assert [one.sentence for one in report.findings] == [one["sentence"] for one in printed["findings"]]
    assert report.findings[0].evidence[0].row == printed["findings"][0]["evidence"][0]["row"]
    assert report.kernels.rows[0].class_ == printed["kernels"]["rows"][0]["class"]


def test_the_text_reads_as_the_command_prints_it(train: tracesmith.Trace, binary: str) -> None:
    done = subprocess.run([binary, "analyze", str(train.path)], capture_output=True, check=True, text=True)
    text = str(train.analyze())
    for line in (
        "150 of 150 kernels outside graphs (100.0 %) took less time than the call that launched them",
        "Idle time of GPU 0 NVIDIA H200: 145.05 ms (99.8 %)",
        "140.71 ms  96.8 %   179  CPU busy between calls",
        "Steps: 10, from NVTX ranges named step",
        "109.10 ms  77.5 %  load",
        "26.1 %  70.69 µs     10  7.07 µs",
    ):
        assert line in done.stdout
        assert line in text


def test_a_part_of_a_trace_is_analyzed(train: tracesmith.Trace) -> None:
    step = train.analyze(step=4)
    assert step.kernels.count == train.steps[4].kernel_stats().count == 15
    half = train.analyze(range=(train.steps[5].start_ns, None))
    assert half.kernels.count == 75
    assert train.analyze(device=0, stream=7).kernels.count == 150
    with pytest.raises(ValueError, match="a step or a range"):
        train.analyze(step=1, range=("1s", "2s"))
    with pytest.raises(TypeError, match="colour"):
        train.analyze(colour=1)  # type: ignore[call-arg]
    with pytest.raises((ValueError, tracesmith.TraceError), match="99"):
        train.analyze(step=99)


def test_steps_are_a_sequence_with_analyses(train: tracesmith.Trace) -> None:
    pytest.importorskip("polars")
    steps = train.steps
    assert len(steps) == 10 and steps.to_polars().height == 10
    assert steps[-1].number == 9 and [step.number for step in steps[2:4]] == [2, 3]
    assert steps[0].is_warm_up and not steps[4].is_warm_up
    path = steps[4].critical_path()
    assert 0 < path.path_ns <= steps[4].duration_ns * 2
    assert sum(total.count for total in path.totals) == len(path.segments)
    assert path == train.critical_path(step=4)
    with pytest.raises(IndexError):
        steps[10]
    with pytest.raises(ValueError, match="as a whole"):
        steps[4].analyze(step=3)


def test_changes_are_predicted(train: tracesmith.Trace) -> None:
    same = train.what_if()
    assert same.scaled_ops == 0 and same.changed_ns == same.unchanged_ns
    slower = train.what_if(speedup={"triton*": 0.001})
    assert slower.scaled_ops > 0
    assert slower.changed_ns > same.changed_ns and slower.saved_ns < 0
    assert train.what_if(without_sync=True).left_waits > 0
    assert train.what_if(streams=1).changed_ns >= train.what_if(streams="unlimited").changed_ns
    with pytest.warns(
        RuntimeWarning, match=r"no CPU wait matches without_sync 'nothing-matches\*'; none was removed"
    ):
        assert train.what_if(without_sync="nothing-matches*").left_waits == 0
    with pytest.warns(
        RuntimeWarning, match=r"no GPU work matches speedup 'tritn\*'; did you mean triton"
    ) as caught:
        unchanged = train.what_if(speedup={"tritn*": 2, "triton*": 1})
    assert unchanged.changed_ns == same.changed_ns
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(ValueError, match="greater than 0"):
        train.what_if(speedup={"a": 0})


@pytest.mark.parametrize(
    "by", ["name", "short", "shape", "line", "nvtx", "operator", "process", "rank", "step"]
)
def test_kernels_are_grouped(train: tracesmith.Trace, by: Any) -> None:
    report = train.kernel_stats(by=by)
    assert sum(row.count for row in report.rows) == 150
    assert len(train.kernel_stats(by=by, limit=1).rows) == 1


def test_reports_are_pickled(train: tracesmith.Trace) -> None:
    reports = [
        train.analyze(),
        train.utilization(),
        train.idle(),
        train.kernel_stats(),
        train.memory(),
        train.critical_path(),
        train.slack(),
        train.what_if(),
        train.findings(),
        train.health,
        train.devices,
        train.steps,
        train.steps[2],
        train.kernel_stats().rows,
        train.events("kernel", limit=2, stacks=True),
        tracesmith.diff(train, train),
    ]
    for report in reports:
        again = pickle.loads(pickle.dumps(report))
        assert type(again) is type(report)
        assert repr(again) == repr(report), type(report)


def test_rows_are_made_when_they_are_looked_at(train: tracesmith.Trace) -> None:
    pytest.importorskip("polars")
    rows = train.slack().slack
    assert len(rows) == 180 and rows[0].slack_ns == 0 and len(rows[:5]) == 5
    assert rows.to_polars()["slack_ns"].to_list() == [row.slack_ns for row in rows]
    assert list(rows.to_pandas()["row"]) == [row.row for row in rows]
    assert rows.to_dicts()[0]["table"] == rows[0].table


def test_reports_are_frozen(train: tracesmith.Trace) -> None:
    report = train.utilization()
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.devices = report.devices  # type: ignore[misc]
    assert not hasattr(report, "__dict__")


def test_memory_has_its_peak() -> None:
    trace = tracesmith.open(FIXTURES[0].parent / "synthetic-v1.sbt")
    memory = trace.memory()
    assert memory.peak == max(pool.peak_bytes for pool in memory.pools) > 0
    assert "Memory" in str(memory)


def test_html_has_no_scripts_and_escapes_text(train: tracesmith.Trace) -> None:
    for html in (
        train.analyze()._repr_html_(),
        train.findings()._repr_html_(),
        train.kernel_stats().rows._repr_html_(),
    ):
        assert "<table" in html or "<h4" in html
        assert "<script" not in html
    finding = dataclasses.replace(train.findings()[0], sentence="<script>alert(1)</script>")
    assert "&lt;script&gt;" in finding._repr_html_() and "<script>" not in finding._repr_html_()


def test_a_notebook_shows_a_trace(train: tracesmith.Trace, binary: str) -> None:
    html = train._repr_html_()
    assert "<svg" in html and "waiting for the CPU" in html and "<script" not in html


def test_health_reads_as_info_prints_it(tmp_path: Path, binary: str) -> None:
    content = (FIXTURES[0].parent / "train-h200.sbt").read_bytes()
    damaged = tmp_path / "damaged.sbt"
    damaged.write_bytes(content[: len(content) * 2 // 3])
    trace = tracesmith.open(damaged)
    done = subprocess.run(
        [binary, "info", str(damaged), "--format", "json"], capture_output=True, check=True, text=True
    )
    assert trace.health.problems == json.loads(done.stdout)["health"]["problems"] != []
    assert not trace.health.is_good
    assert "incomplete" in str(trace.health)


def test_devices_are_typed(train: tracesmith.Trace) -> None:
    columns = set(train.table("devices").columns)
    assert {field.name for field in dataclasses.fields(tracesmith.DeviceInfo)} == columns
    assert train.devices[0].name == "NVIDIA H200" and train.devices[0].capability == (9, 0)


def test_importing_the_package_loads_no_reports() -> None:
    code = "import sys, tracesmith; print([m for m in sys.modules if m in ('tracesmith._reports', 'subprocess')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_cause_has_the_words_of_the_command() -> None:
    source = (FIXTURES[0].parents[1] / "crates/trace/src/analysis/idle.rs").read_text()
    words = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): text
        for name, text in re.findall(r"Self::(\w+) => \"(.*)\",", source)
    }
    assert CAUSES == words


def test_threads_share_analyses(train: tracesmith.Trace) -> None:
    def ask(step: int) -> int:
        return train.kernel_stats(step=step % 10).count

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(64))) == {15}
    assert len(train._prepared) <= 4
