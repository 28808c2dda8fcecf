"""The GPUs of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["DeviceInfo", "device_from_row"]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A GPU that a trace was recorded on. Numbers are `None` or 0 if the recorder did not know them."""

    id: int
    """Its ID in the trace: the column `device` of reports."""
    host: int | None
    """The ID of the host."""
    ordinal: int | None
    """The driver's number if all GPUs are visible."""
    uuid: str | None
    """The UUID."""
    name: str | None
    """The name."""
    vendor: str | None
    """The vendor."""
    architecture: str | None
    """The architecture."""
    capability_major: int | None
    """Compute capability, first number."""
    capability_minor: int | None
    """Compute capability, second number."""
    memory: int | None
    """The amount of memory, in bytes."""
    multiprocessors: int | None
    """The number of multiprocessors or compute units."""
    warp_size: int | None
    """The number of threads in a warp or wavefront."""
    threads_per_multiprocessor: int | None
    """The most threads per multiprocessor."""
    blocks_per_multiprocessor: int | None
    """The most blocks per multiprocessor."""
    registers_per_multiprocessor: int | None
    """Registers per multiprocessor."""
    shared_per_multiprocessor: int | None
    """Shared memory per multiprocessor, in bytes."""
    shared_per_block: int | None
    """The most shared memory per block, in bytes."""
    cache: int | None
    """The size of the L2 cache, in bytes."""
    clock_khz: int | None
    """The highest multiprocessor clock."""
    memory_clock_khz: int | None
    """The highest memory clock."""
    memory_bandwidth: int | None
    """The peak memory bandwidth, in bytes per second."""
    pci: str | None
    """The PCI address."""
    driver: str | None
    """The driver version."""
    copy_engines: int | None
    """The number of copy engines."""
    numa_node: int | None
    """The NUMA node, if any."""
    pcie_generation: int | None
    """The best PCIe generation that the GPU and its slot support."""
    pcie_width: int | None
    """The most PCIe lanes that both support."""
    nvlinks: int | None
    """The number of active NVLinks."""
    nvlink_bandwidth: int | None
    """The bandwidth of all NVLinks in one direction, in bytes per second."""

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability, such as `(9, 0)`."""
        return (self.capability_major or 0, self.capability_minor or 0)


def device_from_row(row: Mapping[str, Any]) -> DeviceInfo:
    """A GPU, from its row in the table of devices."""
    values: dict[str, Any] = {field.name: row.get(field.name) for field in fields(DeviceInfo)}
    return DeviceInfo(**values)
