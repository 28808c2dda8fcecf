"""Replays of a recorded window, and their verdicts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from tracesmith._errors import ReplayError
from tracesmith._recording import Path, Recording, failure, words
from tracesmith._verdict import (
    Difference,
    Failure,
    Replaced,
    ReplayRun,
    Timing,
    Verdict,
    failure_of,
    replaced_of,
    run_of,
    timings_of,
)

__all__ = ["Replay", "replay"]

Mode = Literal["full", "serial", "as-recorded", "dry-run"]

MODES = ("full", "serial", "as-recorded", "dry-run")

#: From the best to the worst.
_ORDER = ("same", "within tolerance", "unproven", "differs")

#: What the command's exit codes mean.
_GOOD, _NOT_GOOD = 0, 1

#: Differences and buffers to show of a run.
_SHOWN = 20


def replay(
    path: Path,
    *,
    mode: Mode = "full",
    repeat: int = 1,
    kernel: str | tuple[str, int] | None = None,
    ops: tuple[int, int] | range | None = None,
    stream: int | None = None,
    replace: Mapping[str, Path] | None = None,
    tolerance: str | Mapping[str, float | tuple[float, float]] | None = None,
    dry_run: bool = False,
    details: bool = False,
    device: int = 0,
    timeout: float = 60,
    relocate: bool = False,
) -> Replay:
    """Runs a recorded window again on the GPU, and compares memory with what was recorded.

    It runs in a process of its own. The result is true if all memory is the same, bit for bit:

    ```python
    with tracesmith.profile("step.sbt", record=True):
        train_step()
    assert tracesmith.replay("step.sbt", repeat=3)
    ```

    - `mode`: `full` runs the calls on the recorded streams, `serial` one after another, `as-recorded` with the recorded
      pauses, and `dry-run` (or `dry_run=True`) runs nothing.
    - `kernel`, `ops` and `stream` select calls: `"flash#3"` or `("flash", 3)` is the third launch of a kernel whose
      name contains `flash`; `(40, 60)` are the calls 40 to 59.
    - `replace`: `{"flash": "new.cubin"}` launches another kernel wherever one with that name was. `"new.ptx:symbol"`
      names the kernel in the file.
    - `tolerance`: `{"f32": 1e-5}` or `{"f16": (relative, absolute)}` accepts small differences.
    - `details` also measures each call (`calls`), which takes one more run.
    - `device` is the GPU, `timeout` the seconds without progress after which it stops. `relocate` uses other addresses
      where the recorded ones are taken.

    Raises `ReplayError` if the file cannot be replayed, and `NotAvailableError` without a GPU. A dry run needs none:

    >>> import tracesmith as ts
    >>> plan = ts.replay("fixtures/replay-h200.sbt", dry_run=True)
    >>> plan.verdict, len(plan.commands), plan.is_replayable
    ('not run', 7, True)
    """
    recording = Recording(path, device=device, timeout=timeout, relocate=relocate)
    return recording.replay(
        mode="dry-run" if dry_run else mode,
        repeat=repeat,
        kernel=kernel,
        ops=ops,
        stream=stream,
        replace=replace,
        tolerance=tolerance,
        details=details,
    )


class Replay(Recording):
    """A replayed recording. It is true if its verdict is `same`.

    What can be done with a recording can be done with it: `check_determinism()`, `kernel()`, `buffer()`, `extract()`.
    """

    def __init__(self, recording: Recording, verdict: Verdict, answer: Mapping[str, Any]) -> None:
        self.__dict__.update(recording.__dict__)
        self._verdict = verdict
        self._answer = answer
        if verdict == "not run":
            # A dry run answers what is in the file.
            self.__dict__["_plan"] = answer

    @classmethod
    def _of(
        cls,
        recording: Recording,
        *,
        mode: Mode = "full",
        repeat: int = 1,
        kernel: str | tuple[str, int] | None = None,
        ops: tuple[int, int] | range | None = None,
        stream: int | None = None,
        replace: Mapping[str, Path] | None = None,
        tolerance: str | Mapping[str, float | tuple[float, float]] | None = None,
        details: bool = False,
    ) -> Replay:
        if mode not in MODES:
            hint = "; call .time() for times" if str(mode) == "timing" else ""
            raise ValueError(f"no mode {mode!r}; use one of {', '.join(MODES)}{hint}")
        if repeat < 1:
            raise ValueError(f"repeat must be at least 1, not {repeat}")
        arguments = ["--mode", mode, "--repeat", str(repeat), *_selection(kernel, ops, stream)]
        for name, file in (replace or {}).items():
            arguments += ["--replace", f"{name}={os.fspath(file)}"]
        if tolerance is not None:
            arguments += [
                "--tolerance",
                tolerance if isinstance(tolerance, str) else ",".join(words(tolerance)),
            ]
        if details:
            arguments.append("--verbose")
        if mode == "dry-run":
            return cls(recording, "not run", recording._ask("replay", *arguments))
        return cls(recording, *_answered(recording, arguments))

    @property
    def verdict(self) -> Verdict:
        """The worst of all runs and replaced launches."""
        return self._verdict

    def __bool__(self) -> bool:
        return self._verdict == "same"

    @property
    def against(self) -> str | None:
        """What memory was compared with: `recorded`, or `replay` for a part within the window."""
        against: str | None = self._answer.get("against")
        return against

    @property
    def runs(self) -> tuple[ReplayRun, ...]:
        """The runs: `replay.runs[0].device_ns`."""
        return tuple(map(run_of, self._answer.get("runs", ())))

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What differs, of all runs and replaced launches."""
        outcomes = [*self.runs, *(replaced.outcome for replaced in self.replaced)]
        return tuple(difference for run in outcomes for difference in run.differences)

    @property
    def replaced(self) -> tuple[Replaced, ...]:
        """The replaced launches, with the times of both kernels."""
        return replaced_of(self._answer) if self._answer.get("runs") else ()

    @property
    def calls(self) -> tuple[Timing, ...]:
        """The GPU time of each call, if `details` were wanted."""
        return timings_of(self._answer) if "calls" in self._answer else ()

    @property
    def relocated(self) -> int:
        """How many ranges of memory were at other addresses than the recorded ones."""
        relocated: int = self._answer.get("relocated", 0)
        return relocated

    @property
    def failure(self) -> Failure | None:
        """The call that fails or does not end, if the verdict is `failed`."""
        return failure_of(self._answer) if self._verdict == "failed" else None

    @property
    def selected(self) -> tuple[int, ...]:
        """The numbers of the calls that a dry run selects."""
        part = self._answer.get("part")
        return tuple(call.number for call in self.commands) if part is None else tuple(part)

    def __repr__(self) -> str:
        runs = f", {_counted(len(self.runs), 'run')}" if self.runs else ""
        return f"Replay({os.path.basename(self.path)}: {self.verdict}{runs})"

    def __str__(self) -> str:
        if self.failure is not None:
            return f"failed: {self.failure}"
        if self.verdict == "not run":
            launches = sum(call.number in self.selected for call in self.launches)
            state = "replayable" if self.is_replayable else "not replayable: " + self.obstacles[0].reason
            calls = f"{_counted(len(self.selected), 'call')} ({_counted(launches, 'launch', 'launches')})"
            return f"{calls} on {_counted(len(self.buffers), 'buffer')}\n{state}"
        lines = [
            line for number, run in enumerate(self.runs, 1) for line in _shown(number, run, self.against)
        ]
        for one in self.replaced:
            times = f"old {_time(one.old_ns)}, new {_time(one.new_ns)} ({one.ratio:.2f})"
            lines.append(f"#{one.command} {one.name}: {one.outcome.verdict}, {times}")
        return "\n".join(lines)


