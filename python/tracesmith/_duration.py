"""Durations for people."""

from __future__ import annotations

__all__ = ["readable"]


def readable(nanoseconds: float) -> str:
    """A duration with three digits and its unit.

    >>> readable(1234), readable(45_678_901), readable(12)
    ('1.23 µs', '45.7 ms', '12 ns')
    """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        # 999.6 µs would be printed as 1e+03 µs.
        if nanoseconds >= size * 0.9995:
            return f"{nanoseconds / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{nanoseconds:.0f} ns"
