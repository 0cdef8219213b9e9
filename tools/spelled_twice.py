"""Find what is written by hand in the blocking client although the asynchronous one has it; `make check` then fails.

A public method has its signature and its docstring in one place, a file of `client/` that `tools/unasync.py`
translates. The modules of BY_HAND have the private methods below it, which differ by nature. So a public name may not
be defined in such a module and in its twin. A private one has the same arguments and the same answer on both sides, as
the translation writes them, and another body. No docstring of `client/` may be repeated in a file of `sync/` that is
written by hand.

    python -m tools.spelled_twice
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.unasync import BY_HAND, GENERATED, PACKAGE, WORD, translated

Function = ast.FunctionDef | ast.AsyncFunctionDef
OWN_SIGNATURES = {
    "connection/transport.py: Transport._bound": "a semaphore of the event loop; threads need no bound",
}
"""The private methods whose signatures differ by nature, and why."""


def spelled_twice(package: Path = PACKAGE) -> list[str]:
    """One line for each finding."""
    return [*_methods(package), *_docstrings(package)]


def _methods(package: Path) -> Iterator[str]:
    for name in BY_HAND:
        here, there = ((package / side / name).read_text("utf-8") for side in ("sync", "client"))
        both = set(public_names(here)) & set(public_names(there))
        for found in sorted(both):
            yield f"src/groupmq/sync/{name}: {found} is defined in client/{name} too; have it translated"
        yield from _private(name, here, translated(there, name))


def _private(name: str, here: str, there: str) -> Iterator[str]:
    """`there`: the translation of the asynchronous side."""
    mine, others = dict(functions(here)), dict(functions(there))
    for found in sorted((mine.keys() & others.keys()) - set(public_names(here))):
        mirrored = [ast.dump(node) for node in mine[found].body] == [ast.dump(node) for node in others[found].body]
        if mirrored:
            yield f"src/groupmq/sync/{name}: {found} is a copy of the one in client/{name}; have it translated"
        elif f"{name}: {found}" not in OWN_SIGNATURES and signature(mine[found]) != signature(others[found]):
            yield f"src/groupmq/sync/{name}: {found} has another signature than in client/{name}"


def _docstrings(package: Path) -> Iterator[str]:
    known: dict[str, str] = {}
    for path in sorted((package / "client").rglob("*.py")):
        known |= dict.fromkeys(docstrings(path.read_text("utf-8")), path.relative_to(package).as_posix())
    for path in sorted((package / "sync").rglob("*.py")):
        name = path.relative_to(package / "sync").as_posix()
        if name in GENERATED:
            continue
        for text in docstrings(path.read_text("utf-8")):
            if text in known:
                yield f"src/groupmq/sync/{name}: a docstring of {known[text]} is repeated: {text[:60]!r}"


def public_names(source: str) -> Iterator[str]:
    """The functions of a module and the methods of its classes that do not begin with an underscore."""
    return (name for name, node in functions(source) if not node.name.startswith("_"))


def functions(source: str) -> Iterator[tuple[str, Function]]:
    """The functions of a module and the methods of its classes."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, Function))
        elif isinstance(node, Function):
            yield node.name, node


def signature(function: Function) -> str:
    return f"({ast.unparse(function.args)}) -> {function.returns and ast.unparse(function.returns)}"


def docstrings(source: str) -> Iterator[str]:
    """The texts that describe a module, its classes, functions and values, as the translation leaves them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield " ".join(WORD.sub("", node.value.value).split())


def main() -> int:
    found = spelled_twice()
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
