"""The GPUs of this machine, and what keeps them from being recorded.

The command looks for both, in a process of its own: asking the CUDA driver in this one would initialize it, and then
workers that are forked later could not use the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracesmith import _command
from tracesmith._errors import NotAvailableError

__all__ = ["Check", "Device", "Doctor", "devices", "doctor"]


@dataclass(frozen=True)
class Device:
    """A GPU of this machine."""

    #: Its number by PCI bus order.
    index: int
    #: The numbers that a CUDA program in this environment uses.
    cuda_ordinals: tuple[int, ...]
    name: str
    uuid: str | None
    architecture: str | None
    capability: tuple[int, int] | None
    multiprocessors: int | None
    memory_bytes: int | None
    memory_free_bytes: int | None
    #: Everything that is known, named as in `tracesmith devices --format json`.
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One thing that recording needs."""

    name: str
    what: str
    #: `ok`, `warning` or `no`.
    state: str
    found: str
    #: What to do, if it is not ok.
    remedy: str | None


@dataclass(frozen=True)
class Doctor:
    """Whether GPU work can be recorded here, and what is in the way."""

    can_record: bool
    #: The most memory that recording uses in a program.
    target_memory_bytes: int
    checks: tuple[Check, ...]

    @property
    def problems(self) -> tuple[Check, ...]:
        """The checks that are not ok."""
        return tuple(check for check in self.checks if check.state != "ok")

    def __str__(self) -> str:
        return "\n".join(
            f"{check.state:<7} {check.what}: {check.found}"
            + (f"\n        {check.remedy}" if check.remedy else "")
            for check in self.checks
        )


def devices() -> list[Device]:
    """The GPUs of this machine; none where there is no NVIDIA driver. The driver is not initialized in this process.

    >>> import tracesmith as ts
    >>> [device.name for device in ts.devices() if device.cuda_ordinals]    # doctest: +SKIP
    ['NVIDIA H200']
    """
    answer = _command.query(["devices"], error=NotAvailableError)
    return [_device(row) for row in answer["devices"]]


def _device(row: Mapping[str, Any]) -> Device:
    capability = row.get("capability")
    return Device(
        index=row["index"],
        cuda_ordinals=tuple(row["cuda_ordinals"] or ()),
        name=row["name"],
        uuid=row.get("uuid"),
        architecture=row.get("architecture"),
        capability=None if capability is None else (capability[0], capability[1]),
        multiprocessors=row.get("multiprocessors"),
        memory_bytes=row.get("memory_bytes"),
        memory_free_bytes=row.get("memory_free_bytes"),
        facts=dict(row),
    )


def doctor() -> Doctor:
    """Checks what recording needs: driver, GPUs, CUPTI, other tools, the system.

    >>> import tracesmith as ts
    >>> for check in ts.doctor().problems:
    ...     advice = f"{check.what}: {check.found}; {check.remedy}"
    """
    answer = _command.query(["doctor"], error=NotAvailableError)
    checks = tuple(
        Check(check["name"], check["what"], check["state"], check["found"], check["remedy"])
        for check in answer["checks"]
    )
    return Doctor(answer["can_record"], answer["target_memory_bytes"], checks)
