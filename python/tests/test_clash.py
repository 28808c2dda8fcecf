"""Another distribution in the folder of this package."""

from __future__ import annotations

import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tracesmith._clash import warn_of_clash


@pytest.mark.parametrize("suffix", EXTENSION_SUFFIXES)
def test_the_native_module_of_the_other_project_is_noticed(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"_C{suffix}").touch()
    with pytest.warns(RuntimeWarning, match="pip uninstall -y tracesmith tracesmith-gpu"):
        assert warn_of_clash(str(tmp_path))


def test_a_clean_folder_is_silent(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not warn_of_clash(str(tmp_path))
