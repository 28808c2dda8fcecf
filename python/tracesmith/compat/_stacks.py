"""Call stacks, and what is not available."""

from __future__ import annotations

import sys
import traceback
import types

from tracesmith._errors import NotAvailableError

__all__ = ["BPFTracer", "SimulationProfiler", "StackCapture", "is_bpf_available", "is_protobuf_available"]


class StackCapture:
    """The Python stack of the caller. It has no native frames.

    `tracesmith.profile(stacks=True)` records native and Python frames of each launch.

    >>> def work():
    ...     return StackCapture(max_depth=1).capture()
    >>> work()[0].startswith("work (")
    True
    """

    def __init__(self, max_depth: int | None = None) -> None:
        self.max_depth = max_depth

    def capture(self) -> list[str]:
        """The frames, innermost first, as events have them: `function (file:line)`."""
        frames = traceback.walk_stack(sys._getframe(1))
        stack = [f"{_name(frame.f_code)} ({frame.f_code.co_filename}:{line})" for frame, line in frames]
        return stack[: self.max_depth]


class BPFTracer:
    """Raises: TraceSmith does not load programs into the kernel."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise NotAvailableError(
            "TraceSmith has no eBPF tracer",
            hint="tracesmith.profile records GPU work without root; tracesmith.open reads files of perf",
        )

    @staticmethod
    def is_available() -> bool:
        """`False`."""
        return False


class SimulationProfiler:
    """Raises: TraceSmith records real GPUs only."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise NotAvailableError(
            "TraceSmith does not invent events",
            hint="emit events of your own with tracesmith.TracingSession, or open one of the fixtures",
        )


def is_bpf_available() -> bool:
    """`False`: see `BPFTracer`."""
    return False


def is_protobuf_available() -> bool:
    """`True`: exports to Perfetto's own format need nothing else."""
    return True


def _name(code: types.CodeType) -> str:
    # Python 3.10 has no qualified names in code.
    return str(getattr(code, "co_qualname", code.co_name))
