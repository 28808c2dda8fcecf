"""A callback for the `Trainer` of Hugging Face.

```text
trainer = Trainer(..., callbacks=[TracesmithCallback("train.sbt")])
```

The Trainer needs no base class: it calls the methods of a callback by their names. So this module does not import
`transformers`, and works with all its versions and with loops that were made after its example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracesmith._options import Path
from tracesmith._profile import profile
from tracesmith._ranges import Range
from tracesmith._schedule import Schedule
from tracesmith.integrations._training import Ranks, Training

__all__ = ["TracesmithCallback"]


class TracesmithCallback:
    """Records a few steps of a training. A step is what the Trainer counts: up to the optimizer's, with its data.

    Steps 11 to 16 are prepared and recorded unless `schedule` says otherwise: five of them are in the trace, each as a
    range `step`. With `ranks="all"` each process writes a file, `train-rank3.sbt`. Other options are those of
    `tracesmith.profile`. A recording that fails is a warning, and the training goes on.

    >>> from tracesmith.integrations.transformers import TracesmithCallback
    >>> callback = TracesmithCallback("train.sbt", stacks="python", overwrite=True)
    """

    def __init__(
        self,
        path: Path = "train.sbt",
        *,
        schedule: Schedule | None = None,
        ranks: Ranks = "zero",
        on_trace_ready: Callable[[profile], object] | None = None,
        **options: Any,
    ) -> None:
        self._training = Training(
            path, plan=schedule, ranks=ranks, on_trace_ready=on_trace_ready, options=options
        )
        self._optimizer = Range("optimizer", None, None)
        self._is_in_optimizer = False

    @property
    def profile(self) -> profile | None:
        """The recording of this process, with `trace` and `report`; `None` before the training or on other ranks."""
        return self._training.profile

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The recording begins with step 0, and waits for its first active step."""
        self._training.start(int(getattr(args, "process_index", 0)))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The optimizer is a range of its own."""
        self._optimizer.__enter__()
        self._is_in_optimizer = True

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The optimizer has done its step."""
        # Older versions do not announce it.
        if self._is_in_optimizer:
            self._is_in_optimizer = False
            self._optimizer.__exit__(None, None, None)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The next step begins here, so that its data belong to it."""
        self._training.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The window closes."""
        self._training.stop()

    def __getattr__(self, name: str) -> Callable[..., None]:
        # All other events, also those of later versions.
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None
