"""One name, one thing: no two classes of the package share a name, and no part of a queue hides a method of another."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import groupmq
from groupmq import Queue
from groupmq.client.queue.base import QueueBase
from groupmq.client.queue.methods import QueueMethods
from tools.unasync import BY_HAND, GENERATED

PACKAGE = Path(groupmq.__file__).parent
TWINS = {f"sync/{source}" for source in (*GENERATED, *BY_HAND)}
"""The blocking client has the class names of the asynchronous one: they are the same things."""


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


def test_no_part_of_a_queue_overrides_a_method_of_another_part() -> None:
    """Parts share a base, and Python would take the method of the part that happens to be named first."""
    owner: dict[str, str] = {}
    twice = []
    for part in QueueMethods.__mro__[1:]:
        if part in (QueueBase, object):
            continue
        for name, value in vars(part).items():
            if not callable(value) or name.startswith("__"):
                continue
            if name in owner:
                twice.append(f"{name}: {owner[name]} and {part.__name__}")
            owner[name] = part.__name__
    assert twice == []


def test_partitions_come_in_one_line_of_classes() -> None:
    """The methods that a queue with partitions overrides are found by following `super()` upward."""
    kind: type = Queue
    while kind is not QueueMethods:
        assert len(kind.__bases__) == 1, kind
        kind = kind.__bases__[0]
