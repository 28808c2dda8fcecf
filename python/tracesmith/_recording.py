"""A replay recording: its calls and memory, and what can be done with it.

Everything runs in the `tracesmith` command. A replay needs the recorded addresses, which this process may use itself,
and it may fail in ways that end a process.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracesmith import _command
from tracesmith._errors import NotAvailableError, ReplayError, TracesmithError
from tracesmith._verdict import Determinism, Timing, determinism_of, timings_of

if TYPE_CHECKING:
    import subprocess

    import numpy

    from tracesmith._replay import Replay

__all__ = ["Buffer", "Call", "Extracted", "Kernel", "Obstacle", "Recording"]

Path = str | os.PathLike[str]

#: The names that the command has for types, where numpy has others.
_TYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64"}

#: Where the command says how far an address is in its buffer.
_OFFSET = re.compile(r"is at offset (\d+) of the buffer at")

#: How the command's hint starts where no GPU is.
_WITHOUT_GPU = "a replay needs a GPU"


@dataclass(frozen=True)
class Call:
    """One recorded call."""

    #: Its number, which is what `ops`, `before` and verdicts mean.
    number: int
    #: `launch`, `copy`, `set`, `synchronize`, `allocate`, …
    kind: str
    #: The kernel, as the compiler named it. Empty for other calls.
    function: str
    stream: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    #: Bytes of dynamic shared memory.
    shared: int
    destination: int
    source: int
    nbytes: int
    #: How long it took on the GPU in the recorded program.
    recorded_ns: int | None


@dataclass(frozen=True)
class Buffer:
    """Memory that the calls can reach."""

    address: int
    nbytes: int
    #: `device`, `pinned`, …
    memory: str
    #: The name, if it is a global variable of a module.
    variable: str


@dataclass(frozen=True)
class Obstacle:
    """What keeps the recording from being replayed."""

    command: int | None
    function: str
    reason: str


@dataclass(frozen=True)
class Extracted:
    """A launch as programs of their own: `reproduce.cpp` and `reproduce.py` in `folder`."""

    folder: str
    kernel: str
    command: int
    buffers: int
    nbytes: int
    #: Buffers that the launch changes, and those whose content after it is not known.
    changed: int
    unknown: int


class Recording:
    """A trace that can be replayed. Nothing runs until a method is called.

    >>> import tracesmith as ts
    >>> recording = ts.Recording("fixtures/replay-h200.sbt")
    >>> [call.function for call in recording.launches]
    ['_Z5scalePfi', '_Z5totalPKfPfi']
    >>> recording.is_replayable
    True
    """

    def __init__(self, path: Path, *, device: int = 0, timeout: float = 60, relocate: bool = False) -> None:
        """Names the file, the GPU to use, and after how many seconds without progress to stop (0: never).

        With `relocate`, memory whose recorded address is taken goes elsewhere, and values that look like pointers to it
        are changed.
        """
        self.path: str = os.fspath(path)
        if not 0 <= timeout < math.inf:
            raise ValueError(f"timeout must be a number of seconds, or 0 for no limit, not {timeout}")
        # The command takes whole seconds.
        self._arguments = ["--device", str(device), "--timeout", str(math.ceil(timeout))]
        if relocate:
            self._arguments.append("--relocate")
        self._device = device

    # What is in it

    @property
    def commands(self) -> tuple[Call, ...]:
        """The recorded calls, in the order of the program."""
        return self._calls

    @property
    def launches(self) -> tuple[Call, ...]:
        """The kernel launches among the calls."""
        return tuple(call for call in self.commands if call.kind == "launch")

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The memory that the calls can reach, as it is before the first one."""
        return tuple(
            Buffer(one["address"], one["bytes"], one["memory"], one["variable"])
            for one in self._plan["buffers"]
        )

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps it from being replayed."""
        return tuple(
            Obstacle(one["command"], one["function"] or "", one["reason"]) for one in self._plan["obstacles"]
        )

    @property
    def is_replayable(self) -> bool:
        """Whether nothing in the file keeps it from being replayed."""
        return not self._plan["obstacles"]

    @property
    def needs(self) -> Mapping[str, Any]:
        """The GPU that it needs: compute capabilities, driver, and where it was recorded."""
        needs: Mapping[str, Any] = self._plan["needs"]
        return needs

    # What can be done with it

    def replay(self, **options: Any) -> Replay:
        """Runs it, with the options of [`tracesmith.replay`][tracesmith.replay]."""
        from tracesmith._replay import Replay

        return Replay._of(self, **options)

    def check_determinism(self, *, repeat: int = 2) -> Determinism:
        """Runs the window `repeat` times, and finds the first call that does not give the same memory each time.

        ```python
        found = tracesmith.Recording("step.sbt").check_determinism(repeat=5)
        if not found:
            print(found.culprit.name, found.culprit.cause)
        ```
        """
        return determinism_of(self._ask("replay", "--check", "determinism", "--repeat", str(repeat)))

    def time(self, *, repeat: int = 1) -> tuple[Timing, ...]:
        """The GPU time of each call, from the same memory each time."""
        return timings_of(self._ask("replay", "--mode", "timing", "--repeat", str(repeat)))

    def kernel(self, name: str, nth: int = 1) -> Kernel:
        """The `nth` launch, from 1, of a kernel whose name contains `name`.

        ```python
        flash = tracesmith.Recording("step.sbt").kernel("flash", 3)
        print(flash.time(repeat=200).median_ns)
        print(flash.replace("new.cubin"))
        ```
        """
        if nth < 1:
            raise ValueError(f"launches are counted from 1, not {nth}")
        return Kernel(self, name, nth)

    def buffer(
        self,
        address: int,
        *,
        before: int | Call | None = None,
        dtype: Any = "uint8",
        count: int | None = None,
    ) -> numpy.ndarray[Any, Any]:
        """The memory at an address, as it is before a call; without `before`, at the end of the window.

        It reaches from the address to the end of its buffer, or has `count` elements. `dtype` is a type of numpy, or
        `f16`, `f32`, `f64`, `i32` or `i64`. Memory that no kernel has changed comes from the file; for other memory,
        the calls run on a GPU.

        >>> import tracesmith as ts
        >>> recording = ts.Recording("fixtures/replay-h200.sbt")
        >>> recording.buffer(recording.buffers[0].address, dtype="f32", count=4)
        array([0., 1., 3., 6.], dtype=float32)
        """
        library = _numpy()
        if dtype == "u8":
            raise ValueError("u8 is uint64 in numpy and a byte in the command: use 'uint8' or 'uint64'")
        kind = library.dtype(_TYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype)
        arguments = ["--dump", hex(address), "--type", "u8"]
        if before is not None:
            arguments += ["--until", str(before.number if isinstance(before, Call) else before)]
        with tempfile.TemporaryDirectory(prefix="tracesmith-") as folder:
            file = os.path.join(folder, "buffer.npy")
            done = self._run("replay", *arguments, "-o", file)
            content = library.load(file)
        offset = self._offset(address, len(content), done.stderr)
        size = len(content) - offset if count is None else count * kind.itemsize
        if count is None and size % kind.itemsize != 0:
            raise ValueError(f"{size} bytes are no whole number of {kind}; pass count")
        if size > len(content) - offset:
            raise ValueError(
                f"the buffer ends {len(content) - offset} bytes after {address:#x}; {size} are wanted"
            )
        # A copy, because the elements must lie where the type wants them.
        array: numpy.ndarray[Any, Any] = content[offset : offset + size].copy().view(kind)
        return array

    def extract(self, folder: Path, kernel: str, nth: int = 1, *, overwrite: bool = False) -> Extracted:
        """Writes a launch as a C++ and a Python program that run it without TraceSmith."""
        return self.kernel(kernel, nth).extract(folder, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Recording({os.path.basename(self.path)})"

    # The command

    @functools.cached_property
    def _plan(self) -> Mapping[str, Any]:
        return self._ask("replay", "--mode", "dry-run")

    @functools.cached_property
    def _calls(self) -> tuple[Call, ...]:
        return tuple(
            Call(
                number=call["number"],
                kind=call["kind"],
                function=call["function"],
                stream=call["stream"],
                grid=tuple(call["grid"]),
                block=tuple(call["block"]),
                shared=call["shared"],
                destination=call["destination"],
                source=call["source"],
                nbytes=call["bytes"],
                recorded_ns=call["recorded_ns"],
            )
            for call in self._plan["commands"]
        )

    def _offset(self, address: int, written: int, talk: str) -> int:
        """Where an address is in the buffer that the command has written. It says so, unless the buffer starts there."""
        told = _OFFSET.search(talk)
        offset = int(told[1]) if told is not None else 0
        for buffer in self.buffers:
            if buffer.address <= address < buffer.address + buffer.nbytes:
                # The command prefers these, too. Other memory exists only after the first call.
                if (address - buffer.address, buffer.nbytes) != (offset, written):
                    raise ReplayError(
                        f"{written} bytes were written from {offset} bytes before {address:#x}, "
                        f"but the buffer has {buffer.nbytes} bytes from {buffer.address:#x}"
                    )
                return offset
        if offset >= written:
            raise ReplayError(f"{written} bytes were written, and {address:#x} is at offset {offset}")
        return offset

    def _ask(self, *arguments: str) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = json.loads(self._run(*arguments).stdout)
        return answer

    def _run(self, verb: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        common = self._arguments if verb == "replay" else ["--device", str(self._device)]
        done = _command.run(["--format", "json", verb, self.path, *arguments, *common], check=False)
        for warning in _command.find_warnings(done.stderr):
            warnings.warn(warning, RuntimeWarning, stacklevel=4)
        # Exit code 1 is an answer: it differs, or does not repeat.
        if check and (done.returncode not in (0, 1) or not (done.stdout or done.returncode == 0)):
            raise failure(done)
        return done


class Kernel:
    """One launch of a recording."""

    def __init__(self, recording: Recording, name: str, nth: int) -> None:
        self.recording = recording
        self.name = name
        self.nth = nth

    def time(self, *, repeat: int = 100) -> Timing:
        """Its GPU time with its recorded inputs. They are restored before each run, so the caches are cold."""
        arguments = ["--mode", "timing", "--kernel", self._text, "--repeat", str(repeat)]
        answer = self.recording._ask("replay", *arguments)
        return timings_of(answer)[0]

    def replay(self, *, repeat: int = 1) -> Replay:
        """Runs it with its recorded inputs, and compares memory with a replay of all calls before."""
        return self.recording.replay(kernel=self._text, repeat=repeat)

    def replace(
        self,
        file: Path,
        symbol: str | None = None,
        *,
        repeat: int = 1,
        tolerance: str | Mapping[str, float | tuple[float, float]] | None = None,
    ) -> Replay:
        """Runs it with a kernel of a cubin or PTX file in its place, and times both on the same inputs.

        The result's `replaced` has the times. Without `symbol`, the kernel of the same name, or the only one, is used.
        """
        new = os.fspath(file) if symbol is None else f"{os.fspath(file)}:{symbol}"
        return self.recording.replay(
            kernel=self._text, replace={self.name: new}, repeat=repeat, tolerance=tolerance
        )

    def extract(self, folder: Path, *, overwrite: bool = False) -> Extracted:
        """Writes it as a C++ and a Python program that run it without TraceSmith."""
        arguments = ["--kernel", self._text, "-o", os.fspath(folder)]
        if overwrite:
            arguments.append("--force")
        answer = self.recording._ask("extract", *arguments)
        return Extracted(
            folder=answer["folder"],
            kernel=answer["kernel"],
            command=answer["command"],
            buffers=answer["buffers"],
            nbytes=answer["bytes"],
            changed=answer["changed"],
            unknown=answer["unknown"],
        )

    @property
    def _text(self) -> str:
        return f"{self.name}#{self.nth}"

    def __repr__(self) -> str:
        return f"Kernel({self._text} of {os.path.basename(self.recording.path)})"


def failure(done: subprocess.CompletedProcess[str]) -> TracesmithError:
    """Why the command has no answer."""
    message, hint = _command.find_error(done.stderr)
    if hint is not None and hint.startswith(_WITHOUT_GPU):
        return NotAvailableError(
            message or "no GPU can be used",
            hint="a replay needs a GPU; without one, pass dry_run=True, or read memory that no kernel has changed",
        )
    return _command._failure(done, ReplayError)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise NotAvailableError(
            "arrays need numpy, which is not installed", hint="pip install numpy"
        ) from None
    return numpy


def words(options: Mapping[str, float | tuple[float, float]]) -> Sequence[str]:
    """Tolerances as the command takes them.

    >>> words({"f32": 1e-5, "f16": (1e-3, 1e-6)})
    ['f32=1e-05', 'f16=0.001:1e-06']
    """
    return [
        f"{kind}={value[0]!r}:{value[1]!r}" if isinstance(value, tuple) else f"{kind}={value!r}"
        for kind, value in options.items()
    ]
