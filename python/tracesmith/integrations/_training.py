"""What the integrations of training loops share: one recording per process, of a few steps."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal

from tracesmith._errors import TracesmithError
from tracesmith._options import Path
from tracesmith._profile import profile
from tracesmith._schedule import Schedule, schedule

__all__ = ["Ranks", "Training", "rank_here"]

Ranks = Literal["zero", "all"]

#: What is recorded unless a schedule says otherwise: a loop has settled by then.
_DEFAULT = {"skip_first": 10, "warmup": 1, "active": 5, "repeat": 1}

#: Variables in which launchers give the number of a process: torchrun, Slurm, Open MPI.
_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")


class Training:
    """A recording of a training loop. It never ends the training: what fails is a warning."""

    def __init__(
        self,
        path: Path,
        *,
        plan: Schedule | None,
        ranks: Ranks,
        on_trace_ready: Callable[[profile], object] | None,
        options: dict[str, Any],
    ) -> None:
        if ranks not in ("zero", "all"):
            raise ValueError(f"ranks is 'zero' or 'all', not {ranks!r}")
        self._path = os.fspath(path)
        self._plan = plan if plan is not None else schedule(**_DEFAULT)
        self._ranks = ranks
        self._on_trace_ready = on_trace_ready
        self._options = options
        self._is_running = False
        #: Runs of this process that have a file. A second one must not replace the first.
        self._runs = 0
        self.profile: profile | None = None

    def start(self, rank: int) -> None:
        """Starts, if the process of this rank is to be recorded."""
        if self._is_running or (self._ranks == "zero" and rank != 0):
            return
        stem, ending = os.path.splitext(self._path)
        if self._ranks == "all":
            stem += f"-rank{rank}"
        if self._runs:
            stem += f"-run{self._runs + 1}"
        self.profile = profile(
            stem + ending, schedule=self._plan, on_trace_ready=self._on_trace_ready, **self._options
        )
        if self._try(self.profile.start):
            self._is_running = True
            self._runs += 1

    def step(self) -> None:
        """A step has ended."""
        if self._is_running and self.profile is not None and not self._try(self.profile.step):
            self._is_running = False

    def stop(self) -> None:
        """Ends the recording. Its trace may take a little longer."""
        if not self._is_running or self.profile is None:
            return
        self._is_running = False
        if self._try(self.profile.stop) and self.profile.cycle == 0 and not self.profile.is_nested:
            _warn(
                f"no step was recorded: training ended in step {self.profile.step_num}, before the schedule's first one"
            )

    def _try(self, action: Callable[[], object]) -> bool:
        try:
            action()
        except TracesmithError as error:
            _warn(f"the training is not recorded: {error}")
            return False
        return True


def rank_here(default: int = 0) -> int:
    """The rank of this process in its job."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    for name in _RANK_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return default


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
