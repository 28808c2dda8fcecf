"""What all tests share: the fixtures of the project, and files of other tools if they are there."""

from __future__ import annotations

import os
from pathlib import Path

import capture_stage
import pytest

import tracesmith

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"

stage = capture_stage.stage


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
        pytest.skip("needs the files of other tools: TRACESMITH_DATA")
    return folder


@pytest.fixture(scope="session")
def binary() -> str:
    """The command."""
    found = os.environ.get("TRACESMITH_BINARY")
    if not found:
        pytest.skip("needs the command: TRACESMITH_BINARY")
    return found
