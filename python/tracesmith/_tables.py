"""The tables of a trace as attributes. Written by `python/generate.py`: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracesmith._table import Table

__all__ = ["Tables"]


class Tables:
    """Every table and view of a trace is an attribute."""

    def table(self, name: str) -> Table:
        """The table or view of this name."""
        raise NotImplementedError

    @property
    def hosts(self) -> Table:
        """Table: A machine."""
        return self.table("hosts")

    @property
    def processes(self) -> Table:
        """Table: A process."""
        return self.table("processes")

    @property
    def threads(self) -> Table:
        """Table: A thread."""
        return self.table("threads")

    @property
    def contexts(self) -> Table:
        """Table: A context."""
        return self.table("contexts")

    @property
    def streams(self) -> Table:
        """Table: A stream."""
        return self.table("streams")

    @property
    def images(self) -> Table:
        """Table: A program or library mapped into a process."""
        return self.table("images")

    @property
    def symbols(self) -> Table:
        """Table: The symbol of a frame. A frame with inlined functions has several rows."""
        return self.table("symbols")

    @property
    def clocks(self) -> Table:
        """Table: A clock that timestamps come from."""
        return self.table("clocks")

    @property
    def clock_pairs(self) -> Table:
        """Table: One clock synchronization sample: two clocks, read at the same time."""
        return self.table("clock_pairs")

    @property
    def modules(self) -> Table:
        """Table: A loaded module (device code)."""
        return self.table("modules")

    @property
    def commands(self) -> Table:
        """Table: One call of a replay recording, in program order."""
        return self.table("commands")

    @property
    def buffers(self) -> Table:
        """Table: Memory that a recorded window can reach, at its beginning or end."""
        return self.table("buffers")

    @property
    def pieces(self) -> Table:
        """Table: A piece of a buffer's content, or of the data that a call copies from the host."""
        return self.table("pieces")

    @property
    def contents(self) -> Table:
        """Table: The bytes of a piece."""
        return self.table("contents")

    @property
    def graph_edges(self) -> Table:
        """Table: One dependency between two nodes of an instantiated graph.

        Nodes without rows, such as host functions, appear here, too.
        """
        return self.table("graph_edges")

    @property
    def kernels(self) -> Table:
        """Table: One execution of a kernel."""
        return self.table("kernels")

    @property
    def copies(self) -> Table:
        """Table: One memcpy."""
        return self.table("copies")

    @property
    def sets(self) -> Table:
        """Table: One memset."""
        return self.table("sets")

    @property
    def syncs(self) -> Table:
        """Table: One wait or event record."""
        return self.table("syncs")

    @property
    def api_calls(self) -> Table:
        """Table: One runtime or driver API call."""
        return self.table("api_calls")

    @property
    def allocations(self) -> Table:
        """Table: One allocation, one free, or one change of a memory pool."""
        return self.table("allocations")

    @property
    def counters(self) -> Table:
        """Table: One sample of a counter."""
        return self.table("counters")

    @property
    def markers(self) -> Table:
        """Table: One range or mark of the program (NVTX)."""
        return self.table("markers")

    @property
    def flows(self) -> Table:
        """Table: One point of a flow between events.

        Points with the same flow ID and kind belong together.
        """
        return self.table("flows")

    @property
    def host_calls(self) -> Table:
        """Table: One function call, sample or other interval on the host."""
        return self.table("host_calls")

    @property
    def graph_launches(self) -> Table:
        """Table: One launch of a graph, from its first to its last node."""
        return self.table("graph_launches")

    @property
    def collectives(self) -> Table:
        """Table: One collective or point-to-point operation of one rank."""
        return self.table("collectives")

    @property
    def frames(self) -> Table:
        """Table: One code location."""
        return self.table("frames")

    @property
    def stacks(self) -> Table:
        """Table: One node of the stack tree: a frame, called from the stack `parent`."""
        return self.table("stacks")

    @property
    def gpu_ops(self) -> Table:
        """View: Kernels, copies, sets and graphs that were recorded as a whole: all GPU work in the order of its
        start.
        """
        return self.table("gpu_ops")

    @property
    def launches(self) -> Table:
        """View: Every GPU operation whose launching API call was recorded, with that call."""
        return self.table("launches")

    @property
    def idle_gaps(self) -> Table:
        """View: Times between two operations in which a device had nothing to do, with the main cause."""
        return self.table("idle_gaps")

    @property
    def states(self) -> Table:
        """View: What each stream did at each time, from the start of the trace to its end."""
        return self.table("states")

    @property
    def collective_ops(self) -> Table:
        """View: Communication between GPUs: every row of `collectives`, and every communication kernel that has
        no such row.
        """
        return self.table("collective_ops")
