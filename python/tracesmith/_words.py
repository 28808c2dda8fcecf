"""Sentences of the command, in the words of the package: `--force` is `overwrite=True`."""

from __future__ import annotations

import re

__all__ = ["in_python"]

#: Options whose argument has another name or form, the longest first. A capital letter stands for the option's value.
_OPTIONS = {
    "--from and --to": "range",
    "--from or --to": "range",
    "--mode dry-run": "dry_run=True",
    "--capture-range nvtx:NAME": 'capture_range="nvtx:NAME"',
    "--capture-range signal": 'capture_range="signal"',
    "--force": "overwrite=True",
    "--from": "range",
    "--to": "range",
    "--until": "before",
    "--type": "dtype",
    "--as": "format",
    "--scale": "speedup",
}

#: Options without a value.
_SWITCHES = frozenset({"ready", "record", "relocate", "single-file", "stub-collectives"})

#: Whole commands stay: who reads them runs them in a shell. A line of a command ends where it is quoted, or the sentence.
_COMMAND = r"[`'][^`']*\b(?:tracesmith|docker|podman|apptainer)\s[^`']*[`']"
_COMMAND += r"|\b(?:tracesmith [a-z]+|(?:docker|podman|apptainer) run) [^,;()]*"

#: `--name VALUE`, `--name <VALUE>` and `--name`, not within a word or a path.
_OPTION = r"(?<![\w/.-])--(?P<name>[a-z][a-z-]*[a-z])(?![\w-]|\.\w)(?P<value>=\S*[^\s,;:.)]| <[A-Z_]+>| \d+(?![\w.]))?"

_PATTERN = re.compile("|".join((f"(?P<command>{_COMMAND})", _OPTION)))

_SENTENCES = (
    (re.compile(r", or name another file with -o\b"), ", or name another file"),
    (re.compile(r"\bname it with -o, or\b"), "name one, or"),
    (re.compile(r" with -o\b"), ""),
)


def in_python(text: str) -> str:
    """The sentence, with the names of arguments in place of options.

    >>> in_python("a.sbt exists; replace it with --force")
    'a.sbt exists; replace it with overwrite=True'
    >>> in_python("--buffer-size must be at least 4M")
    'buffer_size must be at least 4M'
    >>> in_python("make one with `tracesmith profile --record`")
    'make one with `tracesmith profile --record`'
    """
    for pattern, words in _SENTENCES:
        text = pattern.sub(words, text)
    for option, words in _OPTIONS.items():
        if " " in option:
            text = text.replace(option, words)
    return _PATTERN.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    if found["command"] is not None:
        return found["command"]
    name, value = found["name"], found["value"] or ""
    known = _OPTIONS.get(f"--{name}")
    if known is not None and "=" in known:
        return known + value
    argument = known or name.replace("-", "_")
    if not value and name in _SWITCHES:
        return f"{argument}=True"
    # The placeholder of a value says nothing beside the name.
    return argument if value.startswith(" <") else argument + value.replace(" ", "=", 1)
