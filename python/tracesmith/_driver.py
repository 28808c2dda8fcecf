"""Waits for the GPUs that this process uses. No framework is needed, and nothing is initialized for it."""

from __future__ import annotations

import ctypes
import os

from tracesmith._errors import CaptureError

__all__ = ["synchronize"]

#: CUDA_SUCCESS, and the states of a process that does not use CUDA (yet): not initialized, no current context.
_SUCCESS = 0
_NO_CUDA = (3, 4)


def synchronize() -> None:
    """Waits until all GPU work of this process is done: `cuCtxSynchronize` for each device in use.

    >>> synchronize()
    """
    try:
        # Only if it is loaded already.
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return
    count = ctypes.c_int()
    if _result(driver.cuDeviceGetCount(ctypes.byref(count))) in _NO_CUDA:
        return
    current = ctypes.c_void_p()
    _check(driver.cuCtxGetCurrent(ctypes.byref(current)))
    if current:
        _check(driver.cuCtxSynchronize())
    for device in range(count.value):
        _synchronize(driver, device, current)


def _synchronize(driver: ctypes.CDLL, device: int, current: ctypes.c_void_p) -> None:
    """Waits for the primary context of a device, which frameworks use, if there is one."""
    flags, is_active = ctypes.c_uint(), ctypes.c_int()
    _check(driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(is_active)))
    if not is_active:
        return
    context = ctypes.c_void_p()
    _check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    try:
        if context.value != current.value:
            _check(driver.cuCtxPushCurrent_v2(context))
            try:
                _check(driver.cuCtxSynchronize())
            finally:
                driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)


def _result(result: int) -> int:
    if result not in (_SUCCESS, *_NO_CUDA):
        raise CaptureError(f"the GPU work failed: the CUDA driver returned error {result}")
    return result


def _check(result: int) -> None:
    _result(result)