def _selection(
    kernel: str | tuple[str, int] | None, ops: tuple[int, int] | range | None, stream: int | None
) -> list[str]:
    arguments = []
    if kernel is not None:
        arguments += ["--kernel", kernel if isinstance(kernel, str) else f"{kernel[0]}#{kernel[1]}"]
    if ops is not None:
        if isinstance(ops, range) and ops.step != 1:
            raise ValueError(f"calls follow each other, so {ops} cannot be selected")
        first, end = (ops.start, ops.stop) if isinstance(ops, range) else ops
        arguments += ["--ops", f"{first}..{end}"]
    if stream is not None:
        arguments += ["--stream", hex(stream)]
    return arguments


def _answered(recording: Recording, arguments: list[str]) -> tuple[Verdict, Mapping[str, Any]]:
    """The answer to a replay. It is never `same` unless the exit code and every run say so, too."""
    done = recording._run("replay", *arguments, check=False)
    if not done.stdout.strip():
        raise failure(done)
    answer: Mapping[str, Any] = json.loads(done.stdout)
    verdict: Verdict = answer["verdict"]
    if verdict == "failed":
        return verdict, answer
    outcomes = [run["verdict"] for run in answer["runs"]]
    outcomes += [one["outcome"]["verdict"] for one in answer["replaced"]]
    worst = max(map(_ORDER.index, outcomes), default=None)
    expected = _GOOD if verdict in ("same", "within tolerance") else _NOT_GOOD
    if worst is None or _ORDER[worst] != verdict or done.returncode != expected:
        raise ReplayError(
            f"the replay answered {verdict!r} with exit code {done.returncode}, for runs {outcomes}"
        )
    return verdict, answer


def _shown(number: int, run: ReplayRun, against: str | None) -> list[str]:
    """A run, as the command prints it."""
    times = f"{_counted(run.commands or 0, 'call')}, {_time(run.device_ns or 0)} on the GPU"
    as_in = " as in a replay of all earlier calls" if against == "replay" else ""
    if run.verdict == "same":
        return [f"run {number}: same{as_in} ({run.buffers} buffers, {_bytes(run.nbytes or 0)}; {times})"]
    if run.verdict == "unproven":
        return [f"run {number}: unproven: {run.reason} ({times})"]
    if run.verdict == "within tolerance":
        elements = sum(close.elements for close in run.within)
        largest = max(close.largest for close in run.within)
        where = f"{elements} elements in {len(run.within)} of {run.buffers} buffers"
        return [f"run {number}: within tolerance{as_in} ({where} differ by at most {largest:g}; {times})"]
    than = " from a replay of all earlier calls" if against == "replay" else ""
    head = f"run {number}: differs in {len(run.differences)} of {run.buffers} buffers{than} ({times})"
    return [head, *(f"  {difference}" for difference in run.differences[:_SHOWN])]


def _counted(count: int, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> _counted(1, "call"), _counted(2, "launch", "launches")
    ('1 call', '2 launches')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def _bytes(count: int) -> str:
    """Bytes, as the command prints them.

    >>> _bytes(512), _bytes(80072)
    ('512 B', '78.2 KiB')
    """
    if count < 1024:
        return f"{count} B"
    value, units = count / 1024, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while value >= 1023.95 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.1f} {units[0]}"


def _time(nanos: int) -> str:
    """A span of time, as the command prints it.

    >>> _time(812), _time(3500), _time(12_040_000)
    ('812 ns', '3.50 µs', '12.04 ms')
    """
    for unit, size, digits in (("s", 1e9, 3), ("ms", 1e6, 2), ("µs", 1e3, 2)):
        if nanos >= size:
            return f"{nanos / size:.{digits}f} {unit}"
    return f"{nanos} ns"
