"""Says whether two files of PyTorch's profiler hold the same.

    python kineto_compare.py ORIGINAL EXPORT

Compares device work, API calls, operators, Python functions, annotations and memory events by what tells them apart: category,
name, time, duration and numbers, all exact (decimals, never floating point). Prints a JSON object: how many of each
category there are, and for each that differs up to three examples from either side. Exits with 1 when something differs.
"""

import collections
import decimal
import gzip
import json
import sys

# Categories of 2021, and what they are called today.
TODAY = {"Operator": "cpu_op", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Runtime": "cuda_runtime"}
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")
CATEGORIES = DEVICE + (
    "cuda_runtime",
    "cuda_driver",
    "cpu_op",
    "python_function",
    "user_annotation",
    "gpu_user_annotation",
    "overhead",
    "fwdbwd",
    "[memory]",
)


def load(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as file:
        trace = json.load(file, parse_float=decimal.Decimal)
    return trace if isinstance(trace, dict) else {"traceEvents": trace}


def nanos(value):
    """Digits below a nanosecond do not exist in a trace: they are rounded."""
    return int((decimal.Decimal(value) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


def key(event, base, category):
    args = event.get("args", {})
    external = args.get("External id", args.get("external id", 0))
    common = (category, event["name"], base + nanos(event["ts"]), nanos(event.get("dur", 0)), external)
    if category == "fwdbwd":
        return common[:4] + (event["ph"], event["id"])
    if category == "[memory]":
        return common[:3] + (args.get("Bytes"), args.get("Addr"), args.get("Total Allocated", 0))
    if category in DEVICE:
        stream = args.get("stream", 0)
        # ROCm's kernels have no grid of their own: the trace has that of the launching call.
        grid = None if "kind" in args else str(args.get("grid"))
        # No stream is -1, or that in 32 bits.
        stream = 0 if stream in (-1, 2**32 - 1) else stream
        return common + (args.get("correlation", 0), args.get("bytes", 0), grid, args.get("device"), stream)
    if category in ("cuda_runtime", "cuda_driver"):
        return common + (int(event["tid"]), args.get("correlation", 0), args.get("cbid", args.get("cid", 0)))
    if category == "python_function":
        return common + (args.get("Python id"), args.get("Python parent id"))
    if category == "cpu_op":
        index = args.get("Ev Idx", args.get("Profiler Event Index", 0))
        stack = args.get("Call stack", "")
        return common + (args.get("Sequence number", 0), args.get("Fwd thread id"), index, str(args.get("Input Dims")), stack)
    return common


def keys(trace):
    base = int(trace.get("baseTimeNanoseconds", 0))
    found = collections.Counter()
    for event in trace["traceEvents"]:
        category = TODAY.get(event.get("cat"), event.get("cat"))
        if event["name"] == "[memory]":
            category = "[memory]"
        if event["name"].startswith("cu") and category == "cuda_runtime" and event["name"][2:3].isupper():
            category = "cuda_driver"
        if category in CATEGORIES:
            found[key(event, base, category)] += 1
    return found


def main():
    original, export = (keys(load(path)) for path in sys.argv[1:3])
    counts = collections.Counter()
    for found, count in original.items():
        counts[found[0]] += count
    differing = collections.defaultdict(lambda: {"missing": 0, "added": 0, "examples": []})
    for side, left in (("missing", original - export), ("added", export - original)):
        for found, count in left.items():
            entry = differing[found[0]]
            entry[side] += count
            if sum(example[0] == side for example in entry["examples"]) < 3:
                entry["examples"].append((side, found))
    print(json.dumps({"counts": counts, "differing": differing}, default=str))
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
