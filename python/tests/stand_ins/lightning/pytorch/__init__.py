import enum

import gpu


class TrainerFn(str, enum.Enum):
    FITTING = "fit"
    VALIDATING = "validate"


class Trainer:
    def __init__(self, profiler):
        self.profiler = profiler

    def fit(self, batches):
        self._run(
            TrainerFn.FITTING, batches, "run_training_batch", "[Strategy]SingleDeviceStrategy.training_step"
        )

    def validate(self, batches):
        self._run(
            TrainerFn.VALIDATING, batches, "run_evaluation", "[Strategy]SingleDeviceStrategy.validation_step"
        )

    def _run(self, stage, batches, outer, inner):
        self.profiler.setup(stage=stage, local_rank=0, log_dir=None)
        for batch in range(batches):
            with self.profiler.profile(outer), self.profiler.profile(inner):
                gpu.launches(10)
        self.profiler.describe()
        self.profiler.teardown(stage=stage)
