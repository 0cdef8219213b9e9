"""No two classes of the package share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import groupmq
from tools.unasync import BY_HAND, GENERATED

PACKAGE = Path(groupmq.__file__).parent
TWINS = {f"sync/{source}" for source in (*GENERATED, *BY_HAND)}
"""Files of the blocking client, whose classes have the names of their asynchronous twins."""


def classes(path: Path) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)]


def test_no_two_classes_have_one_name() -> None:
    files = defaultdict[str, list[str]](list)
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if where not in TWINS:
            for name in classes(path):
                files[name].append(where)
    assert {name: where for name, where in files.items() if len(where) > 1} == {}
