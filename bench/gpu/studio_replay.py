"""Drives the memory debugger of Studio by HTTP, and holds what it shows against what `tracesmith replay` prints.

    python3 bench/gpu/studio_replay.py TRACESMITH RECORDING.sbt [KERNEL] [-o SUMMARY.json]

Starts `tracesmith studio RECORDING.sbt --control --no-browser`, steps to a kernel (the one whose name contains KERNEL,
or the first that changes a buffer), reads a buffer before and after it, asks what the call changed, compares the end
with the recording, looks for the first call that differs, and steps through some calls for times. Prints one JSON
summary: every check with pass or fail, and times in seconds. Exits with 0 if all checks pass, else with 1.
"""

import argparse
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

READY_LIMIT_S = 300
REQUEST_LIMIT_S = 900
COMPARED_BYTES = 1 << 20
LARGEST_DUMP = 1 << 30
STEPS = 12
RUNS = 2


class Failed(Exception):
    """A request was refused, or the replay ended."""


class Studio:
    """A running server, and the replay of its first trace."""

    def __init__(self, program, recording):
        command = [program, "studio", recording, "--control", "--no-browser"]
        self.talk = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.talk, text=True)
        line = self.process.stdout.readline().strip()
        if "#key=" not in line:
            self.process.wait()
            self.talk.seek(0)
            raise Failed("studio did not start: " + (line or self.talk.read().decode(errors="replace")))
        self.address, self.key = line.split("/#key=")

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-TraceSmith-Key": self.key}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(f"{self.address}/api/v1/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_LIMIT_S) as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            raise Failed(f"{path}: {error.code} {error.read().decode(errors='replace')}") from None

    def get(self, path):
        return json.loads(self.request("GET", path))

    def last_line(self, path, body):
        """The answer, which comes after lines of progress."""
        lines = self.request("POST", path, body).splitlines()
        if not lines:
            raise Failed(f"{path}: no answer")
        answer = json.loads(lines[-1])
        if "error" in answer:
            raise Failed(f"{body}: {answer['error']} {answer.get('hint', '')}".strip())
        return answer, len(lines) - 1

    def start(self, run):
        return self.last_line("t/0/replay/start", {"run": run})[0]

    def ask(self, **request):
        return self.last_line("t/0/replay/ask", request)[0]["ok"]

    def until_ready(self):
        end = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < end:
            layout = self.get("t/0/layout")
            if layout["state"] == "failed":
                raise Failed(f"the trace cannot be read: {layout.get('error')}")
            if layout["state"] == "ready":
                return
            time.sleep(0.1)
        raise Failed("the trace is not ready")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Summary:
    """Checks and times."""

    def __init__(self):
        self.checks = {}
        self.times = {}
        self.facts = {}

    def check(self, name, passed, detail=None):
        self.checks[name] = {"pass": bool(passed), **({} if detail is None else {"detail": detail})}

    def timed(self, name, work):
        begin = time.monotonic()
        result = work()
        self.times[name] = round(time.monotonic() - begin, 4)
        return result

    def value(self):
        passed = all(check["pass"] for check in self.checks.values())
        return {"pass": passed, "checks": self.checks, "times_s": self.times, "facts": self.facts}


