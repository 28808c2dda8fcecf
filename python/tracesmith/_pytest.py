"""The pytest plugin: records the GPU work of tests, and compares it with a baseline.

    pytest --tracesmith-baseline traces --tracesmith-update-baseline
    pytest --tracesmith-baseline traces --tracesmith-fail-over 5%

A test that does not use the fixture `gpu_profile` costs nothing: what records is imported when a test uses it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tracesmith._profile import profile
    from tracesmith._trace import Trace

__all__ = ["GpuProfile"]

_DEFAULT_LIMIT = "5%"
_SHARE = re.compile(r"\d+(\.\d+)?%?")

#: What a test has recorded, kept with the test.
_RECORDED = pytest.StashKey["GpuProfile"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tracesmith", "GPU work of tests that use the fixture gpu_profile")
    group.addoption(
        "--tracesmith-baseline",
        metavar="DIR",
        help="compare the GPU work of each test with its trace in this folder",
    )
    group.addoption(
        "--tracesmith-fail-over",
        metavar="SHARE",
        default=None,
        help=f"fail a test that is slower by more than this share, for certain (default: {_DEFAULT_LIMIT})",
    )
    group.addoption(
        "--tracesmith-update-baseline",
        action="store_true",
        help="write the traces of the folder instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    limit = config.getoption("--tracesmith-fail-over")
    has_folder = config.getoption("--tracesmith-baseline") is not None
    if limit is not None and not _SHARE.fullmatch(limit):
        raise pytest.UsageError(f"--tracesmith-fail-over is a share such as 5%, not {limit}")
    for option in ("--tracesmith-fail-over", "--tracesmith-update-baseline"):
        if config.getoption(option) and not has_folder:
            raise pytest.UsageError(f"{option} needs --tracesmith-baseline DIR")
    if has_folder:
        # Workers of xdist get the same folder.
        folder = config.invocation_params.dir / config.option.tracesmith_baseline
        config.option.tracesmith_baseline = str(folder)


@pytest.fixture
def gpu_profile(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GpuProfile]:
    """Records GPU work: `with gpu_profile() as p: …` and then `p.trace`, or `trace = gpu_profile.run(function)`."""
    reason = _obstacle()
    if reason is not None:
        pytest.skip(reason)
    recorder = GpuProfile(tmp_path)
    request.node.stash[_RECORDED] = recorder
    yield recorder
    del request.node.stash[_RECORDED]


# Runs after the test itself, and not if that has failed.
@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    recorder = item.stash.get(_RECORDED, None)
    baselines: str | None = item.config.getoption("--tracesmith-baseline")
    if recorder is None or baselines is None:
        return
    if not recorder.profiles:
        pytest.fail("the test uses gpu_profile and has recorded nothing", pytrace=False)
    limit = item.config.getoption("--tracesmith-fail-over") or _DEFAULT_LIMIT
    is_update = item.config.getoption("--tracesmith-update-baseline")
    problems = []
    for number, one in enumerate(recorder.profiles, 1):
        baseline = Path(baselines) / _file_name(item, number)
        recorded = _complete(one)
        if is_update:
            _keep(recorded, baseline)
        elif not baseline.exists():
            problems.append(
                f"there is no baseline: {baseline}\nhint: write it with --tracesmith-update-baseline"
            )
        else:
            problems += _slower(baseline, recorded, limit)
    if problems:
        pytest.fail("\n\n".join(problems), pytrace=False)


class GpuProfile:
    """What the fixture `gpu_profile` is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: The recordings of the test, in their order.
        self.profiles: list[profile] = []

    def __call__(self, **options: Any) -> profile:
        """A `tracesmith.profile` with these options, to be used in a `with` statement."""
        from tracesmith._profile import profile

        path = self._folder / f"tracesmith-{len(self.profiles) + 1}.sbt"
        self.profiles.append(profile(path, **options))
        return self.profiles[-1]

    def run(
        self, function: Callable[..., object], *args: Any, steps: int = 10, warmup: int = 2, **kwargs: Any
    ) -> Trace:
        """Calls a function `warmup` times, and then records `steps` calls of it.

        Each call is a step of the trace. A comparison with a baseline needs several: with 10, noise is told from change.
        """
        from tracesmith._driver import synchronize
        from tracesmith._ranges import range as span

        for _ in range(warmup):
            function(*args, **kwargs)
        synchronize()
        with self() as p:
            for number in range(steps):
                with span("step", payload=number):
                    function(*args, **kwargs)
                    synchronize()
        return p.trace


@functools.lru_cache(maxsize=1)
def _obstacle() -> str | None:
    """Why GPU work cannot be recorded here."""
    from tracesmith._arm import is_under_profile
    from tracesmith._errors import TracesmithError
    from tracesmith._machine import devices

    if is_under_profile():
        return "an outer 'tracesmith profile' records this process"
    try:
        found = devices()
    except TracesmithError as error:
        return f"tracesmith cannot look for GPUs: {error}"
    if not found:
        return "needs an NVIDIA GPU: this machine has none"
    if not any(device.cuda_ordinals for device in found):
        return "needs a GPU that CUDA may use: CUDA_VISIBLE_DEVICES hides all"
    return None


def _complete(one: profile) -> Path:
    """The trace's file, when it is complete."""
    from tracesmith._errors import TracesmithError

    try:
        one.trace  # noqa: B018
        if one.lost:
            pytest.fail(
                f"{one.lost} records are missing in the recording, so it cannot be compared\n"
                "hint: record less at once, or pass buffer_size",
                pytrace=False,
            )
    except TracesmithError as error:
        pytest.fail(str(error), pytrace=False)
    return Path(str(one.path))


def _file_name(item: pytest.Item, number: int) -> str:
    """The file of a test: the same in each run and each worker of xdist, and another one for each test."""
    test = item.nodeid
    group = item.get_closest_marker("xdist_group")
    if group is not None:
        # xdist appends the group with --dist loadgroup.
        name = group.args[0] if group.args else group.kwargs.get("name", "default")
        test = test.removesuffix(f"@{name}")
    readable = re.sub(r"[^A-Za-z0-9]+", "_", test).strip("_")[:120]
    # Different tests can have the same readable name.
    digest = hashlib.sha256(test.encode()).hexdigest()[:8]
    return f"{readable}-{digest}" + (f"-{number}" if number > 1 else "") + ".sbt"


def _keep(recorded: Path, baseline: Path) -> None:
    baseline.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: a run that is stopped leaves the old baseline or the new one.
    part = baseline.with_name(f".{baseline.name}.{os.getpid()}")
    part.write_bytes(recorded.read_bytes())
    part.replace(baseline)


def _slower(baseline: Path, recorded: Path, limit: str) -> list[str]:
    """What to print about a test that became slower."""
    from tracesmith._baseline import slower
    from tracesmith._diff import diff
    from tracesmith._errors import TracesmithError

    try:
        report = diff(baseline, recorded, by="short", fail_over=float(limit.removesuffix("%")) / 100)
    except TracesmithError as error:
        return [str(error)]
    if not report.is_over:
        return []
    return [f"{slower(report, limit)}\n\nmore: tracesmith diff {baseline} {recorded}"]
