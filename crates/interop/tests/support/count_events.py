"""Counts the events of a trace-event JSON file with Python's own reader, for a test to compare with.

Prints one `name number` a line.
"""

import collections
import decimal
import gzip
import json
import sys

TABLES = {
    "kernel": "kernels", "Kernel": "kernels",
    "gpu_memcpy": "copies", "Memcpy": "copies",
    "gpu_memset": "sets", "Memset": "sets",
    "cuda_sync": "syncs",
    "cuda_runtime": "api_calls", "cuda_driver": "api_calls", "Runtime": "api_calls",
    "cpu_op": "operators", "Operator": "operators",
    "python_function": "python_functions",
    "overhead": "overheads",
}


def nanoseconds(number):
    return int((decimal.Decimal(number) * 1000).to_integral_value(decimal.ROUND_HALF_UP))


path = sys.argv[1]
text = (gzip.open(path) if path.endswith(".gz") else open(path, "rb")).read()
document = json.loads(text, parse_float=decimal.Decimal)
counts = collections.Counter()
calls, kernels = set(), []
first, last = None, 0
base = int(document.get("baseTimeNanoseconds", 0))
for event in document["traceEvents"]:
    phase, category, arguments = event["ph"], event.get("cat"), event.get("args") or {}
    if phase == "X":
        table = TABLES.get(category, "markers")
        counts[table] += 1
        if table in ("kernels", "copies", "sets", "api_calls"):
            counts[table + "_ns"] += nanoseconds(event["dur"])
            counts[table + "_external"] += bool(arguments.get("External id") or arguments.get("external id"))
        if table == "kernels":
            kernels.append(arguments.get("correlation", 0))
            start = nanoseconds(event["ts"]) + base
            first = start if first is None else min(first, start)
            last = max(last, start + nanoseconds(event["dur"]))
        if table == "api_calls":
            calls.add(arguments.get("correlation", 0))
    elif phase == "i":
        if event["name"] == "[memory]":
            counts["allocations"] += "Bytes" in arguments
            counts["freed_bytes"] -= min(arguments.get("Bytes", 0), 0)
        else:
            counts["markers"] += 1
    elif phase in "stf" and category == "fwdbwd":
        counts["forward_backward"] += 1
counts["joined_kernels"] = sum(1 for kernel in kernels if kernel and kernel in calls)
counts["first_kernel"] = first or 0
counts["last_kernel"] = last
for name, count in sorted(counts.items()):
    print(name, count)
