"""Writes the parts of the package that follow from the Rust code: `tracesmith/_tables.py`.

    python python/generate.py            # writes
    python python/generate.py --check    # fails if a file is not what it would write

It reads the native module in `python/tracesmith`, or the one after `--module`.
"""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# A method or a richer object has these names; the tables are reached with `trace.table(name)`.
TAKEN = {"memory", "metadata", "health", "steps", "devices"}


def tables() -> str:
    """The module with an attribute for each table."""
    lines = [
        '"""The tables of a trace as attributes. Written by `python/generate.py`: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TYPE_CHECKING",
        "",
        "if TYPE_CHECKING:",
        "    from tracesmith._table import Table",
        "",
        '__all__ = ["Tables"]',
        "",
        "",
        "class Tables:",
        '    """Every table and view of a trace is an attribute."""',
        "",
        "    def table(self, name: str) -> Table:",
        '        """The table or view of this name."""',
        "        raise NotImplementedError",
    ]
    for name, kind, doc, _ in native().catalog():
        if name in TAKEN:
            continue
        lines += ["", "    @property", f"    def {name}(self) -> Table:"]
        lines += docstring(f"{'Table' if kind == 'table' else 'View'}: {doc}")
        lines.append(f'        return self.table("{name}")')
    return "\n".join(lines) + "\n"


def native() -> Any:
    """The native module, without the package: a file that is to be written may be missing."""
    named = sys.argv[sys.argv.index("--module") + 1 :][:1] if "--module" in sys.argv else []
    path = Path(named[0]) if named else next((HERE / "tracesmith").glob("_native*.so"))
    spec = importlib.util.spec_from_file_location("tracesmith._native", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def docstring(text: str, indent: str = "        ") -> list[str]:
    """A docstring in lines of at most 110 characters."""
    first, *rest = text.split(". ", 1)
    text = f"{first}. {rest[0]}" if rest else first
    if len(indent) + len(text) + 6 <= 110:
        return [f'{indent}"""{text}"""']
    head = f"{first}." if rest else first
    lines = textwrap.wrap(head, 110 - len(indent) - 3)
    if len(lines) > 1 or not rest:
        body = textwrap.wrap(text, 110 - len(indent))
        return [f'{indent}"""{body[0]}', *(f"{indent}{line}" for line in body[1:]), f'{indent}"""']
    body = textwrap.wrap(rest[0], 110 - len(indent))
    return [f'{indent}"""{head}', "", *(f"{indent}{line}" for line in body), f'{indent}"""']


FILES = {"_tables.py": tables}


def main() -> int:
    """Writes or checks all files."""
    wrong = 0
    for name, write in FILES.items():
        path = HERE / "tracesmith" / name
        text = write()
        if "--check" not in sys.argv:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path.name} is not what python/generate.py writes; run it", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
