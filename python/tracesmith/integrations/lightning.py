"""A profiler for the `Trainer` of Lightning.

```text
trainer = Trainer(profiler=TracesmithProfiler("train.sbt"))
```

It is a subclass of Lightning's `Profiler`, of the package `lightning` or `pytorch_lightning`. Where neither is installed,
it is one of a small class with the same methods.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tracesmith import _native
from tracesmith._errors import TracesmithError
from tracesmith._options import Path
from tracesmith._profile import profile
from tracesmith._schedule import Schedule
from tracesmith.integrations._training import Ranks, Training, rank_here

__all__ = ["TracesmithProfiler"]

#: The action whose end is the end of a step, for each of Lightning's stages.
_STEPS = {
    "fit": "run_training_batch",
    "validate": "validation_step",
    "test": "test_step",
    "predict": "predict_step",
}


class _Profiler:
    """What Lightning's `Profiler` has, as far as it is used here."""

    def __init__(self, dirpath: Any = None, filename: str | None = None) -> None:
        self.dirpath: Any = dirpath
        self.filename: str | None = filename

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """A stage begins."""

    def teardown(self, stage: str | None) -> None:
        """A stage has ended."""

    def describe(self) -> None:
        """Prints the summary."""
        print(self.summary())  # type: ignore[attr-defined]


def _base() -> type:
    for name in ("lightning.pytorch.profilers", "pytorch_lightning.profilers"):
        with contextlib.suppress(ImportError):
            found: type = import_module(name).Profiler
            return found
    return _Profiler


if TYPE_CHECKING:
    _Base = _Profiler
else:
    _Base = _base()


class TracesmithProfiler(_Base):
    """Records a few steps of `fit`, `validate`, `test` or `predict`. Lightning's actions are ranges.

    Five steps are recorded unless `schedule` says otherwise, after the first eleven. With `ranks="all"` each process
    writes a file, `train-rank3.sbt`. Other options are those of `tracesmith.profile`. At the end Lightning prints
    `summary()`, or writes it to `dirpath/filename`. A recording that fails is a warning, and the program goes on.

    >>> from tracesmith.integrations.lightning import TracesmithProfiler
    >>> profiler = TracesmithProfiler("train.sbt", modules=True, overwrite=True)
    """

    def __init__(
        self,
        path: Path = "train.sbt",
        *,
        schedule: Schedule | None = None,
        ranks: Ranks = "zero",
        on_trace_ready: Callable[[profile], object] | None = None,
        dirpath: Any = None,
        filename: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dirpath=dirpath, filename=filename)
        self._training = Training(
            path, plan=schedule, ranks=ranks, on_trace_ready=on_trace_ready, options=options
        )
        self._step_action = _STEPS["fit"]
        self._actions: dict[str, tuple[int, int]] = {}

    @property
    def recording(self) -> profile | None:
        """The recording of this process, with `trace` and `report`; `None` before it starts or on other ranks."""
        return self._training.profile

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """A stage begins, and the recording waits for its first active step."""
        super().setup(stage, local_rank, log_dir)
        self._step_action = _STEPS.get(str(getattr(stage, "value", stage)), _STEPS["fit"])
        self._training.start(rank_here(local_rank or 0))

    def teardown(self, stage: str | None) -> None:
        """A stage has ended, and with it the recording."""
        self._training.stop()
        super().teardown(stage)

    def start(self, action_name: str) -> None:
        """An action begins. Actions that are started like this need not nest."""
        self._actions[action_name] = _native.Range(action_name, None, None).start()

    def stop(self, action_name: str) -> None:
        """An action has ended."""
        numbers = self._actions.pop(action_name, None)
        if numbers is not None:
            _native.range_end(numbers)
        self._step_after(action_name)

    @contextlib.contextmanager
    def profile(self, action_name: str) -> Iterator[str]:
        """An action of Lightning: a range."""
        with _native.Range(action_name, None, None):
            yield action_name
        self._step_after(action_name)

    def summary(self) -> str:
        """What was found in the trace: utilization, idle time, steps, kernels and findings."""
        # Lightning asks before it ends the stage.
        self._training.stop()
        recording = self._training.profile
        if recording is None:
            return "tracesmith: nothing was recorded in this process"
        try:
            return f"tracesmith: {recording.path}\n\n{recording.trace.analyze()}"
        except TracesmithError as error:
            return f"tracesmith: {error}"

    def _step_after(self, action_name: str) -> None:
        # "[Strategy]SingleDeviceStrategy.validation_step", or a name without a prefix.
        if action_name == self._step_action or action_name.endswith(f".{self._step_action}"):
            self._training.step()
