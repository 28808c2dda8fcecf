"""What all tests share: the fixtures of the project, and files of other tools if they are there."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import capture_stage
import pytest

import tracesmith

# For the tests of the plugin.
pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
MISSING_DATA = "needs the files of other tools: TRACESMITH_DATA"

stage = capture_stage.stage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In an environment that has everything, a skipped test is a failure: it would hide that nothing was tested."""
    report = yield
    if report.skipped and os.environ.get("TRACESMITH_ALL") and MISSING_DATA not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped, but this environment has everything: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of small traces."""
    return FIXTURES


@pytest.fixture
def train() -> tracesmith.Trace:
    """A PyTorch training loop on an H200: 5 steps with ranges, stacks and a recording."""
    return tracesmith.open(FIXTURES / "train-h200.sbt")


@pytest.fixture
def demo() -> tracesmith.Trace:
    """The trace of the demo."""
    return tracesmith.open(FIXTURES / "demo-h200.sbt")


@pytest.fixture(scope="session")
def data() -> Path:
    """Real files of other tools."""
    folder = Path(os.environ.get("TRACESMITH_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(MISSING_DATA)
    return folder


@pytest.fixture(scope="session")
def binary() -> str:
    """The command."""
    found = os.environ.get("TRACESMITH_BINARY")
    if not found:
        pytest.skip("needs the command: TRACESMITH_BINARY")
    return found
