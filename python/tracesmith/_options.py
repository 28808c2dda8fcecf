"""The options of a recording, as arguments of the command. `profile`, `record` and `run` share them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "Level", "Options", "Path", "Stacks"]

Path = str | os.PathLike[str]

Level = Literal["light", "standard", "full"]

#: `True` is both, `False` none, and `None` what the level says.
Stacks = bool | Literal["python", "native"] | None

Kind = Literal[
    "kernels",
    "copies",
    "api",
    "queries",
    "sync",
    "memory",
    "nvtx",
    "graphs",
    "modules",
    "streams",
    "overhead",
    "latency",
    "counters",
]


@dataclass(frozen=True)
class Options:
    """What to record. The words are those of `tracesmith profile`.

    >>> Options(level="light", stacks="python").arguments()
    ['--level', 'light', '--stacks', 'python']
    """

    level: Level = "standard"
    #: Instead of a level.
    kinds: Iterable[Kind] | None = None
    stacks: Stacks = None
    #: Graphs node by node, or as a whole.
    graphs: Literal["nodes", "whole"] = "nodes"
    #: For `replay`.
    record: bool = False
    #: Keep only the latest records, up to this size.
    flight_recorder: str | int | None = None
    #: The most memory for buffers in the recorded process.
    buffer_size: str | int | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.kinds, str):
            raise TypeError(f"kinds is a list of words, such as ['{self.kinds}']")
        if self.kinds is not None:
            # An iterator can be read once, and a profile may be used again.
            object.__setattr__(self, "kinds", tuple(self.kinds))

    def arguments(self) -> list[str]:
        """The arguments of the command."""
        arguments: list[str] = []
        if self.kinds is not None:
            arguments += ["--trace", ",".join(self.kinds)]
        else:
            arguments += ["--level", self.level]
        if self.stacks is not None:
            words = {True: "native,python", False: "none"}
            arguments += ["--stacks", words[self.stacks] if isinstance(self.stacks, bool) else self.stacks]
        if self.graphs != "nodes":
            arguments += ["--graphs", self.graphs]
        if self.record:
            arguments.append("--record")
        for name, size in (("--flight-recorder", self.flight_recorder), ("--buffer-size", self.buffer_size)):
            if size is not None:
                arguments += [name, str(size)]
        if self.overwrite:
            arguments.append("--force")
        return arguments
