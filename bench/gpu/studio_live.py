"""Studio beside a recording, on a machine with a GPU: do rows grow, how late are they, and is anything lost?

    studio_live.py TRACESMITH COMMAND... [--seconds N]

COMMAND is the program to record: a torch script (`train.py`) runs with this Python, anything else as it is. It should
run for longer than twice N seconds (10 unless chosen); it is ended then. Two recordings are made:

1. `profile` of the command, with `studio` beside it: the layout is asked for again and again.
2. `record` of the command when it runs already, started and stopped through Studio's own route.

Prints one JSON object. The exit code is 1 if something was lost or did not grow.
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

POLL_SECONDS = 0.1
LIMIT_SECONDS = 120


class Studio:
    """A server, asked as a page asks it."""

    def __init__(self, program, folder, *files):
        command = [program, "studio", "--no-browser", "--control", *files]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        self.address, self.key = self.process.stdout.readline().strip().split("/#key=")

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/api/v1/{path}", data=data)
        request.add_header("X-TraceSmith-Key", self.key)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.code} {error.read().decode()}") from error

    def json(self, path, body=None):
        return json.loads(self.ask(path, body))

    def layout(self, trace):
        return self.json(f"t/{trace}/layout")

    def newest(self, trace, layout):
        """The last moment of the work of streams, in ns on the clock of the trace; None without any."""
        tracks = [track for track in layout["tracks"] if track["kind"] == "stream" and track["slices"]]
        ends = []
        for track in tracks:
            for lane in range(track["rows"]):
                row = track["first_row"] + lane
                query = f"row={row}&time={layout['span_ns'] + 1}&direction=previous"
                slice_ = self.json(f"t/{trace}/neighbor?{query}")
                if slice_:
                    ends.append(slice_["start"] + slice_["duration"])
        return int(layout["origin_ns"]) + max(ends) if ends else None

    def slices_in_view(self, trace, layout, row):
        """How many slices of a row the binary route has for the last second."""
        span = layout["span_ns"]
        query = f"rows={row}&from={max(0, span - 10**9)}&to={span}&limit=100000"
        answer = self.ask(f"t/{trace}/{layout['generation']}/slices?{query}")
        magic, _, _, rows, _ = struct.unpack_from("<4sHHII", answer)
        assert magic == b"TSSL" and rows == 1, answer[:16]
        return struct.unpack_from("<I", answer, 20)[0]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


def stream_slices(layout):
    return sum(track["slices"] for track in layout["tracks"] if track["kind"] == "stream")


def follow(studio, trace, seconds):
    """Asks for the layout for some time. Gives how it grew, and how late the newest work was each time."""
    seen, delays, in_view, waits = [], [], [], []
    end = time.monotonic() + seconds
    last_change = time.monotonic()
    generation = None
    while time.monotonic() < end:
        layout = studio.layout(trace)
        if layout["state"] == "ready" and layout["generation"] != generation:
            generation = layout["generation"]
            count = stream_slices(layout)
            if seen and count > seen[-1]:
                waits.append(time.monotonic() - last_change)
            if not seen or count > seen[-1]:
                last_change = time.monotonic()
            seen.append(count)
            newest = studio.newest(trace, layout)
            # Traces of this recorder have the monotonic clock.
            if newest is not None:
                delays.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - newest) / 1e9)
            streams = [track for track in layout["tracks"] if track["kind"] == "stream"]
            if streams:
                in_view.append(studio.slices_in_view(trace, layout, streams[0]["first_row"]))
        time.sleep(POLL_SECONDS)
    return {
        "generations": len(seen),
        "slices": seen[:1] + seen[-1:],
        "grew": sum(after > before for before, after in zip(seen, seen[1:])),
        "shrank": sum(after < before for before, after in zip(seen, seen[1:])),
        "delay_s": summary(delays),
        "between_changes_s": summary(waits),
        "slices_of_last_second": summary(in_view),
    }


def slices_of_new_view(program, path):
    """What another server shows of the finished file."""
    studio = Studio(program, path.parent, str(path))
    try:
        return stream_slices(finished(studio, 0))
    finally:
        studio.end()


def summary(values):
    values = sorted(values)
    if not values:
        return None
    return {
        "median": round(values[len(values) // 2], 3),
        "max": round(values[-1], 3),
        "count": len(values),
    }


def until(what, read):
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        value = read()
        if value:
            return value
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"waited too long: {what}")


def finished(studio, trace):
    """The layout of a complete file, with its idle times."""

    def read():
        layout = studio.layout(trace)
        done = layout["state"] == "ready" and "live" not in layout and layout["idle"] != "pending"
        return layout if done else None

    return until("the end of the recording", read)


def gpu_rows(program, path):
    """What `info` counts in a file that rows of streams show."""
    done = subprocess.run([program, "info", "--format", "json", path], capture_output=True, text=True, check=True)
    tables = json.loads(done.stdout)["tables"]
    counts = {table["name"]: table["rows"] for table in tables}
    return {name: counts.get(name, 0) for name in ("kernels", "copies", "sets", "syncs", "graph_launches")}


def cpu_seconds(pid):
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_group(process, how):
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        pass


def profiled(program, command, folder, seconds):
    """A recording from the start of the program, with a server beside it."""
    path = folder / "profiled.sbt"
    recorder = subprocess.Popen(
        [program, "profile", "-q", "-o", path, "--", *command],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until("the file", lambda: path.exists() and path.stat().st_size > 0)
        studio = Studio(program, folder, str(path))
        until("the first work", lambda: stream_slices(studio.layout(0)) > 0)
        before, began = cpu_seconds(studio.process.pid), time.monotonic()
        result = follow(studio, 0, seconds)
        spent = (cpu_seconds(studio.process.pid) - before) / (time.monotonic() - began)
        # The program gets the signal, and the recording ends with it.
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(timeout=LIMIT_SECONDS)
        last = finished(studio, 0)
        result |= {
            "server_cores": round(spent, 3),
            "last_slices": stream_slices(last),
            "slices_of_new_view": slices_of_new_view(program, path),
            "info": gpu_rows(program, path),
            "health": last["health"]["sentences"],
            "bytes": path.stat().st_size,
            "server_exit": studio.end(),
        }
        return result
    finally:
        kill_group(recorder, signal.SIGKILL)


def recorded(program, command, folder, seconds):
    """A recording of a program that runs already, made by the server."""
    printed = subprocess.run([program, "env", "--format", "json"], capture_output=True, text=True, check=True)
    variables = json.loads(printed.stdout)
    variables = variables.get("variables", variables)
    target = subprocess.Popen(
        command,
        env=os.environ | {name: str(value) for name, value in variables.items()},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        studio = Studio(program, folder)

        def armed():
            listed = studio.json("processes")
            return [one for one in listed if os.getsid(one["pid"]) == target.pid]

        process = until("a process that can be recorded", armed)[0]
        begun = studio.json("recordings", {"pid": process["pid"], "path": "recorded.sbt"})

        def status():
            return studio.json("recordings")[begun["id"]]

        opened = until("the recording", lambda: status() if status()["state"] in ("recording", "failed") else None)
        if opened["state"] == "failed":
            raise RuntimeError(f"{opened}")
        trace = opened["trace"]
        until("the first work", lambda: stream_slices(studio.layout(trace)) > 0)
        result = follow(studio, trace, seconds)
        studio.json(f"recordings/{begun['id']}/stop", {})
        ended = until("the end", lambda: status() if status()["state"] in ("done", "failed") else None)
        last = finished(studio, trace)
        result |= {
            "process": process["command"],
            "state": ended["state"],
            "whole": ended.get("report", {}).get("whole"),
            "last_slices": stream_slices(last),
            "slices_of_new_view": slices_of_new_view(program, folder / "recorded.sbt"),
            "info": gpu_rows(program, folder / "recorded.sbt"),
            "health": last["health"]["sentences"],
            "program_goes_on": target.poll() is None,
            "server_exit": studio.end(),
        }
        return result
    finally:
        kill_group(target, signal.SIGKILL)


def is_good(result):
    found = result["info"]
    gpu = found["kernels"] + found["copies"] + found["sets"]
    # Waits that CUPTI reports for a stream are in its row, too; the others have a row of their own.
    is_whole = gpu <= result["last_slices"] <= gpu + found["syncs"] and result["last_slices"] == result["slices_of_new_view"]
    return result["grew"] >= 2 and result["shrank"] == 0 and is_whole and result["server_exit"] == 0


def main(arguments):
    seconds = 10.0
    if "--seconds" in arguments:
        at = arguments.index("--seconds")
        seconds = float(arguments[at + 1])
        del arguments[at : at + 2]
    if len(arguments) < 2:
        sys.exit(__doc__)
    program = str(Path(arguments[0]).resolve())
    command = arguments[1:]
    if command[0].endswith(".py"):
        command = [sys.executable, str(Path(command[0]).resolve()), *command[1:]]
    folder = Path(tempfile.mkdtemp(prefix="studio-live-"))
    try:
        results = {
            "profiled": profiled(program, command, folder, seconds),
            "recorded": recorded(program, command, folder, seconds),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    results["good"] = all(is_good(result) for result in results.values())
    print(json.dumps(results, indent=1))
    return 0 if results["good"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
