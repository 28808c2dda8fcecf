"""The pytest plugin, by tests of pytest that run in processes of their own, against the fake driver."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from capture_stage import Stage

#: An installed package brings the plugin along.
IS_INSTALLED = any(point.name == "tracesmith" for point in importlib.metadata.entry_points(group="pytest11"))
PLUGIN = [] if IS_INSTALLED else ["-p", "tracesmith._pytest"]

TESTS = """
import gpu, os, pytest

@pytest.fixture(scope="session", autouse=True)
def cuda():
    gpu.start()

@pytest.mark.parametrize("batch", ["a/b", "a b"])
def test_step(gpu_profile, batch):
    trace = gpu_profile.run(gpu.launches, int(os.environ.get("LAUNCHES", "20")), steps=10)
    assert len(trace.kernels) == 10 * int(os.environ.get("LAUNCHES", "20"))

def test_block(gpu_profile):
    with gpu_profile(stacks=False) as p:
        gpu.launches(5)
    assert len(p.trace.kernels) == 5

def test_without_a_gpu():
    pass
"""


@pytest.fixture
def gpu_tests(stage: Stage, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests whose GPU is the fake one."""
    for name, value in stage.environment.items():
        monkeypatch.setenv(name, value)
    pytester.makepyfile(test_gpu=TESTS)
    return pytester


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", *arguments)


def test_the_fixture_gives_a_trace(gpu_tests: pytest.Pytester) -> None:
    run(gpu_tests).assert_outcomes(passed=4)
    assert not list(gpu_tests.path.glob("*.sbt")), "nothing is kept where the tests are"


def test_a_test_that_became_slower_fails_with_a_table(
    gpu_tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = run(gpu_tests, "--tracesmith-baseline", "traces", "--tracesmith-update-baseline")
    update.assert_outcomes(passed=4)
    files = sorted(file.name for file in (gpu_tests.path / "traces").iterdir())
    assert len(files) == 3 and all(name.startswith("test_gpu_py_test_") for name in files), files
    same = run(gpu_tests, "--tracesmith-baseline", "traces", "--tracesmith-fail-over", "10000%")
    same.assert_outcomes(passed=4)
    monkeypatch.setenv("LAUNCHES", "400")
    slow = run(gpu_tests, "--tracesmith-baseline=traces", "-k", "test_step")
    slow.assert_outcomes(failed=2, deselected=2)
    slow.stdout.fnmatch_lines(
        [
            "slower than the baseline by *: * → * per step (limit 5%, * steps)",
            "What takes longer, per step",
            "*+*noop (20 → 400 launches)*",
            "more: tracesmith diff *.sbt *.sbt",
        ]
    )
    assert "Traceback" not in slow.stdout.str()


def test_a_test_without_a_baseline_fails(gpu_tests: pytest.Pytester) -> None:
    result = run(gpu_tests, "--tracesmith-baseline", "traces", "-k", "test_block or without")
    result.assert_outcomes(failed=1, passed=1, deselected=2)
    result.stdout.fnmatch_lines(["there is no baseline: *test_block*", "hint: *--tracesmith-update-baseline"])


def test_workers_of_xdist_use_the_same_names(gpu_tests: pytest.Pytester) -> None:
    pytest.importorskip("xdist", reason="needs pytest-xdist")
    run(gpu_tests, "--tracesmith-baseline", "one", "--tracesmith-update-baseline").assert_outcomes(passed=4)
    options = ["-n2", "--dist", "loadgroup", "--tracesmith-baseline", "two", "--tracesmith-update-baseline"]
    gpu_tests.makepyfile(
        test_gpu=TESTS.replace("def test_block", "@pytest.mark.xdist_group('gpu')\ndef test_block")
    )
    run(gpu_tests, *options).assert_outcomes(passed=4)
    one, two = (sorted(file.name for file in (gpu_tests.path / name).iterdir()) for name in ("one", "two"))
    assert one == two and len(one) == 3


def test_a_machine_without_a_gpu_skips(gpu_tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    gpu_tests.makepyfile(test_gpu="def test_step(gpu_profile): pass")
    result = run(gpu_tests, "-rs")
    if result.parseoutcomes().get("passed"):
        pytest.skip("this machine has a GPU")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * needs a*GPU*"])


def test_the_fixture_must_be_used_if_there_is_a_baseline(gpu_tests: pytest.Pytester) -> None:
    gpu_tests.makepyfile(test_gpu="def test_step(gpu_profile): pass")
    result = run(gpu_tests, "--tracesmith-baseline", "traces")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*has recorded nothing*"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tracesmith-update-baseline"],
        ["--tracesmith-fail-over", "5%"],
        ["--tracesmith-baseline", "traces", "--tracesmith-fail-over", "five"],
    ],
)
def test_wrong_options_are_usage_errors(pytester: pytest.Pytester, arguments: list[str]) -> None:
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --tracesmith-*"])


def test_who_does_not_use_it_does_not_load_it(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(
        test_plain="""
import sys
def test_plain():
    loaded = [name for name in sys.modules if name.startswith("tracesmith._")]
    assert "tracesmith._pytest" in loaded
    assert not {"tracesmith._profile", "tracesmith._machine", "tracesmith._collector"} & set(loaded)
"""
    )
    run(pytester).assert_outcomes(passed=1)
