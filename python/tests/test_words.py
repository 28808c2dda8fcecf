"""Sentences of the command, in the words of the package."""

from __future__ import annotations

import pytest

from tracesmith._words import in_python


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("a.sbt exists; replace it with --force", "a.sbt exists; replace it with overwrite=True"),
        ("replace it with --force, or name another file with -o", "replace it with overwrite=True, or name another file"),
        ("invalid value 'x' for '--level <LEVEL>'", "invalid value 'x' for 'level'"),
        ("--duration 0 records nothing; use a longer time", "duration=0 records nothing; use a longer time"),
        ("--steps needs --capture-range nvtx:NAME", 'steps needs capture_range="nvtx:NAME"'),
        ("select a part of it with --from and --to", "select a part of it with range"),
        ("leave out --stream, or select whole GPUs", "leave out stream, or select whole GPUs"),
        ("--relocate uses other addresses", "relocate=True uses other addresses"),
        ("--mode dry-run lists the buffers", "dry_run=True lists the buffers"),
        ("no buffer; --single-file writes one file", "no buffer; single_file=True writes one file"),
    ],
)  # fmt: skip
def test_options_become_arguments(sentence: str, expected: str) -> None:
    assert in_python(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "make one with `tracesmith profile --record`",
        "start it with the variables that 'tracesmith env --ready' prints",
        "record there: tracesmith profile --xctrace -o metal.sbt -- PROGRAM; tracesmith.open reads the file",
        "start it with the host's driver (docker run --gpus all)",
        "cannot read /data/a--force.sbt",
        "the file exists: --force.sbt",
        "nothing to say - or -- to do",
    ],
)
def test_commands_and_paths_stay(sentence: str) -> None:
    assert in_python(sentence) == sentence
