"""Takes stacks by the probe, whose library is the first argument, and compares them with what Python says."""

import ctypes
import os
import sys
import threading

PART, FRAME = "\x1f", "\x1e"
ROOM = 8 << 20
released = ctypes.CDLL(sys.argv[1])  # without the global lock
held = ctypes.PyDLL(sys.argv[1])  # with it
for library in (released, held):
    for name, number in (("probe_python", ctypes.c_size_t), ("probe_mixed", ctypes.c_uint32), ("probe_thread", ctypes.c_void_p)):
        getattr(library, name).restype = ctypes.c_ssize_t
        getattr(library, name).argtypes = [number, ctypes.c_char_p, ctypes.c_size_t]
    library.probe_time.restype = ctypes.c_double
    library.probe_time.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
local = threading.local()
compared = [0]


def buffer():
    """This thread's room for an answer."""
    if not hasattr(local, "buffer"):
        local.buffer = ctypes.create_string_buffer(ROOM)
    return local.buffer


def taken(room, length):
    assert length >= 0, "the buffer is too small"
    return ctypes.string_at(room, length).decode()


def parse(text):
    """The frames of an answer, and how the walk ended."""
    *frames, end = text.split(FRAME)
    return [tuple(int(part) if at > 1 else part for at, part in enumerate(frame.split(PART))) for frame in frames], end


def python_says(frame):
    found = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        found.append((clean(name), clean(code.co_filename), frame.f_lineno or 0, code.co_firstlineno))
        frame = frame.f_back
    return found


def clean(text):
    """What is no character is told as one that says so."""
    return "".join("\ufffd" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in text)


def check(*_):
    """Takes the stack without the lock and with it. The call and the look at it are one line, for the line's sake."""
    room = buffer()
    for library in (released, held):
        length, expected = library.probe_python(1 << 20, room, ROOM), python_says(sys._getframe())
        frames, end = parse(taken(room, length))
        for ours, theirs in zip(frames, expected):
            assert ours == theirs, (ours, theirs)
        assert (len(frames), end) == (len(expected), "Root")
    compared[0] += 1


def check_mixed(*_):
    """A mixed stack has the Python frames in their order, and of native frames within them only other libraries'."""
    expected = [(name, file, first) for name, file, _, first in python_says(sys._getframe())]
    for library in (released, held):
        frames, end = mixed(0, library)
        assert end == "Joined Root", (end, frames)
        python = [(frame[0], frame[1], int(frame[3])) for frame in frames if isinstance(frame, tuple)]
        assert python[1:] == expected, (python, expected)
        last = len(frames) - 1 - next(at for at, frame in enumerate(reversed(frames)) if isinstance(frame, tuple))
        own = interpreter_file()
        assert own not in frames[:last], (own, frames)
        assert own in frames[last:], (own, frames)
        with_own, _ = mixed(1, library)
        # The line within this function is another one.
        same = [frame for frame in with_own if frame != own][last + 1 :]
        assert same == [frame for frame in frames if frame != own][last + 1 :], (same, frames)
        assert own in with_own[:last], with_own
        first = next(at for at, frame in enumerate(frames) if isinstance(frame, tuple))
        assert any("libprobe" in frame for frame in frames[:first]), frames
    compared[0] += 1
    return frames


def mixed(kept, library):
    room = buffer()
    *frames, end = taken(room, library.probe_mixed(kept, room, ROOM)).split(FRAME)
    return [tuple(frame.split(PART)) if PART in frame else frame for frame in frames], end


def interpreter_file():
    """The name of the interpreter's library; the program itself has none."""
    with open("/proc/self/maps") as file:
        names = {os.path.basename(path) for path in file.read().split()}
    return next((name for name in names if name.startswith("libpython3.") and ".so." in name), "")


def in_threads(works):
    """Runs all at once, and fails if one does."""
    failed = []

    def run(work):
        try:
            work()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
