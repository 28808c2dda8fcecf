"""Several GPUs and several machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracesmith import _command
from tracesmith._errors import NotAvailableError
from tracesmith._machine import Device, devices
from tracesmith.compat._capture import Profiler, ProfilerConfig
from tracesmith.compat._events import Source, trace_of

if TYPE_CHECKING:
    from tracesmith._table import Table
    from tracesmith._trace import Trace

__all__ = [
    "ClockCorrelator",
    "CommAnalysis",
    "GPULink",
    "GPUTopology",
    "MultiGPUProfiler",
    "NCCLTracker",
    "TimeSync",
]


@dataclass(frozen=True)
class GPULink:
    """How two GPUs are connected."""

    first: int
    second: int
    #: `NV18` is 18 NVLinks; `PIX`, `PXB`, `PHB`, `NODE` and `SYS` are paths over PCIe, the shortest first.
    kind: str

    @property
    def nvlinks(self) -> int:
        """The number of NVLinks."""
        return int(self.kind[2:]) if self.kind.startswith("NV") else 0


class GPUTopology:
    """How the GPUs of this machine are connected. Another process looks, when the first answer is needed.

    >>> import tracesmith as ts
    >>> topology = ts.GPUTopology()
    >>> len(topology.links) == len(topology.devices) * (len(topology.devices) - 1) // 2
    True
    """

    def discover(self) -> GPUTopology:
        """Looks again."""
        self.__dict__.pop("_answer", None)
        return self

    @cached_property
    def _answer(self) -> dict[str, Any]:
        # Without a GPU the exit code is 1, and the answer has no devices.
        answer: dict[str, Any] = json.loads(_command.run(["--format", "json", "devices"], check=False).stdout)
        return answer

    @property
    def devices(self) -> list[str]:
        """The names of the GPUs, by PCI bus order."""
        return [device["name"] for device in self._answer["devices"]]

    @property
    def links(self) -> tuple[GPULink, ...]:
        """The connection of each pair of GPUs."""
        rows: list[list[str]] = self._answer["topology"]["connections"]
        return tuple(
            GPULink(first, second, rows[first][second])
            for first in range(len(rows))
            for second in range(first + 1, len(rows))
        )

    def link(self, first: int, second: int) -> GPULink:
        """The connection of two GPUs."""
        rows = self._answer["topology"]["connections"]
        return GPULink(first, second, rows[first][second])

    def bandwidth(self, first: int, second: int) -> int | None:
        """Bytes per second over NVLink in one direction; `None` if the GPUs are not connected by it."""
        count = self.link(first, second).nvlinks
        speeds = [
            link["speed_mbps"] for link in self._answer["devices"][first]["nvlinks"] if link["speed_mbps"]
        ]
        return count * max(speeds) * 125_000 if count and speeds else None

    def to_ascii(self) -> str:
        """A matrix as `tracesmith devices` prints it."""
        return _command.run(["--no-color", "devices"], check=False).stdout

    def to_json(self) -> str:
        """The devices and their connections, as `tracesmith devices --format json` prints them."""
        return json.dumps(self._answer)

    def to_graphviz(self) -> str:
        """The graph of the connections."""
        nodes = [
            f'  gpu{number} [label="GPU {number}\\n{name}"];' for number, name in enumerate(self.devices)
        ]
        edges = [f'  gpu{link.first} -- gpu{link.second} [label="{link.kind}"];' for link in self.links]
        return "\n".join(["graph topology {", *nodes, *edges, "}"])


class MultiGPUProfiler(Profiler):
    """A profiler: all GPUs of this process are recorded in any case.

    Each event has its `device_id`. For programs of several processes or machines, record each, and open all files:
    `tracesmith.open(["rank0.sbt", "rank1.sbt"])`.
    """

    def __init__(self, config: ProfilerConfig | None = None, path: str | None = None) -> None:
        super().__init__(config, path)

    @property
    def devices(self) -> list[Device]:
        """The GPUs of this machine."""
        return devices()


class TimeSync:
    """Raises: clocks are not set, they are compared, and traces have the result. See `ClockCorrelator`."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise NotAvailableError(
            "TraceSmith does not synchronize clocks by NTP or PTP",
            hint="open the files of all machines together: tracesmith.open([…]) aligns them; see ClockCorrelator",
        )


