"""Launches through 50 known paths and prints, for each, what Python says of its own frames, the innermost first.

`note` stands on the line of its launch, so that the line that it sees is the launch's.
"""

import asyncio
import ctypes
import functools
import json
import sys
import threading

from driver import blocks, check, launch, launch_held, released, start

expected = {}


def note():
    """The arguments of the next launch; its frames are those of whoever asks."""
    frames, frame = [], sys._getframe(1)
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        frames.append([name, code.co_filename.rsplit("/", 1)[-1], frame.f_lineno])
        frame = frame.f_back
    expected[len(expected) + 1] = frames
    return blocks(len(expected))


def recurse(depth):
    if depth == 0:
        check(launch(*note()))
    else:
        recurse(depth - 1)


def counted(depth):
    if depth == 0:
        check(launch(*note()))
        yield depth
    else:
        yield from counted(depth - 1)


async def awaited(depth):
    if depth == 0:
        check(launch(*note()))
        await asyncio.sleep(0)
        check(launch(*note()))
    else:
        await awaited(depth - 1)


class Model:
    def __init__(self, scale):
        self.scale = scale

    def forward(self):
        def inner():
            check(launch(*note()))

        inner()

    @classmethod
    def build(cls):
        model = cls(2)
        check(launch(*note()))
        return model

    @property
    def size(self):
        return check(launch(*note()))

    def __add__(self, other):
        check(launch(*note()))
        return self

    def __iter__(self):
        check(launch(*note()))
        return iter(())


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(one, two):
    if len(expected) < 40:
        check(launch(*note()))
    return one[0] - two[0]


def through_c(depth):
    """Python, then C, then Python again: some times."""
    sorter = ctypes.CDLL(None).qsort
    numbers = (ctypes.c_int * 2)(2, 1)
    if depth == 0:
        sorter(numbers, ctypes.c_size_t(2), ctypes.c_size_t(4), compare)
        return 0
    return sorted([depth], key=lambda _: through_c(depth - 1))[0]


def in_thread(context, work):
    def run():
        check(released.cuCtxSetCurrent(context))
        work()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def main():
    context = start()
    for depth in range(8):
        recurse(depth)
    for depth in range(5):
        list(counted(depth))
    for depth in range(3):
        asyncio.run(awaited(depth))
    model = Model.build()
    model.forward()
    model.size
    model + model
    list(model)
    [check(launch(*note())) for _ in range(1)]
    (lambda: check(launch(*note())))()
    functools.reduce(lambda _, __: check(launch(*note())), [1, 2, 3])
    for depth in range(4):
        through_c(depth)
    for depth in range(3):
        in_thread(context, lambda: recurse(depth))
    in_thread(context, lambda: list(counted(2)))
    exec(compile("def made():\n\n\n    check(launch(*note()))\nmade()", "<made>", "exec"), globals())
    while len(expected) < 50:
        check(launch_held(*note()))
    # A thread that Python knows nothing of, with no function of Python on its stack.
    thread, pthread = ctypes.c_ulong(), ctypes.CDLL(None)
    pthread.pthread_create(ctypes.byref(thread), None, released.cuStreamSynchronize, None)
    pthread.pthread_join(thread, None)
    check(released.cuCtxSynchronize())
    print(json.dumps(expected))


main()
