"""The build backend of the Python package: maturin, after the command has been built.

A wheel has two parts: the native module, which maturin builds, and the command `tracesmith`, which is a program of its
own. This backend builds the command and puts it where maturin finds files for the wheel's scripts.

Set TRACESMITH_BINARY to a command that was built before, to use that one instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = Mapping[str, Any] | None

ROOT = Path(__file__).resolve().parents[2]


def target_folder() -> Path:
    """Where cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def build_command(cargo: Sequence[str] = ("cargo", "build"), target: str = "") -> Path:
    """Builds the command, with all formats that it can write."""
    ready = os.environ.get("TRACESMITH_BINARY")
    if ready:
        return Path(ready)
    command = [*cargo, "--release", "--package", "tracesmith", "--features", "parquet"]
    if target:
        command += ["--target", target]
    # Without the crates that a source distribution leaves out, cargo has to change the lock file.
    if (ROOT / ".git").exists():
        command.append("--locked")
    subprocess.run(command, cwd=ROOT, check=True)
    return target_folder() / target.partition(".2")[0] / "release" / "tracesmith"


def put_command_into_wheel(binary: Path) -> None:
    """Copies the command to the folder whose files become the wheel's scripts."""
    scripts = ROOT / "target" / "wheel.data" / "scripts"
    shutil.rmtree(scripts.parent, ignore_errors=True)
    scripts.mkdir(parents=True)
    copy = scripts / "tracesmith"
    shutil.copyfile(binary, copy)
    copy.chmod(0o755)


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Builds a wheel."""
    put_command_into_wheel(build_command())
    return str(maturin.build_wheel(folder, settings, metadata))


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Builds a wheel that refers to this folder."""
    put_command_into_wheel(build_command())
    return str(maturin.build_editable(folder, settings, metadata))


def _empty_data_folder() -> None:
    # maturin wants the folder, also where nothing is built.
    (ROOT / "target" / "wheel.data" / "scripts").mkdir(parents=True, exist_ok=True)


def prepare_metadata_for_build_wheel(folder: str, settings: Settings = None) -> str:
    """Writes the metadata of a wheel."""
    _empty_data_folder()
    return str(maturin.prepare_metadata_for_build_wheel(folder, settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
