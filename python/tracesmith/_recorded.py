"""Events of a trace as typed objects, with their stacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tracesmith._reports import Items

__all__ = ["Event", "EventKind", "Frame", "events_from_json", "view_args"]

EventKind = Literal[
    "kernel", "copy", "set", "sync", "api", "allocation", "counter", "marker", "flow", "host", "graph", "collective"
]  # fmt: skip
"""A kind of event."""

Order = Literal["start", "duration", "bytes", "name"]


@dataclass(frozen=True, slots=True)
class Frame:
    """A function in a stack."""

    kind: str
    """`python` or `native`, or the name of another language."""
    function: str
    """The function."""
    file: str
    """Its source file; empty if unknown."""
    line: int
    """The line in the file; 0 if unknown."""
    image: str
    """The library or program that it is in; empty for Python."""
    address: int
    """Its address in the image."""

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})" if self.file else self.function


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a trace."""

    kind: str
    """Its kind, such as `kernel` or `copy`."""
    start_ns: int | None
    """Its start."""
    end_ns: int | None
    """Its end."""
    duration_ns: int | None
    """How long it took."""
    name: str
    """The kernel, function or range; a word such as `host to device` for events without a name."""
    process: int | None
    """The `id` of the process."""
    pid: int | None
    """The pid of the process."""
    thread: int | None
    """The thread's number in the operating system."""
    device: int | None
    """The driver's number of the GPU."""
    stream: int | None
    """The ID of the stream in its context."""
    correlation: int | None
    """Links a call to the work that it launched, within a process."""
    bytes: int | None
    """Bytes that were copied, set, allocated or communicated."""
    fields: Mapping[str, Any]
    """All columns of its table. Times in here are on their original clock."""
    stack: tuple[Frame, ...] = ()
    """The stack of its call, the innermost function first."""
    launch_stack: tuple[Frame, ...] = ()
    """The stack of the graph launch, if it is another one."""
    forward: str | None = None
    """For backward work: the forward operator."""
    forward_stack: tuple[Frame, ...] = ()
    """For backward work: the stack of the forward operator."""


def events_from_json(rows: list[dict[str, Any]]) -> Items[Event]:
    """Events from the JSON of `tracesmith view`."""
    return Items(rows, _event)


def _event(row: Mapping[str, Any]) -> Event:
    values = dict(row)
    for name in _STACKS:
        values[name] = tuple(Frame(**frame) for frame in row.get(name) or ())
    return Event(**values)


_STACKS = ("stack", "launch_stack", "forward_stack")


def view_args(
    kind: EventKind | Iterable[EventKind] | None,
    name: str | None,
    limit: int | None,
    sort: Order,
) -> list[str]:
    """Arguments of `tracesmith view`."""
    args = ["--sort", sort, "--limit", str(limit or 0)]
    kinds = [kind] if isinstance(kind, str) else list(kind or ())
    if kinds:
        args += ["--kind", ",".join(kinds)]
    if name is not None:
        args += [f"--name={name}"]
    return args
