import contextlib
import os

from tracesmith._native import Range

numbers = iter(range(10**9))
is_enabled = False
#: What NVTX found at its first use. It does not look again.
tool = None


@contextlib.contextmanager
def operator(name):
    global tool
    if not is_enabled:
        yield
        return
    if tool is None:
        tool = os.environ.get("NVTX_INJECTION64_PATH", "")
    with Range(f"{name}, op_id = {next(numbers)}") if tool else contextlib.nullcontext():
        yield


class emit_nvtx:
    def __enter__(self):
        global is_enabled
        if is_enabled:
            raise RuntimeError("Profiler is already enabled on this thread\nat a place")
        is_enabled = True
        return self

    def __exit__(self, *_error):
        global is_enabled
        is_enabled = False
