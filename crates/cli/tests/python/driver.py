"""The driver as Python sees it: launches through ctypes, without the global lock and with it."""

import ctypes
import sys

PTX = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry noop()\n{\nret;\n}\n\0"

released = ctypes.CDLL("libcuda.so.1")
held = ctypes.PyDLL("libcuda.so.1")
function = ctypes.c_void_p()

# Called without a frame in between: who calls one of these is the innermost frame of Python.
launch = released.cuLaunchKernel
launch_held = held.cuLaunchKernel
for call in (launch, launch_held):
    call.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3


def check(result):
    if result:
        sys.exit("failed %d" % result)


def start():
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    check(released.cuInit(0))
    check(released.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(released.cuCtxSetCurrent(context))
    check(released.cuModuleLoadData(ctypes.byref(module), PTX))
    check(released.cuModuleGetFunction(ctypes.byref(function), module, b"noop"))
    return context


def blocks(count):
    """The arguments of a launch with so many blocks, which is how the test knows it again."""
    return (function, count, 1, 1, 32, 1, 1, 0, None, None, None)
