"""What HolisticTraceAnalysis finds in a trace of PyTorch's profiler.

    python hta_breakdown.py TRACE

Prints a JSON object: the temporal breakdown (idle, compute, non-compute, kernel time in microseconds) and the kernel
breakdown (time and count by kernel). Needs the PyPI package HolisticTraceAnalysis; exits with 3 when it is missing, so
that tests can tell "cannot" from "wrong".
"""

import json
import logging
import os
import sys
import warnings

MISSING = 3


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    try:
        from hta.trace_analysis import TraceAnalysis
    except ImportError:
        print("hta_breakdown: the Python package HolisticTraceAnalysis is missing", file=sys.stderr)
        sys.exit(MISSING)
    analysis = TraceAnalysis(trace_files={0: os.path.abspath(sys.argv[1])})
    temporal = analysis.get_temporal_breakdown(visualize=False)
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0)
    rows = lambda frame: json.loads(frame.to_json(orient="records"))
    json.dump({"temporal": rows(temporal), "types": rows(types), "kernels": rows(kernels)}, sys.stdout)


if __name__ == "__main__":
    main()
