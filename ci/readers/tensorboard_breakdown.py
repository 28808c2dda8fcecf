"""What TensorBoard's PyTorch plugin shows of a trace of PyTorch's profiler.

    python tensorboard_breakdown.py TRACE...

Prints a JSON array with an object for each trace: the tables of its overview, kernel, operator and memory views. Needs
the PyPI package torch-tb-profiler; exits with 3 when it is missing, so that tests can tell "cannot" from "wrong".
"""

import json
import logging
import os
import re
import sys
import tempfile
import warnings

MISSING = 3


def shown(path):
    """The tables that the plugin serves to its pages."""
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    with tempfile.TemporaryDirectory() as cache:
        data = RunProfileData.parse("worker", None, os.path.abspath(path), cache)
        profile = RunGenerator("worker", None, data).generate_run_profile()
    return {
        "views": sorted(view.name for view in profile.views),
        "overview": profile.overview,
        "kernels": profile.kernel_table,
        "kernels by operator": profile.kernel_op_table,
        "operators": profile.operation_table_by_name,
        "memory": sorted(map(str, profile.memory_snapshot.get_peak_memory().items())) if profile.memory_snapshot else None,
    }


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # The plugin prints as it goes.
    words, sys.stdout = sys.stdout, sys.stderr
    try:
        import torch_tb_profiler  # noqa: F401
    except ImportError:
        print("tensorboard_breakdown: the Python package torch-tb-profiler is missing", file=sys.stderr)
        sys.exit(MISSING)
    tables = json.dumps([shown(path) for path in sys.argv[1:]], default=str)
    # 5.0 is 5, also within the texts that the pages show.
    words.write(re.sub(r"(?<=\d)\.0(?!\d)", "", tables))


if __name__ == "__main__":
    main()
