"""Which GPUs can be recorded here."""

from __future__ import annotations

import enum

from tracesmith._machine import devices

__all__ = [
    "PlatformType",
    "detect_platform",
    "get_cuda_device_count",
    "get_maca_device_count",
    "get_metal_device_count",
    "get_rocm_device_count",
    "is_cuda_available",
    "is_maca_available",
    "is_metal_available",
    "is_rocm_available",
    "platform_type_to_string",
]


class PlatformType(enum.Enum):
    """Who makes the GPU.

    Programs are recorded on CUDA. Recordings of the others' own profilers can be opened: `tracesmith.open` reads
    files of rocprofv3, Instruments and mcTracer.
    """

    Unknown = 0
    CUDA = 1
    ROCm = 2
    Metal = 3
    MACA = 4


def platform_type_to_string(platform: PlatformType) -> str:
    """The name of a platform.

    >>> platform_type_to_string(PlatformType.CUDA)
    'CUDA'
    """
    return platform.name


def detect_platform() -> PlatformType:
    """`CUDA` if a program can use an NVIDIA GPU here, else `Unknown`.

    Another process looks, so CUDA is not initialized in this one: it can still fork workers.
    """
    return PlatformType.CUDA if get_cuda_device_count() > 0 else PlatformType.Unknown


def is_cuda_available() -> bool:
    """Whether a program can use an NVIDIA GPU here."""
    return get_cuda_device_count() > 0


def get_cuda_device_count() -> int:
    """The number of GPUs that a CUDA program in this environment sees. `CUDA_VISIBLE_DEVICES` counts."""
    return sum(len(device.cuda_ordinals) for device in devices())


def is_rocm_available() -> bool:
    """`False`: ROCm programs are recorded with rocprofv3, and `tracesmith.open` reads its files."""
    return False


def get_rocm_device_count() -> int:
    """0, see `is_rocm_available`."""
    return 0


def is_metal_available() -> bool:
    """`False`: Metal programs are recorded with Instruments, see `tracesmith.xctrace`."""
    return False


def get_metal_device_count() -> int:
    """0, see `is_metal_available`."""
    return 0


def is_maca_available() -> bool:
    """`False`: MACA programs are recorded with mcTracer (`tracesmith profile --mctracer`)."""
    return False


def get_maca_device_count() -> int:
    """0, see `is_maca_available`."""
    return 0
