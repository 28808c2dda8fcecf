"""Results of replays: verdicts, differences, times.

All of them are what `tracesmith replay --format json` answers, as typed objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "Close",
    "Culprit",
    "Determinism",
    "Difference",
    "Failure",
    "Replaced",
    "ReplayRun",
    "Timing",
    "Verdict",
]

Verdict = Literal["same", "within tolerance", "unproven", "differs", "failed", "not run"]
"""`same`: all compared memory is bit-identical. `unproven`: every result would have passed. `not run`: a dry run."""


@dataclass(frozen=True)
class Difference:
    """A buffer whose content differs.

    >>> print(Difference(0x7000, 64, 8, b"\\x01", b"\\x02", 1, None))
    0x7000: 1 of 64 bytes differ, first at offset 8: expected 01, found 02
    """

    address: int
    #: The size of the buffer.
    nbytes: int
    #: Where the first difference is.
    offset: int
    #: Some bytes from the first difference on.
    expected: bytes
    found: bytes
    #: How many bytes differ. 0 if they differed in one run and not in the next.
    count: int
    #: The call after which it was seen; `None` for the end.
    after: int | None

    def __str__(self) -> str:
        after = "" if self.after is None else f"after #{self.after}: "
        if self.count == 0:
            return f"{after}{self.address:#x} ({self.nbytes} bytes): differed in one run but not in the next"
        return (
            f"{after}{self.address:#x}: {self.count} of {self.nbytes} bytes differ, first at offset {self.offset}: "
            f"expected {self.expected.hex()}, found {self.found.hex()}"
        )


@dataclass(frozen=True)
class Close:
    """A buffer that differs within the tolerance."""

    address: int
    nbytes: int
    #: The type that it was read as: f16, bf16, f32 or f64.
    type: str
    #: How many elements differ, and by how much at most.
    elements: int
    largest: float


@dataclass(frozen=True)
class ReplayRun:
    """One run of the recorded calls, or how the memory after a replaced launch compares."""

    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    within: tuple[Close, ...] = ()
    #: Why it proves nothing, if it is `unproven`.
    reason: str | None = None
    #: What was compared.
    buffers: int | None = None
    nbytes: int | None = None
    #: How many calls ran.
    commands: int | None = None
    device_ns: int | None = None
    host_ns: int | None = None


@dataclass(frozen=True)
class Timing:
    """The GPU time of a call, over several runs with the same inputs."""

    #: The number of the call.
    command: int
    name: str
    #: In the recorded program; `None` if it was not recorded.
    recorded_ns: int | None
    median_ns: int
    min_ns: int
    max_ns: int
    runs: int
    #: SM and memory clocks and the temperature, before and after.
    clocks: tuple[Mapping[str, Any], ...] = ()
    #: Whether the times are of CUDA events around the call, which makes them longer.
    by_events: bool = False


@dataclass(frozen=True)
class Replaced:
    """A launch with the recorded and the new kernel, on the same inputs."""

    command: int
    name: str
    recorded_ns: int | None
    old_ns: int
    new_ns: int
    #: How the memory after both compares.
    outcome: ReplayRun

    @property
    def ratio(self) -> float:
        """The new time by the old one: below 1, the new kernel is faster."""
        return self.new_ns / max(self.old_ns, 1)


@dataclass(frozen=True)
class Culprit:
    """The first call that does not give the same result each time, and why."""

    #: The number of the call; `None` if it is not known which one.
    command: int | None
    name: str
    cause: str
    #: The address of the buffer; `None` if the call fails.
    buffer: int | None
    difference: Difference | None

    def __str__(self) -> str:
        call = "" if self.command is None else f"#{self.command} {self.name}"
        leaves = "fails" if self.buffer is None else f"gives different results in {self.buffer:#x}"
        return f"{call} {leaves} ({self.cause})".strip()


@dataclass(frozen=True)
class Determinism:
    """Whether the window gives the same memory each time, after each call. It is true if so."""

    culprit: Culprit | None
    runs: int | None = None
    calls: int | None = None

    def __bool__(self) -> bool:
        return self.culprit is None

    def __str__(self) -> str:
        if self.culprit is None:
            return f"deterministic: {self.runs} runs, same memory after each of {self.calls} calls"
        lines = [f"nondeterministic: {self.culprit}"]
        if self.culprit.difference is not None:
            lines.append(f"  {self.culprit.difference}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Failure:
    """The call that fails or does not end."""

    command: int
    name: str
    error: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    #: The words of the parameters, and the buffers that they point to.
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [f"#{self.command} {self.name} {self.error}", *(f"  {line}" for line in self.parameters)]
        )


def difference_of(answer: Mapping[str, Any]) -> Difference:
    """A difference of an answer."""
    return Difference(
        address=answer["address"],
        nbytes=answer["bytes"],
        offset=answer["offset"],
        expected=bytes(answer["expected"]),
        found=bytes(answer["found"]),
        count=answer["count"],
        after=answer["after"],
    )


def run_of(answer: Mapping[str, Any]) -> ReplayRun:
    """A run of an answer."""
    return ReplayRun(
        verdict=answer["verdict"],
        differences=tuple(map(difference_of, answer.get("differences", ()))),
        within=tuple(
            Close(close["address"], close["bytes"], close["type"], close["elements"], close["largest"])
            for close in answer.get("within", ())
        ),
        reason=answer.get("reason"),
        buffers=answer.get("buffers"),
        nbytes=answer.get("bytes"),
        commands=answer.get("commands"),
        device_ns=answer.get("device_ns"),
        host_ns=answer.get("host_ns"),
    )


def timings_of(answer: Mapping[str, Any]) -> tuple[Timing, ...]:
    """The times of calls in an answer."""
    clocks = tuple(clock for clock in answer.get("clocks") or () if clock)
    return tuple(
        Timing(
            command=call["command"],
            name=call["name"],
            recorded_ns=call["recorded_ns"],
            median_ns=call["median_ns"],
            min_ns=call["min_ns"],
            max_ns=call["max_ns"],
            runs=call["runs"],
            clocks=clocks,
            by_events=bool(answer.get("by_events", False)),
        )
        for call in answer["calls"]
    )


def replaced_of(answer: Mapping[str, Any]) -> tuple[Replaced, ...]:
    """The replaced launches of an answer."""
    return tuple(
        Replaced(
            command=one["command"],
            name=one["name"],
            recorded_ns=one["recorded_ns"],
            old_ns=one["old_ns"],
            new_ns=one["new_ns"],
            outcome=run_of(one["outcome"]),
        )
        for one in answer["replaced"]
    )


def determinism_of(answer: Mapping[str, Any]) -> Determinism:
    """The answer of a check."""
    if answer["verdict"] == "repeats":
        return Determinism(None, answer["runs"], answer["calls"])
    difference = answer["difference"]
    culprit = Culprit(
        command=answer["command"],
        name=answer["name"],
        cause=answer["cause"],
        buffer=answer["buffer"],
        difference=None if difference is None else difference_of(difference),
    )
    return Determinism(culprit)


def failure_of(answer: Mapping[str, Any]) -> Failure:
    """The call of an answer that fails."""
    return Failure(
        command=answer["command"],
        name=answer["name"],
        error=answer["error"],
        grid=tuple(answer["grid"]),
        block=tuple(answer["block"]),
        parameters=tuple(answer["parameters"]),
    )
