"""Write the texts of options into the docstrings of `Queue`, `Worker`, `add` and `process`, for `help()` and editors.

Each option is declared once, in a TypedDict of `core/*_options.py`, with its text below it. A function that has the
decorator `shows_options(declared, ...)` gets an "Options:" block at the end of its docstring. `make sync` writes the
blocks before it translates the client, and `make check` fails if one is stale.

    python -m tools.option_texts [--check]
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tools.unasync import PACKAGE, ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef
HEADING = "Options:"
WIDTH = 120


def declared_options(package: Path = PACKAGE) -> dict[str, dict[str, str]]:
    """The name and the text of each option, by the class that declares it; those of a base class come last."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((package / "core").glob("*_options.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                own = dict(_texts(node))
                for base in node.bases:
                    own |= found.get(ast.unparse(base), {})
                found[node.name] = own
    return found


def _texts(declared: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(declared.body, declared.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield ast.unparse(field.target), " ".join(str(text.value.value).split())


def with_blocks(source: str, declared: dict[str, dict[str, str]]) -> str:
    """The source of a module, each of its functions that show options with the block of today."""
    lines = source.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, Function)]
    for function in sorted(functions, key=lambda node: node.lineno, reverse=True):
        name, first = _shown(function), function.body[0]
        own = ast.get_docstring(function)
        if name is None:
            continue
        if own is None or first.end_lineno is None:
            raise SystemExit(f"{function.name}, which shows the options of {name}, needs a docstring")
        before = own.partition(f"\n\n{HEADING}\n")[0]
        text = textwrap.indent(f"{before}\n\n{block(declared[name], first.col_offset)}", " " * first.col_offset)
        lines[first.lineno - 1 : first.end_lineno] = [
            f'{" " * first.col_offset}"""{text.strip()}\n{" " * first.col_offset}"""\n'
        ]
    return "".join(lines)


def _shown(function: Function) -> str | None:
    """The class whose options a function shows, from its decorator."""
    for one in function.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "shows_options":
            return ast.unparse(one.args[0])
    return None


def block(options: dict[str, str], indent: int) -> str:
    """The block as it stands in a docstring that is indented by so many columns."""
    lines = [
        textwrap.fill(f"{name}: {text}", WIDTH - indent, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name, text in options.items()
    ]
    return "\n".join([HEADING, *lines])


def stale(package: Path = PACKAGE) -> dict[Path, str]:
    """The files whose blocks differ from the declarations, and what they should be. The twins of `sync/` follow."""
    declared = declared_options(package)
    found = {}
    for path in sorted(package.rglob("*.py")):
        source = path.read_text("utf-8")
        if path.relative_to(package).parts[0] == "sync" or "@shows_options(" not in source:
            continue
        written = with_blocks(source, declared)
        if written != source:
            found[path] = written
    return found


def main() -> int:
    found = stale()
    for path, text in found.items():
        if sys.argv[1:] == ["--check"]:
            print(f"{path.relative_to(ROOT)}: an option has another text where it is declared; run `make sync`")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if found and sys.argv[1:] == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main())
