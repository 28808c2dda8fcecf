"""Exceptions. Their messages are the sentences that the command prints."""

from __future__ import annotations

__all__ = [
    "CaptureError",
    "ConflictError",
    "NotAvailableError",
    "ReplayError",
    "TraceError",
    "TracesmithError",
]


class TracesmithError(Exception):
    """What TraceSmith could not do. `hint` has the remedy, if one is known."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def message(self) -> str:
        """The sentence without the hint."""
        return super().__str__()

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class TraceError(TracesmithError):
    """A trace file cannot be read, or a result cannot be computed from it."""


class CaptureError(TracesmithError):
    """A program cannot be recorded."""


class ConflictError(CaptureError):
    """Another profiler holds the GPU's profiling interface in this process."""


class NotAvailableError(TracesmithError):
    """This machine, or this version, does not have what is needed."""


class ReplayError(TracesmithError):
    """A recording cannot be replayed."""
