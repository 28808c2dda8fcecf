"""Every example of the docstrings and of the pages about Python runs, in a folder with `train.sbt`."""

from __future__ import annotations

import ast
import doctest
import os
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest

import tracesmith

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^([ ]*)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

# These record or replay, which needs a driver. Their tests do what their examples show.
RECORDING = {
    "_capture",
    "_memory",
    "_recording",
    "_replay",
    "_replays",
    "xctrace",
    "_arm",
    "_around",
    "_collector",
    "_machine",
    "_profile",
    "_ranges",
    "_schedule",
    "_options",
    "_report",
}

PAGES = (ROOT / "docs" / "python.md", ROOT / "docs" / "guides" / "python-integrations.md")

# What blocks of these pages use that records or replays.
NEEDS_A_DRIVER = ("ts.profile(", "ts.range(", "ts.replay(", "ts.run(", "ts.record(", "ts.Session(")


# What the package uses if it is installed.
LIBRARIES = ("IPython", "duckdb", "numpy", "pandas", "polars", "pyarrow")


def blocks(text: str) -> list[str]:
    return [textwrap.dedent(block) for _, block in BLOCK.findall(text)]


def docstrings(file: Path) -> str:
    """All docstrings of a module."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)]
    return "\n\n".join(ast.get_docstring(node) or "" for node in nodes)


def examples() -> list[Any]:
    files = sorted((ROOT / "python" / "tracesmith").rglob("*.py"))
    found = [
        pytest.param(block, id=f"{file.stem}-{number}")
        for file in files
        if file.stem not in RECORDING
        for number, block in enumerate(blocks(docstrings(file)))
    ]
    found += [
        pytest.param(block, id=f"{page.name}-{number}")
        for page in PAGES
        for number, block in enumerate(blocks(page.read_text()))
        if not any(name in block for name in NEEDS_A_DRIVER)
    ]
    return found


@pytest.mark.parametrize("code", examples())
def test_example_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: str) -> None:
    fixtures = ROOT / "fixtures"
    for name in ("train.sbt", "rank0.sbt", "before.sbt"):
        shutil.copy(fixtures / "train-h200.sbt", tmp_path / name)
    for name in ("rank1.sbt", "after.sbt"):
        shutil.copy(fixtures / "train-h200-fixed.sbt", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert os.getcwd() == str(tmp_path)
    names = {name: getattr(tracesmith, name) for name in tracesmith.__all__ if name not in ("open", "range")}
    names |= {"tracesmith": tracesmith, "ts": tracesmith, "trace": tracesmith.open("train.sbt")}
    if ">>> " in code:
        # With what it prints.
        test = doctest.DocTestParser().get_doctest(code, names, "example", None, None)
        assert test.examples
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0
        return
    try:
        exec(compile(code, "example", "exec"), names)  # noqa: S102 (the examples are ours)
    except ModuleNotFoundError as missing:
        if missing.name not in LIBRARIES:
            raise
        pytest.skip(f"needs {missing.name}")


def test_there_are_examples() -> None:
    assert len(examples()) > 25
