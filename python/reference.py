"""Writes `docs/reference/python.md`: every public name of the package, from its docstring.

    python python/reference.py            # writes
    python python/reference.py --check    # fails if the page is not what it would write

It describes the `tracesmith` that Python imports.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import itertools
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import tracesmith
from tracesmith._tables import Tables

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "python.md"

HEAD = """# Python reference

Every public name of `import tracesmith as ts`. [The tour](../python.md) shows how they fit together.
`python/reference.py` writes this page from the docstrings.
"""


def page() -> str:
    """The whole page."""
    names = sorted(
        (name for name in tracesmith.__all__ if not name.startswith("__")),
        key=lambda name: (name.lower(), name),
    )
    things = [(name, getattr(tracesmith, name)) for name in names]
    functions = [(name, thing) for name, thing in things if not inspect.isclass(thing)]
    classes = [(name, thing) for name, thing in things if inspect.isclass(thing)]
    errors = [(name, thing) for name, thing in classes if issubclass(thing, BaseException)]
    others = [(name, thing) for name, thing in classes if not issubclass(thing, BaseException)]
    parts = [HEAD, "## Functions\n"]
    parts += [function(name, thing) for name, thing in functions]
    parts.append("## Classes\n")
    parts += [class_(name, thing) for name, thing in others]
    parts.append("## Exceptions\n")
    for name, thing in errors:
        base = thing.__mro__[1].__name__
        parts.append(f"### `{name}`\n\nA `{base}`. {text(thing)}\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def function(name: str, thing: Any) -> str:
    """A function of the package, or another value."""
    if not callable(thing):
        return ""
    return f"### `{name}`\n\n{signature(name, thing)}\n\n{text(thing)}\n"


def class_(name: str, thing: type) -> str:
    """A class with its public members, in the order of the source."""
    lines = [f"### `{name}`", ""]
    if not issubclass(thing, enum.Enum) and "__init__" in vars(thing) and not dataclasses.is_dataclass(thing):
        lines += [signature(name, thing), ""]
    lines += [text(thing), ""]
    for field, doc in fields(thing):
        lines += entry(f"`{field}`", doc)
    if issubclass(thing, enum.Enum):
        values = "Values: " + ", ".join(f"`{member.name}`" for member in thing) + "."
        lines += [*textwrap.wrap(values, 118), ""]
        return "\n".join(lines)
    for member, value in members(thing):
        if isinstance(value, property):
            lines += entry(f"`{member}`", text(value))
        elif inspect.isfunction(value):
            lines += entry(f"`{member}{arguments(value)}`", text(value))
    if issubclass(thing, Tables) and thing is not Tables:
        tables = ", ".join(f"`{name}`" for name, value in vars(Tables).items() if isinstance(value, property))
        lines += ["", *textwrap.wrap(f"Tables and views, each a [`Table`](#table): {tables}.", 118), ""]
    return "\n".join([*lines, ""])


def fields(thing: type) -> list[tuple[str, str]]:
    """The documented fields of a dataclass or a typed dictionary, with their types. Their texts are only in the source."""
    found = []
    for base in reversed(thing.__mro__):
        if not base.__module__.startswith("tracesmith") or not vars(base).get("__annotations__"):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, doc in itertools.pairwise(body):
            is_text = isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                found.append((f"{field.target.id}: {ast.unparse(field.annotation)}", str(doc.value.value)))
    return found


def members(thing: type) -> list[tuple[str, Any]]:
    """Public members of a class and of its bases in the package, without the tables of a trace."""
    found: dict[str, Any] = {}
    for base in thing.__mro__:
        if base.__module__.startswith("tracesmith") and base is not Tables:
            for name, value in vars(base).items():
                if not name.startswith("_") and name not in found:
                    found[name] = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    return list(found.items())


def entry(head: str, body: str) -> list[str]:
    """A list entry: the head, then the description."""
    first, _, rest = body.partition("\n\n")
    lines = textwrap.wrap(
        f"- {head}: {' '.join(first.split())}", 118, subsequent_indent="  ", break_long_words=False
    )
    if rest:
        lines += ["", textwrap.indent(rest, "  "), ""]
    return lines


def signature(name: str, thing: Any) -> str:
    """The call, in a block that is not run."""
    call = f"{name}{arguments(thing)}"
    if len(call) > 100:
        inner = arguments(thing).strip("()")
        call = f"{name}(\n    {inner.replace(', ', ',' + chr(10) + '    ')},\n)"
    return f"```text\n{call}\n```"


def arguments(thing: Any) -> str:
    """The parameters, with defaults and without types: the type is in the stub."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return "(…)"
    shown, is_keyword_only = [], False
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            shown.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        is_keyword_only = is_keyword_only or star == "*"
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        shown.append(f"{star}{parameter.name}{default}")
    return f"({', '.join(shown)})"


def text(thing: Any) -> str:
    """A docstring as Markdown: doctest examples become blocks."""
    doc = inspect.getdoc(thing) or ""
    lines, block, is_code = [], [], False
    for line in doc.splitlines() + [""]:
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code:
            lines.append(line)
            continue
        if line.startswith((">>> ", "... ")) or (block and line.strip() and not line.startswith(" ")):
            block.append(re.sub(r"\s+# doctest:.*", "", line))
            continue
        if block:
            lines += ["```text", *block, "```"]
            block = []
        lines.append(line)
    return "\n".join(lines).rstrip()


def main() -> int:
    """Writes or checks the page."""
    written = page()
    if "--check" not in sys.argv:
        PAGE.write_text(written)
    elif not PAGE.exists() or PAGE.read_text() != written:
        print(f"{PAGE.name} is not what python/reference.py writes; run it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