def dumped(program, recording, until, address, folder):
    """The bytes of a buffer before a call, as the command writes them."""
    out = os.path.join(folder, "buffer.npy")
    command = [program, "replay", recording, "--dump", address, "--type", "u8", "-o", out, "--force"]
    if until is not None:
        command += ["--until", str(until)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise Failed(f"{' '.join(command)}: {run.stderr.strip()}")
    with open(out, "rb") as file:
        content = file.read()
    header = 10 + struct.unpack("<H", content[8:10])[0]
    return content[header:]


def read(studio, address, size, **more):
    return bytes.fromhex(studio.ask(do="read", address=address, bytes=size, **more)["hex"])


def choose(studio, calls, kernel):
    """A launch that changes a buffer among its arguments, with what it changes."""
    launches = [call for call in calls if call["kind"] == "launch"]
    if kernel:
        launches = [call for call in launches if kernel in call["name"] or kernel in call["function"]]
    for call in launches[:50]:
        changes = studio.ask(do="changes", call=call["number"], type="u8", elements=4096, ranges=4096)
        arguments = {one["address"] for one in studio.ask(do="buffers", call=call["number"])["buffers"]}
        found = [one for one in changes["buffers"] if one["address"] in arguments and one["bytes"] <= LARGEST_DUMP]
        if found:
            return call, changes, found[0]
    raise Failed("no launch changes a buffer among its arguments" + (f" and has {kernel!r} in its name" if kernel else ""))


def differences(one, other):
    """How many bytes differ, and the first offsets. Equal blocks are skipped fast."""
    count, first, block = 0, [], 1 << 16
    for start in range(0, len(one), block):
        left, right = one[start : start + block], other[start : start + block]
        if left != right:
            for offset, (a, b) in enumerate(zip(left, right)):
                if a != b:
                    count += 1
                    if len(first) < 4096:
                        first.append(start + offset)
    return count, first


def drive(program, recording, kernel, summary):
    studio = summary.timed("start_server", lambda: Studio(program, recording))
    try:
        studio.until_ready()
        state = studio.get("t/0/replay")
        summary.check("the file has a recording that may be run", state["is_recording"] and state["can_run"], state)
        look = summary.timed("start_offline", lambda: studio.start(False))
        summary.check("recorded contents can be read without running", look["offline"] is not None)
        ready = summary.timed("start_on_gpu", lambda: studio.start(True))
        summary.check("the replay runs on the GPU", ready["offline"] is None, ready["offline"])
        summary.facts.update({name: ready[name] for name in ("calls", "buffers", "begin_bytes", "end_bytes")})
        if ready["offline"] is not None:
            return
        with tempfile.TemporaryDirectory() as folder:
            debug(studio, program, recording, kernel, folder, summary)
        studio.request("POST", "t/0/replay/stop", {})
        summary.check("the replay can be stopped", studio.get("t/0/replay")["state"] == "ended")
    finally:
        code = studio.end()
    summary.check("the server ends with Ctrl-C", code == 0, code)


def debug(studio, program, recording, kernel, folder, summary):
    calls = []
    while len(calls) < summary.facts["calls"]:
        more = studio.ask(do="calls", **({"from": calls[-1]["number"] + 1} if calls else {}))["calls"]
        if not more:
            break
        calls += more
    summary.check("all calls are listed", len(calls) == summary.facts["calls"], len(calls))
    call, _, changed = summary.timed("find_a_kernel", lambda: choose(studio, calls, kernel))
    number, address, size = call["number"], changed["address"], changed["bytes"]
    summary.facts.update({"kernel": call["name"], "call": number, "buffer": address, "buffer_bytes": size})
    following = calls[call["place"] + 1]["number"] if call["place"] + 1 < len(calls) else None

    places = studio.get(f"t/0/replay/places?correlation={call['correlation']}&process={process_of(studio)}")
    names = {place["name"] for place in places}
    summary.check("the kernel is on the timeline", names & {call["name"], call["function"]}, sorted(names))

    part = min(size, COMPARED_BYTES)
    before = summary.timed("go_before", lambda: read(studio, address, part, place=call["place"]))
    after = summary.timed("go_after", lambda: read(studio, address, part, place=call["place"] + 1))
    expected_before = summary.timed("dump_before", lambda: dumped(program, recording, number, address, folder))
    expected_after = dumped(program, recording, following, address, folder)
    summary.check("memory before the call is what --dump writes", before == expected_before[:part])
    summary.check("memory after the call is what --dump writes", after == expected_after[:part])

    request = {"do": "changes", "call": number, "type": "u8", "elements": 4096, "ranges": 4096}
    again = summary.timed("changes_of_the_call", lambda: studio.ask(**request))
    found = next((one for one in again["buffers"] if one["address"] == address), None)
    count, first = differences(expected_before, expected_after)
    summary.check(
        "what the call changes is what two dumps differ in",
        found and found["different_bytes"] == count and [one["offset"] for one in found["first"]] == first[:4096],
        {"dumps": count, "studio": found and found["different_bytes"]},
    )
    kept = read(studio, address, part, at="before")
    summary.check("the memory before the call is kept", kept == expected_before[:part])

    stats = summary.timed("statistics", lambda: studio.ask(do="stats", address=address, type="u8"))
    summary.check(
        "statistics are those of the dump",
        stats["elements"] == size and stats["min"] == min(expected_after) and stats["max"] == max(expected_after),
        {name: stats[name] for name in ("elements", "min", "max", "mean")},
    )
    grid = summary.timed("heat_map", lambda: studio.ask(do="grid", address=address, type="u8", rows=1, columns=size))
    summary.check("the heat map has blocks", len(grid["means"]) == grid["rows"] * grid["columns"] > 0)

    step_times = []
    for target in range(max(0, call["place"] - STEPS // 2), min(len(calls), call["place"] + STEPS // 2)):
        begin = time.monotonic()
        studio.ask(do="position", place=target)
        step_times.append(time.monotonic() - begin)
    begin = time.monotonic()
    studio.ask(do="position", place=max(0, call["place"] - STEPS // 2))
    summary.times["step_back"] = round(time.monotonic() - begin, 4)
    summary.times["step_median"] = round(sorted(step_times)[len(step_times) // 2], 4)

    end = summary.timed("compare_with_the_recording", lambda: studio.ask(do="compare"))
    whole = subprocess.run([program, "replay", recording, "--format", "json"], capture_output=True, text=True)
    verdict = json.loads(whole.stdout)["verdict"] if whole.stdout else whole.stderr.strip()
    summary.check(
        "the comparison agrees with the command",
        (verdict == "same") == end["same"],
        {"studio_same": end["same"], "command": verdict, "differ": [one["address"] for one in end["buffers"]]},
    )
    check = summary.timed("first_call_that_differs", lambda: studio.ask(do="check", runs=RUNS))
    summary.check("the check has a verdict", check["verdict"] in ("repeats", "does not repeat"), check)
    try:
        studio.ask(do="read", address=address, bytes=size + 1)
        summary.check("a bad request is refused", False)
    except Failed as refused:
        position = studio.ask(do="position")["position"]
        summary.check("a bad request is refused, and the replay goes on", position["calls"] == len(calls), str(refused))


def process_of(studio):
    return studio.get("t/0/replay")["ready"]["process"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tracesmith")
    parser.add_argument("recording")
    parser.add_argument("kernel", nargs="?")
    parser.add_argument("-o", "--out")
    options = parser.parse_args()
    summary = Summary()
    try:
        program = os.path.abspath(options.tracesmith)
        drive(program, os.path.abspath(options.recording), options.kernel, summary)
    except (Failed, OSError, KeyError, ValueError) as error:
        summary.check("the run went to its end", False, f"{type(error).__name__}: {error}")
    text = json.dumps(summary.value(), indent=2)
    if options.out:
        with open(options.out, "w") as file:
            file.write(text + "\n")
    print(text)
    sys.exit(0 if summary.value()["pass"] else 1)


if __name__ == "__main__":
    main()
