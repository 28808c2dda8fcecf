"""Runs one recorded kernel launch and compares the resulting memory.

    python3 reproduce.py [FOLDER]

Needs only the CUDA driver and Python. Exit codes: 0 same, 1 differs, 2 failed.
"""

import ctypes
import os
import sys

ADDR_NO_RANDOMIZE = 0x0040000


def fail(why):
    print(f"failed: {why}", file=sys.stderr)
    sys.exit(2)


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("padding", ctypes.c_uint), ("value", ctypes.c_ubyte * 64)]


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint),
    ]


class Properties(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint),
        ("handle_types", ctypes.c_uint),
        ("location_type", ctypes.c_uint),
        ("location", ctypes.c_int),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):
    _fields_ = [("location_type", ctypes.c_uint), ("location", ctypes.c_int), ("flags", ctypes.c_uint)]


def reexec_without_aslr():
    """Restarts this program without address randomization, so that the recorded addresses are free."""
    libc = ctypes.CDLL(None)
    persona = libc.personality(ctypes.c_ulong(0xFFFFFFFF))
    if persona == -1 or persona & ADDR_NO_RANDOMIZE:
        return
    if libc.personality(ctypes.c_ulong(persona | ADDR_NO_RANDOMIZE)) != -1:
        os.execv(sys.executable, [sys.executable, *sys.argv])


def contents(folder, name):
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()
    except OSError as error:
        fail(error)


def read_launch(folder):
    launch = {"sets": [], "attributes": [], "reserve": [], "map": [], "memory": []}
    for line in contents(folder, "launch.txt").decode().splitlines():
        key, *words = line.split()
        if key == "kernel":
            launch[key] = words[0]
        elif key in ("grid", "block"):
            launch[key] = [int(word) for word in words]
        elif key == "shared":
            launch[key] = int(words[0])
        elif key == "set":
            launch["sets"].append([int(word) for word in words])
        elif key == "attribute":
            value = (ctypes.c_ubyte * 64)(*bytes.fromhex(words[1]))
            launch["attributes"].append(Attribute(int(words[0]), 0, value))
        elif key in ("reserve", "map"):
            launch[key].append((int(words[0], 16), int(words[1]), words[2:] == ["host"]))
        elif key in ("buffer", "variable"):
            address = int(words[0], 16) if key == "buffer" else words[0]
            launch["memory"].append((address, int(words[1]), words[2], words[3]))
    return launch


class Driver:
    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            fail(error)

    def call(self, what, name, *arguments):
        function = getattr(self.library, name, None)
        if function is None:
            fail(f"the driver has no {name}")
        status = function(*arguments)
        if status != 0:
            words = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(words))
            fail(f"{what}: {status} ({(words.value or b'').decode()})")


u64, size = ctypes.c_uint64, ctypes.c_size_t


def map_memory(driver, launch, device):
    for address, length, _ in launch["reserve"]:
        got = u64()
        driver.call(
            "reserving addresses", "cuMemAddressReserve", ctypes.byref(got), size(length), size(0), u64(address), u64(0)
        )
        if got.value != address:
            fail(f"the addresses from {address:#x} on are in use in this process")
    for address, length, host in launch["map"]:
        # Pinned memory on the device or on the first NUMA node of the host.
        properties = Properties(kind=1, location_type=3 if host else 1, location=0 if host else device)
        physical = u64()
        driver.call(
            "allocating memory", "cuMemCreate", ctypes.byref(physical), size(length), ctypes.byref(properties), u64(0)
        )
        driver.call("mapping memory", "cuMemMap", u64(address), size(length), size(0), physical, u64(0))
        access = (Access * 2)(Access(1, device, 3), Access(3, 0, 3))
        driver.call("setting access to memory", "cuMemSetAccess", u64(address), size(length), access, size(2 if host else 1))


def start(driver, launch, kernel, parameters):
    block = ctypes.create_string_buffer(parameters, max(len(parameters), 1))
    length = size(len(parameters))
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(block), 2, ctypes.addressof(length), None)
    given = extra if parameters else None
    for attribute, value in launch["sets"]:
        driver.library.cuFuncSetAttribute(kernel, ctypes.c_int(attribute), ctypes.c_int(value))
    sizes = [ctypes.c_uint(number) for number in (*launch["grid"], *launch["block"], launch["shared"])]
    if not launch["attributes"]:
        driver.call("launching", "cuLaunchKernel", kernel, *sizes, None, None, given)
        return
    attributes = (Attribute * len(launch["attributes"]))(*launch["attributes"])
    config = Config(
        (ctypes.c_uint * 3)(*launch["grid"]),
        (ctypes.c_uint * 3)(*launch["block"]),
        launch["shared"],
        None,
        attributes,
        len(attributes),
    )
    driver.call("launching", "cuLaunchKernelEx", ctypes.byref(config), kernel, None, given)


def compare(driver, folder, memory):
    differing = total = compared = 0
    for address, length, _, after in memory:
        if after == "-":
            continue
        compared += 1
        expected = contents(folder, after)
        found = ctypes.create_string_buffer(length)
        driver.call("reading memory", "cuMemcpyDtoH_v2", found, u64(address), size(length))
        total += length
        if found.raw == expected:
            continue
        differing += 1
        places = [at for at, (one, other) in enumerate(zip(expected, found.raw)) if one != other]
        first = places[0]
        print(
            f"{address:#x}: {len(places)} of {length} bytes differ, first at offset {first}: "
            f"expected {expected[first]:02x}, found {found.raw[first]:02x}"
        )
    if differing:
        print(f"differs in {differing} of {compared} buffers")
        return 1
    if compared < len(memory):
        print(f"ran: the expected results of {len(memory) - compared} of {len(memory)} buffers are unknown")
        return 0
    print(f"same ({compared} buffers, {total} bytes)")
    return 0


def main():
    reexec_without_aslr()
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    launch = read_launch(folder)
    driver = Driver()
    device, context, module, kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("initializing CUDA", "cuInit", ctypes.c_uint(0))
    driver.call("finding a device", "cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
    driver.call("creating a context", "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver.call("setting the context", "cuCtxSetCurrent", context)
    map_memory(driver, launch, device.value)
    code = ctypes.create_string_buffer(contents(folder, "kernel.cubin"))
    driver.call("loading the module", "cuModuleLoadData", ctypes.byref(module), code)
    name = launch["kernel"].encode()
    driver.call("finding the kernel", "cuModuleGetFunction", ctypes.byref(kernel), module, name)
    memory = []
    for address, length, before, after in launch["memory"]:
        if isinstance(address, str):
            found, bytes_of = u64(), size()
            driver.call(
                "finding a module global",
                "cuModuleGetGlobal_v2",
                ctypes.byref(found),
                ctypes.byref(bytes_of),
                module,
                address.encode(),
            )
            address = found.value
        driver.call("writing memory", "cuMemcpyHtoD_v2", u64(address), contents(folder, before), size(length))
        memory.append((address, length, before, after))
    start(driver, launch, kernel, contents(folder, "parameters.bin"))
    driver.call("running the kernel", "cuCtxSynchronize")
    return compare(driver, folder, memory)


if __name__ == "__main__":
    sys.exit(main())
