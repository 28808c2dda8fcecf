"""Notices another distribution in the folder of this package.

The distribution `tracesmith` belongs to another project, and its package has the same import name as this one. If pip
installs both, each overwrites files of the other. This one then still works, until the other one is installed again or
removed: pip removes the files that both have.
"""

from __future__ import annotations

import os
import warnings
from importlib.machinery import EXTENSION_SUFFIXES

__all__ = ["warn_of_clash"]

#: The native module of the other project.
_THEIRS = "_C"

REMEDY = "pip uninstall -y tracesmith tracesmith-gpu && pip install tracesmith-gpu"


def warn_of_clash(folder: str) -> bool:
    """Warns if files of the other distribution are in this folder. Costs a stat for each kind of extension module."""
    for suffix in EXTENSION_SUFFIXES:
        if os.path.exists(os.path.join(folder, _THEIRS + suffix)):
            break
    else:
        return False
    warnings.warn(
        "the distribution 'tracesmith', which belongs to another project, is installed over tracesmith-gpu: "
        f"both use the import name tracesmith. Keep one of them: {REMEDY}",
        RuntimeWarning,
        stacklevel=3,
    )
    return True
