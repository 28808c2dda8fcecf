"""A stand-in for the Trainer of Hugging Face: it calls each event of each callback by its name."""

from types import SimpleNamespace

import gpu


class Trainer:
    def __init__(self, callback, rank=0, steps=20, substeps=2):
        self.callback = callback
        self.args = SimpleNamespace(process_index=rank)
        self.state = SimpleNamespace(global_step=0, max_steps=steps)
        self.control = SimpleNamespace()
        self.substeps = substeps
        self.call("on_init_end")

    def call(self, event, **more):
        getattr(self.callback, event)(self.args, self.state, self.control, model=None, **more)

    def train(self):
        self.call("on_train_begin")
        self.call("on_epoch_begin")
        for _ in range(self.state.max_steps):
            self.call("on_step_begin")
            for _ in range(self.substeps):
                gpu.launches(5)
                self.call("on_substep_end")
            self.call("on_pre_optimizer_step")
            gpu.launches(1)
            self.call("on_optimizer_step")
            self.state.global_step += 1
            self.call("on_step_end")
            self.call("on_an_event_of_a_later_version", logs={})
        self.call("on_epoch_end")
        self.call("on_train_end")
