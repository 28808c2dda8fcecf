"""A stand-in for PyTorch: modules with global hooks, and operators that NVTX names. What it does is what PyTorch 2 does."""

import gpu

from torch import autograd, nn

__all__ = ["autograd", "nn"]

__version__ = "0.0"


class compiler:
    compiling = False

    @classmethod
    def is_compiling(cls):
        return cls.compiling


def empty(size):
    with autograd.profiler.operator("aten::empty"):
        return [0.0] * size


def linear(x):
    with autograd.profiler.operator("aten::linear"):
        gpu.launches(1)
    return x
