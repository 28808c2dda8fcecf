"""Device memory: who holds it, and what is never freed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracesmith._reports._build import Items, Report
from tracesmith._reports._text import Part, size
from tracesmith._reports.quality import DataQuality

__all__ = ["BadFree", "Churn", "Holder", "MemoryPoint", "MemoryPool", "MemoryReport"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A line of code that holds memory."""

    stack: str
    """The line that allocated it."""
    kept_by: str | None
    """What keeps it on purpose: a caching allocator, a CUDA library or a module."""
    bytes: int
    """How much."""
    count: int
    """The number of allocations."""
    late: int
    """Those of them in the second half of the trace."""
    first_ns: int
    """When the first was made."""
    first_row: int
    """Its row in `trace.allocations`."""


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """Memory in use from a moment on."""

    time_ns: int
    """The moment."""
    bytes: int
    """The bytes in use."""


@dataclass(frozen=True, slots=True)
class Churn:
    """A line of code that allocates and frees repeatedly."""

    stack: str
    """The line."""
    count: int
    """How often."""
    bytes: int
    """The bytes of all its allocations."""
    held_ns: int
    """The total time in use."""


@dataclass(frozen=True, slots=True)
class BadFree:
    """A free of memory that was not allocated."""

    time_ns: int
    """When."""
    address: int
    """The address."""
    stack: str
    """The line of code."""
    row: int
    """The row in `trace.allocations`."""


@dataclass(frozen=True, slots=True)
class MemoryPool:
    """Memory of one kind on one GPU, from one allocator of one process."""

    process: int
    """The `id` of the process."""
    pid: int
    """Its pid; 0 if unknown."""
    rank: int | None
    """Its rank, if it has one."""
    device: int
    """The `id` of the GPU."""
    device_name: str
    """Its name."""
    memory: str
    """The kind of memory."""
    allocator: str
    """The allocator; empty for the driver."""
    allocations: int
    """The number of allocations."""
    frees: int
    """The number of frees."""
    allocated_bytes: int
    """The bytes of all allocations."""
    peak_bytes: int
    """The most memory in use."""
    peak_at_ns: int
    """When that was first so."""
    holders: Items[Holder]
    """Memory in use at the peak, by line of code."""
    live_bytes: int
    """Memory in use at the end."""
    kept_bytes: int
    """The part of it that is kept on purpose."""
    never_freed: Items[Holder]
    """Memory in use at the end, by line of code."""
    series: Items[MemoryPoint]
    """Memory over time, at most about 500 points, with all peaks."""
    churn: Items[Churn]
    """Lines of code that allocate and free repeatedly."""
    reserved_peak_bytes: int | None
    """The most memory that a caching allocator held, if it reports that."""
    fragmentation: float | None
    """The share of it that was unused at that moment."""


@dataclass(frozen=True, slots=True, repr=False)
class MemoryReport(Report):
    """Memory of GPUs.

    ```python
    memory = trace.memory()
    print(memory.peak)
    ```
    """

    pools: Items[MemoryPool]
    """By process, GPU, kind of memory and allocator. Pools are never added up."""
    double_frees: Items[BadFree]
    """Addresses that were freed twice."""
    unknown_frees: Items[BadFree]
    """Frees of addresses that were never allocated in the trace."""
    without_time: int
    """Rows without a time, which are left out."""
    without_address: int
    """Rows without an address. They count in the totals, but have no holder."""
    doubts: DataQuality
    """How certain the numbers are."""

    @property
    def peak(self) -> int:
        """The most bytes in use at once in one pool; 0 without allocations."""
        return max((row["peak_bytes"] for row in self.pools.to_dicts()), default=0)

    def _parts(self) -> Iterator[Part]:
        head = ("device", "pid", "memory", "allocator", ">allocations", ">frees", ">peak", ">at the end")
        rows = [
            (
                pool.device_name,
                str(pool.pid),
                pool.memory,
                pool.allocator,
                f"{pool.allocations:,}",
                f"{pool.frees:,}",
                size(pool.peak_bytes),
                size(pool.live_bytes),
            )
            for pool in self.pools
        ]
        yield Part("Memory", head, rows, [] if rows else ["no allocations in the trace"])
        for pool in self.pools:
            held = [(size(one.bytes), f"{one.count:,}", one.stack) for one in pool.holders[:10]]
            if held:
                yield Part(f"At the peak of {pool.device_name}", (">bytes", ">count", "allocated at"), held)
        for title, frees in (
            ("Freed twice", self.double_frees),
            ("Freed, but never allocated", self.unknown_frees),
        ):
            if frees:
                yield Part(
                    title, ("address", "line"), [(f"0x{one.address:x}", one.stack) for one in frees[:10]]
                )
