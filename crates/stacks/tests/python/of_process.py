"""Cases of what a process can do around Python code."""

import asyncio
import atexit
import ctypes
import os
import sys
import tempfile
import threading

from probe import ROOM, buffer, check, check_mixed, held, in_threads, parse, released, taken


def case_mixed():
    """Every way from Python into C and back."""

    def inner(depth):
        return check_mixed() if depth == 0 else inner(depth - 1)

    class Thing:
        def __init__(self):
            check_mixed()

        def __getattr__(self, name):
            check_mixed()

        def __del__(self):
            check_mixed()

        def __lt__(self, other):
            check_mixed()
            return True

    def generator():
        check_mixed()
        yield 1
        check_mixed()

    async def coroutine():
        check_mixed()
        await asyncio.sleep(0)
        check_mixed()

    inner(20)
    [check_mixed() for _ in range(2)]
    list(map(check_mixed, [1]))
    Thing().nothing
    sorted([Thing(), Thing()])
    list(generator())
    for _ in generator():
        check_mixed()
    asyncio.run(coroutine())
    in_threads([check_mixed] * 3)
    exec("class A:\n  check()\n", {"check": check_mixed})
    # A library that stands between two runs of the eval loop stays between them.
    frames = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: frames.extend(check_mixed()))
    released.probe_call(callback, None)
    names = [frame[0] if isinstance(frame, tuple) else frame for frame in frames]
    inside = next(at for at, name in enumerate(names) if name.endswith("<lambda>"))
    outside = next(at for at, name in enumerate(names) if name == "case_mixed")
    assert any("libprobe" in name for name in names[inside:outside]), names


def case_threads():
    """Threads of Python, each with its own frames."""

    def again(left):
        return check() if left == 0 else again(left - 1)

    in_threads([lambda depth=depth: [again(depth) for _ in range(20)] for depth in range(8)])


def case_churn():
    """Threads that make and drop code while stacks are taken."""

    def work(number):
        for at in range(150):
            text = "\n" * (at % 7) + "def f{0}_{1}():\n    check()\nf{0}_{1}()".format(number, at)
            exec(compile(text, "<made %d>" % at, "exec"), {"check": check})

    in_threads([lambda number=number: work(number) for number in range(6)])


def case_moved():
    """Generators that go on in another thread, also by an exception. Without the global lock, each thread runs its own
    copy of the code."""

    def generator(depth):
        try:
            if depth:
                yield from generator(depth - 1)
            while True:
                check()
                yield check()
        except ValueError:
            check()
        yield check()

    for way in (next, lambda moved: moved.send(1), lambda moved: moved.throw(ValueError)):
        moved = generator(2)
        next(moved)
        in_threads([lambda: way(moved)])
        in_threads([lambda: next(moved)])
        next(moved)


def case_copies():
    """More and more threads in the same code, in which others take stacks at the same time. Without the global lock, the
    list of the code's copies grows and is freed while it is read."""
    for _ in range(10):
        scope = {"check": check, "steps": range(2)}
        names = ["f%d" % at for at in range(60)]
        for name, inner in zip(names, names[1:] + ["check"]):
            exec("def %s():\n\n    %s()\n" % (name, inner), scope)
        exec("def work():\n    for at in steps:\n        f0()\n", scope)
        in_threads([scope["work"]] * 24)


def case_identity():
    """Code that comes to the address of code that has gone is told from it, and the same code is the same."""
    identity = (ctypes.c_uint64 * 3)()
    names = {"probe": held.probe_identity, "identity": identity}
    seen, addresses, reused = {}, set(), 0
    for at in range(4000):
        file = "<made for key> %d" % at
        exec(compile("def f():\n    probe(identity)\nf()", file, "exec"), dict(names))
        key = tuple(identity)
        assert key not in seen, (file, seen[key])
        seen[key] = file
        reused += key[0] in addresses
        addresses.add(key[0])
    assert reused > 100, "hardly an address came again: nothing was tested"

    def same():
        held.probe_identity(identity)
        return tuple(identity)

    assert len({same() for _ in range(100)}) == 1


def case_fork():
    check()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            check()
            check_mixed()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    check()


def case_other_threads():
    """Threads that Python does not know have no frames, and get some when they call into Python."""
    called = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: (check(), called.append(1)))
    length = released.probe_thread(ctypes.cast(callback, ctypes.c_void_p), buffer(), ROOM)
    assert (taken(buffer(), length), called) == ("Root", [1])


IN_ANOTHER = """
import ctypes
library = ctypes.PyDLL({library!r})
room = ctypes.create_string_buffer(1 << 20)
def inside():
    length = library.probe_python(ctypes.c_size_t(1000), room, ctypes.c_size_t(1 << 20))
    with open({answer!r}, "w") as file:
        file.write(room.raw[:length].decode())
inside()
"""


def case_interpreters():
    """The frames of a sub-interpreter are its own; before 3.12, where that cannot be known, there are none."""
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    check()
    version = sys.version_info[:2]
    # An isolated one cannot load ctypes in 3.12.
    interpreter = interpreters.create(isolated=False) if version == (3, 12) else interpreters.create()
    with tempfile.TemporaryDirectory() as folder:
        answer = os.path.join(folder, "answer")
        interpreters.run_string(interpreter, IN_ANOTHER.format(library=sys.argv[1], answer=answer))
        with open(answer) as file:
            frames, end = parse(file.read())
    names = [frame[0] for frame in frames]
    assert (names, end) == (([], "Off") if version < (3, 12) else (["inside", "<module>"], "Root")), (names, end)
    interpreters.destroy(interpreter)
    check()


def case_exit():
    """Frames are not looked for while the interpreter shuts down, and threads that it leaves behind do no harm."""

    def work():
        room = ctypes.create_string_buffer(1 << 20)
        while True:
            released.probe_python(100, room, len(room))

    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    room = buffer()

    class Last:
        def __del__(self, take=released.probe_python, room=room, size=ROOM):
            take(100, room, size)

    sys.last = Last()
    atexit.register(check)


def case_unknown():
    """Prints what the probe says instead of frames."""
    print(taken(buffer(), released.probe_python(10, buffer(), ROOM)))


def case_bench():
    """Prints the median and the best time of a walk in nanoseconds, and its frames."""
    depth = ctypes.c_uint64()

    def deep(left):
        if left:
            return deep(left - 1)
        times = sorted(released.probe_time(1000, ctypes.byref(depth)) for _ in range(501))
        print("%.1f %.1f %d" % (times[len(times) // 2], times[0], depth.value))

    deep(10)
