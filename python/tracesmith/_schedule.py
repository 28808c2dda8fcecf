"""When to record, step by step: the schedule of torch.profiler."""

from __future__ import annotations

import enum
from collections.abc import Callable

__all__ = ["Action", "Schedule", "action_of", "schedule"]


class Action(enum.Enum):
    """What happens in a step."""

    #: Nothing is recorded.
    NONE = 0
    #: Recording is prepared.
    WARMUP = 1
    #: The step is recorded.
    RECORD = 2
    #: The step is recorded, and is the last one of its cycle.
    RECORD_AND_SAVE = 3


#: Any function of a step's number. Those that `torch.profiler.schedule` returns fit, too.
Schedule = Callable[[int], object]


def schedule(
    *, wait: int = 0, warmup: int = 0, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], Action]:
    """A schedule: skip `wait` steps, prepare for `warmup` steps, record `active` steps, and so on.

    `repeat` is the number of such cycles; with 0 they go on until the end. `skip_first` steps come before all of them.
    The words mean what they mean in `torch.profiler.schedule`.

    >>> plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(6)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE', 'NONE']
    """
    for name, value, least in (
        ("wait", wait, 0),
        ("warmup", warmup, 0),
        ("active", active, 1),
        ("repeat", repeat, 0),
        ("skip_first", skip_first, 0),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    length = wait + warmup + active

    def plan(step: int) -> Action:
        if step < skip_first:
            return Action.NONE
        cycle, place = divmod(step - skip_first, length)
        if repeat > 0 and cycle >= repeat:
            return Action.NONE
        if place < wait:
            return Action.NONE
        if place < wait + warmup:
            return Action.WARMUP
        return Action.RECORD_AND_SAVE if place == length - 1 else Action.RECORD

    return plan


def action_of(plan: Schedule, step: int) -> Action:
    """What a schedule, of ours or of torch's, wants for a step."""
    wanted = plan(step)
    name = getattr(wanted, "name", None)
    if name not in Action.__members__:
        raise TypeError(f"the schedule returned {wanted!r} for step {step}, which is no action")
    return Action[str(name)]
