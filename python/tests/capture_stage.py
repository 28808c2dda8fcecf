"""What the tests of recording share: programs in processes of their own, with the fake driver in their way.

TRACESMITH_BINARY names the command, TRACESMITH_FAKE_CUDA the folder with the fake libcuda.so.1 and libcupti.so.13.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"

#: No program of ours takes this long.
LIMIT = 120


class Stage:
    """A folder to run programs in."""

    def __init__(self, folder: Path, fake: str, binary: str) -> None:
        self.folder = folder
        self.binary = binary
        for name in ("runtime", "tmp", "home"):
            (folder / name).mkdir(mode=0o700)
        self.work = folder / "work"
        self.work.mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TRACESMITH_")},
            "LD_LIBRARY_PATH": fake,
            "PYTHONPATH": os.pathsep.join([str(PROGRAMS), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "TRACESMITH_BINARY": binary,
            "TRACESMITH_RUNTIME_DIR": str(folder / "runtime"),
            "XDG_RUNTIME_DIR": str(folder / "runtime"),
            "TMPDIR": str(folder / "tmp"),
            "HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "home" / ".cache"),
        }

    def start(self, program: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
        """Starts a program that is written in the test."""
        script = self.work / "program.py"
        script.write_text(textwrap.dedent(program))
        command = [*arguments, sys.executable, "-B", str(script)]
        return subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )

    def run(self, program: str, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Runs a program to its end; returns what it printed."""
        process = self.start(program, *arguments)
        out, errors = process.communicate(timeout=LIMIT)
        assert process.returncode == code, f"{process.returncode}: {out}\n{errors}"
        return out, errors

    def tracesmith(self, *arguments: str) -> str:
        """What the command prints."""
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def counts(self, trace: str) -> dict[str, int]:
        """Rows per table."""
        info = json.loads(self.tracesmith("--format", "json", "info", trace))
        return {table["name"]: table["rows"] for table in info["tables"]}

    def info(self, trace: str) -> dict[str, object]:
        return dict(json.loads(self.tracesmith("--format", "json", "info", trace)))

    def events(self, trace: str, kind: str) -> list[dict[str, object]]:
        """Events of one kind."""
        return list(
            json.loads(self.tracesmith("--format", "json", "view", trace, "--kind", kind, "--limit", "0"))
        )


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    binary, fake = os.environ.get("TRACESMITH_BINARY"), os.environ.get("TRACESMITH_FAKE_CUDA")
    if not binary or not fake:
        pytest.skip("needs TRACESMITH_BINARY and TRACESMITH_FAKE_CUDA")
    # Sockets have short names.
    assert len(str(tmp_path)) < 70, tmp_path
    return Stage(tmp_path, fake, binary)