class ClockCorrelator:
    """How the clocks of a trace relate: GPUs, hosts and CUPTI.

    >>> import tracesmith as ts
    >>> clocks = ts.ClockCorrelator("fixtures/train-h200.sbt")
    >>> [row["name"] for row in clocks.clocks][0], clocks.uncertainty(1, 2)
    ('host monotonic', 72)
    """

    def __init__(self, source: Source) -> None:
        self.trace: Trace = trace_of(source)

    @property
    def clocks(self) -> Table:
        """The clocks."""
        return self.trace.table("clocks")

    @property
    def pairs(self) -> Table:
        """Readings of two clocks at the same moment, with their uncertainty in nanoseconds."""
        return self.trace.table("clock_pairs")

    def offset(self, first: int, second: int) -> int:
        """What the clock `second` shows more than `first`, in nanoseconds, at their last reading."""
        return self._offsets(first, second)[-1][1]

    def drift(self, first: int, second: int) -> float:
        """How much the offset grows, in nanoseconds per second, from the first reading to the last one."""
        offsets = self._offsets(first, second)
        (start, before), (end, after) = offsets[0], offsets[-1]
        return (after - before) / (end - start) * 1e9 if end > start else 0.0

    def uncertainty(self, first: int, second: int) -> int:
        """The largest uncertainty of the readings of two clocks, in nanoseconds."""
        return max(row["uncertainty"] or 0 for row in self._read(first, second))

    def _offsets(self, first: int, second: int) -> list[tuple[int, int]]:
        rows = self._read(first, second)
        return sorted((row["first_time"], row["second_time"] - row["first_time"]) for row in rows)

    def _read(self, first: int, second: int) -> list[Mapping[str, Any]]:
        rows = [row for row in self.pairs if (row["first"], row["second"]) == (first, second)]
        if not rows:
            raise ValueError(f"clocks {first} and {second} were not read together; see .pairs")
        return rows


class CommAnalysis:
    """Communication between GPUs: how much, by whom, and how much of it is hidden behind other work."""

    def __init__(self, source: Source) -> None:
        self.trace: Trace = trace_of(source)

    @property
    def operations(self) -> Table:
        """The collective and point-to-point operations."""
        return self.trace.table("collective_ops")

    def by_name(self) -> list[dict[str, Any]]:
        """Operations by name: `count`, `ns` and `bytes`, the longest first."""
        query = (
            "select name, count(*) as count, sum(duration) as ns, sum(bytes) as bytes "
            "from collective_ops group by name order by ns desc"
        )
        return self.trace.sql(query).to_dicts()

    def load_balance(self) -> list[dict[str, Any]]:
        """The time that each process spends in communication. One that waits for others spends more."""
        query = (
            "select process, rank, count(*) as count, sum(duration) as ns "
            "from collective_ops group by process, rank order by process"
        )
        return self.trace.sql(query).to_dicts()

    def overlap(self) -> list[dict[str, Any]]:
        """For each GPU: communication in nanoseconds, and the parts of it that other work hides or not."""
        from tracesmith import _native

        answer = json.loads(_native.Analysis(self.trace._native).report("utilization", "{}"))
        names = ("communication_ns", "communication_hidden_ns", "communication_exposed_ns")
        return [{"device": one["name"], **{name: one[name] for name in names}} for one in answer["devices"]]


class NCCLTracker(CommAnalysis):
    """NCCL operations of a trace. They are recorded by themselves, so there is nothing to track while a program runs.

    >>> import tracesmith as ts
    >>> [row["name"] for row in ts.NCCLTracker("fixtures/synthetic-v1.sbt").by_name()]
    ['AllReduce']
    """

    def __init__(self, source: Source | None = None) -> None:
        if source is None:
            raise NotAvailableError(
                "NCCL operations are recorded by themselves",
                hint="pass a trace: NCCLTracker(profiler.trace), or NCCLTracker('train.sbt')",
            )
        super().__init__(source)
