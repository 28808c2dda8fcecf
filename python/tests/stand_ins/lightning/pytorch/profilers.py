from abc import ABC, abstractmethod
from contextlib import contextmanager


class Profiler(ABC):
    def __init__(self, dirpath=None, filename=None):
        self.dirpath, self.filename = dirpath, filename

    @abstractmethod
    def start(self, action_name): ...

    @abstractmethod
    def stop(self, action_name): ...

    def summary(self):
        return ""

    @contextmanager
    def profile(self, action_name):
        self.start(action_name)
        try:
            yield action_name
        finally:
            self.stop(action_name)

    def describe(self):
        print(self.summary())

    def setup(self, stage, local_rank=None, log_dir=None):
        self._stage = stage

    def teardown(self, stage):
        self._stage = None
