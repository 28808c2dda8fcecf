"""Comparisons of two traces."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import tracesmith


@pytest.fixture
def files(fixtures: Path) -> tuple[Path, Path]:
    return fixtures / "train-h200.sbt", fixtures / "train-h200-fixed.sbt"


def test_a_change_is_certain(files: tuple[Path, Path]) -> None:
    report = tracesmith.diff(*files, fail_over=0.05)
    assert report.is_significant and report.time.change is not None and report.time.change < -0.9
    assert report.is_over is False
    assert {kernel.fate for kernel in report.significant} <= {"new", "gone", "kept", "renamed"}
    assert 0 < len(report.significant) < len(report.kernels)
    assert tracesmith.diff(files[1], files[0], fail_over=0.05).is_over is True
    assert tracesmith.diff(*files).is_over is None


def test_traces_and_files_give_the_same(files: tuple[Path, Path]) -> None:
    pytest.importorskip("polars")
    opened = tracesmith.diff(*(tracesmith.open(file) for file in files), by="short")
    assert opened == tracesmith.diff(*files, by="short")
    assert opened.kernels.to_polars().height == len(opened.kernels)


def test_numbers_are_those_of_the_command(files: tuple[Path, Path], binary: str) -> None:
    done = subprocess.run(
        [binary, "diff", *map(str, files), "--format", "json"], capture_output=True, text=True, check=True
    )
    printed = json.loads(done.stdout)
    report = tracesmith.diff(*files)
    assert report.kernels.to_dicts() == printed["kernels"]
    assert report.idle[0].cause == printed["idle"][0]["cause"]
    text = str(report)
    assert "-14.07 ms (-90.8 %)" in text and "python3 train.py 20 cuda" in text
    table = subprocess.run(
        [binary, "diff", *map(str, files)], capture_output=True, text=True, check=True
    ).stdout
    for line in table.splitlines()[3:15]:
        assert line in text


def test_wrong_arguments_are_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="'name' or 'short'"):
        tracesmith.diff(*files, by="shape")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="share"):
        tracesmith.diff(*files, fail_over=-1)
