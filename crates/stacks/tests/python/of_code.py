"""Cases of what Python code can do; each checks its own stack where it stands."""

import asyncio
import ctypes
import functools
import gc
import importlib
import os
import runpy
import signal
import sys
import tempfile
import threading
import weakref

from probe import ROOM, buffer, check, held, in_threads, parse, python_says, released, taken


def case_functions():
    def inner(depth):
        return check() if depth == 0 else inner(depth - 1)

    class Thing:
        def __init__(self, deep):
            self.deep = deep
            if deep:
                Thing(False)
            check()

        def method(self):
            inner(3)

        @classmethod
        def of_class(cls):
            check()

        @staticmethod
        def alone():
            check()

        @property
        def value(self):
            check()

        def __add__(self, other):
            check()

        def __getattr__(self, name):
            check()

        def __enter__(self):
            check()

        def __exit__(self, *_):
            check()

        def __del__(self):
            check()

    thing = Thing(True)
    thing.method()
    Thing.of_class()
    thing.alone()
    thing.value
    thing + 1
    thing.nothing
    with thing:
        (lambda: check())()
    [check() for _ in range(2)]
    {check(): 1 for _ in range(2)}
    [[check() for _ in range(2)] for _ in range(2)]
    del thing

    def decorated(function):
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @decorated
    @decorated
    def work(a, *b, c=(lambda: check())(), **d):
        check(
            a,
            b,
        )

    work(1, 2, e=3)
    try:
        raise ValueError
    except ValueError:
        check()
    finally:
        check()


def case_generators():
    def numbers(depth):
        check()
        if depth:
            yield from numbers(depth - 1)
        check()
        yield depth
        check()

    assert list(numbers(3)) == [0, 1, 2, 3]
    for _ in numbers(2):
        check()
    sum(check() or number for number in numbers(2))
    generator = numbers(0)
    next(generator)
    generator.close()

    def sent():
        while True:
            got = yield
            check()
            if got is None:
                return

    generator = sent()
    next(generator)
    generator.send(1)
    try:
        generator.send(None)
    except StopIteration:
        pass
    generator = sent()
    next(generator)
    try:
        generator.throw(ValueError())
    except ValueError:
        check()


def case_coroutines():
    async def leaf():
        check()
        await asyncio.sleep(0)
        check()

    async def branch(depth):
        check()
        if depth:
            await branch(depth - 1)
        await leaf()
        async for _ in ticks():
            check()
        async with Context():
            check()
        return [check() async for _ in ticks()]

    async def ticks():
        for tick in range(2):
            check()
            yield tick
            await asyncio.sleep(0)

    class Context:
        async def __aenter__(self):
            check()

        async def __aexit__(self, *_):
            check()

    async def main():
        await asyncio.gather(branch(2), branch(1), asyncio.get_running_loop().run_in_executor(None, check))
        await asyncio.create_task(leaf())

    asyncio.run(main())


def case_deep():
    """Ten thousand frames, and fewer than there are."""
    threading.stack_size(512 << 20)
    sys.setrecursionlimit(20_000)

    def recurse(depth):
        return check() if depth == 0 else recurse(depth - 1)

    def limited(depth):
        if depth:
            return limited(depth - 1)
        return released.probe_python(50, buffer(), ROOM), python_says(sys._getframe())

    def work():
        recurse(10_000)
        length, expected = limited(2000)
        frames, end = parse(taken(buffer(), length))
        assert (frames, end) == (expected[:50], "Limit"), end

    in_threads([work])


def case_names():
    """Names and files in any letters, and lines near and far."""
    run = lambda text, file: exec(compile(text, file, "exec"), {"check": check})
    text = "def {name}():\n\n    check()\n{name}()\n"
    files = ["<string>", "", "\u00e9t\u00e9.py", "\u6f22\u5b57/\u30c6.py", "\U0001f600.py", "a b\tc\n.py", "x" * 900, "\udc80\udcff.py"]
    names = ["f", "\u00e9t\u00e9", "\u6f22\u5b57", "\U00020000", "_" * 800]
    for file in files:
        for name in names:
            run(text.format(name=name), file)
    for gap in (1, 100, 127, 128, 129, 255, 256, 300, 5000, 70000):
        run("def f(g):\n" + "    1\n" * 3 + "\n" * gap + "    g()\nf(check)", "far.py")
    run("x = [" + ", ".join(["1 +\n\n 2"] * 400) + "]\ncheck(x[0],\n" + "0,\n" * 400 + "check())\n", "long.py")
    run("f = lambda: (\n check(\n ),\n check())\nf()", "back.py")
    eval("check()", {"check": check})
    numbers = range(3000)
    run("def f(g):\n" + "".join("    a%d = %d\n" % (at, at) for at in numbers) + "    g()\nf(check)\n", "many.py")
    # Many cells are many instructions before the first that counts.
    cells = "".join("    a%d = %d\n" % (at, at) for at in range(300))
    used = "        return (%s) and g()\n" % " ".join("a%d," % at for at in range(300))
    run("def f(g):\n" + cells + "    def h():\n" + used + "    h()\nf(check)\n", "cells.py")


def case_callbacks():
    """C that calls Python back: several runs of the eval loop."""
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(check)
    released.probe_call(callback, None)
    held.probe_call(callback, None)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: check() or 0)
    ctypes.CDLL(None).qsort((ctypes.c_int * 3)(3, 1, 2), ctypes.c_size_t(3), ctypes.c_size_t(4), compare)
    sorted([3, 1, 2], key=lambda number: check() or number)
    max([1, 2], key=lambda number: check() or number)
    list(map(check, [1, 2]))
    functools.reduce(lambda a, b: check(), [1, 2, 3])
    functools.partial(check, 1)()

    class Hashed:
        def __hash__(self):
            check()
            return 1

        def __eq__(self, other):
            check()
            return True

    assert len({Hashed(): 1, Hashed(): 2}) == 1

    class Dying:
        pass

    dying = Dying()
    reference = weakref.ref(dying, check)
    del dying
    assert reference() is None
    signal.signal(signal.SIGUSR1, check)
    os.kill(os.getpid(), signal.SIGUSR1)
    check()


def case_traced():
    """Under a debugger and a profiler, which the interpreter calls between instructions."""

    def trace(*_):
        return trace

    sys.setprofile(lambda *_: None)
    case_functions()
    sys.setprofile(None)
    sys.settrace(trace)
    case_functions()
    case_generators()
    sys.settrace(None)


def case_collected():
    """Finalizers that the collector runs wherever it is called, also while a frame is being prepared."""

    class Ring:
        def __init__(self):
            self.ring = self

        def __del__(self):
            check()

    def generator(number):
        keep = lambda: number
        yield keep

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    for number in range(200):
        Ring()
        list(generator(number))
    gc.set_threshold(*before)
    gc.collect()


def case_imports():
    """Modules that run while they are imported, and files that runpy runs."""
    with tempfile.TemporaryDirectory() as folder:
        inner = "import probe\n\nprobe.check()\nprobe.check_mixed()\n"
        for name, text in (("made_outer", "import made_inner"), ("made_inner", inner)):
            with open(os.path.join(folder, name + ".py"), "w") as file:
                file.write(text)
        sys.path.insert(0, folder)
        importlib.import_module("made_outer")
        sys.path.pop(0)
        runpy.run_path(os.path.join(folder, "made_inner.py"))
