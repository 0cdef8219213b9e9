"""No two types of the package share a name: neither classes nor the names of types, such as `X = Literal[...]`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import groupmq
from tools.unasync import BY_HAND, GENERATED

PACKAGE = Path(groupmq.__file__).parent
TWINS = {f"sync/{source}" for source in (*GENERATED, *BY_HAND)}
"""Files of the blocking client, whose classes have the names of their asynchronous twins."""
TYPE = re.compile(r"_?[A-Z]\w*[a-z]")
"""The spelling of a type. Constants are in capitals, and so are type variables, which may share a name."""


def types(source: str, where: str) -> Iterator[tuple[str, str]]:
    """The name and the origin of each type of a module: the module, or for `import y as X` the place of y."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, where
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                if one.asname is not None and TYPE.match(one.asname):
                    yield one.asname, f"{node.module}.{one.name}".replace("redis.asyncio", "redis")
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
            targets = [node.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and TYPE.match(target.id):
                yield target.id, where


def test_no_two_types_have_one_name() -> None:
    origins = defaultdict[str, list[str]](list)
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if where not in TWINS:
            for name, origin in types(path.read_text("utf-8"), where):
                if origin not in origins[name]:
                    origins[name].append(origin)
    assert {name: found for name, found in origins.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class Page: ...\n", [("Page", "here.py")]),
        ("Page = Literal['a', 'b']\n", [("Page", "here.py")]),
        ("Page = Callable[[int], str] | None\n", [("Page", "here.py")]),
        ("Page: TypeAlias = 'int | str'\n", [("Page", "here.py")]),
        ("from x import y as Page, z\n", [("Page", "x.y")]),
        ("T = TypeVar('T')\nPAGE = 7\npage = 7\nlimit: int = 7\n", []),
    ],
)
def test_types_are_found_however_they_are_made(source: str, expected: list[tuple[str, str]]) -> None:
    assert list(types(source, "here.py")) == expected
