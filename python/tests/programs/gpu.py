"""Work for the fake driver, through ctypes: what a framework would do."""

import ctypes
import sys

PTX = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry noop()\n{\nret;\n}\n\0"

cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
_function = ctypes.c_void_p()


def check(result):
    if result:
        sys.exit(f"CUDA failed: {result}")


def start():
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(_function), module, b"noop"))


def copies():
    """Memory that is set and copied, so that a replay has something to compare."""
    memory, host = ctypes.c_uint64(), (ctypes.c_uint32 * 256)(*range(256))
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1024)))

    def copy():
        check(cuda.cuMemcpyHtoD_v2(memory, host, ctypes.c_size_t(1024)))

    return copy


def launches(count):
    for _ in range(count):
        check(cuda.cuLaunchKernel(_function, 1, 1, 1, 32, 1, 1, 0, None, None, None))
    check(cuda.cuCtxSynchronize())
