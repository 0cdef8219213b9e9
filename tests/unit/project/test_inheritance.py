"""Readers can find where a method comes from: no diamonds of classes, and the methods of a queue are in one table."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import groupmq
from groupmq import Queue
from groupmq.client.queue.base import QueueBase
from groupmq.client.queue.methods import QueueMethods
from groupmq.sync import Queue as SyncQueue
from groupmq.sync.queue.methods import QueueMethods as SyncQueueMethods

TABLES = [QueueMethods, SyncQueueMethods]


def classes() -> Iterator[type]:
    """All classes of the package."""
    for found in pkgutil.walk_packages(groupmq.__path__, "groupmq."):
        if not found.name.endswith("__main__"):
            for value in vars(import_module(found.name)).values():
                if isinstance(value, type) and value.__module__ == found.name:
                    yield value


def shared(kind: type) -> set[type]:
    """The project's classes that `kind` inherits through more than one of its bases."""
    reached = [set(base.__mro__) for base in kind.__bases__]
    twice = {one for i, some in enumerate(reached) for others in reached[i + 1 :] for one in some & others}
    return {one for one in twice if one.__module__.startswith(("groupmq.", __name__)) and not is_protocol(one)}


def is_protocol(kind: type) -> bool:
    return getattr(kind, "_is_protocol", False)


@pytest.mark.skipif(find_spec("click") is None, reason="the command line, whose classes count too, is not installed")
def test_no_class_inherits_from_two_classes_that_share_a_base_of_ours() -> None:
    """In a diamond, a reader of one class cannot see which class an attribute of `self` comes from."""
    assert {kind: shared(kind) for kind in classes() if shared(kind)} == {}


def test_a_diamond_is_found() -> None:
    class Base: ...

    class Left(Base): ...

    class Right(Base): ...

    class Diamond(Left, Right): ...

    class Apart(Left, ValueError): ...

    assert [shared(kind) for kind in (Diamond, Left, Apart)] == [{Base}, set(), set()]


@pytest.mark.parametrize("kind", [Queue, SyncQueue])
def test_a_queue_is_one_line_of_classes(kind: type) -> None:
    """The methods that a queue with partitions overrides are found by following `super()` upward."""
    line = [kind]
    while line[-1] is not object:
        assert len(line[-1].__bases__) == 1, line[-1]
        line += line[-1].__bases__
    assert {"QueueMethods", QueueBase.__name__} <= {one.__name__ for one in line}


@pytest.mark.parametrize("table", TABLES)
def test_the_table_of_methods_names_each_function_once_under_its_own_name(table: type) -> None:
    names, functions = [], []
    tree = ast.parse(Path(inspect.getfile(table)).read_text("utf-8"))
    [definition] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for line in definition.body[1:]:  # skip the docstring
        match line:
            case ast.Assign([ast.Name(name)], ast.Attribute(ast.Name(module), function)):
                names.append(name)
                functions.append(f"{module}.{function}")
                assert name in (function, f"_{function}")
            case _:
                pytest.fail(f"line {line.lineno} of the table is not of the form `name = module.function`")
    assert len(names) == len(set(names))
    assert len(functions) == len(set(functions))


@pytest.mark.parametrize("table", TABLES)
def test_every_public_method_stands_in_the_table(table: type) -> None:
    public = {name for name in dir(table) if not name.startswith("_") and callable(getattr(table, name))}
    assert public - vars(table).keys() == set()


def test_every_private_name_of_the_table_is_overridden_for_partitions() -> None:
    """A step that is not overridden belongs in its module as a function, not in the table."""
    line = Queue.__mro__[: Queue.__mro__.index(QueueMethods)]
    private = {name for name in vars(QueueMethods) if name.startswith("_") and not name.startswith("__")}
    assert {name for name in private if not any(name in vars(kind) for kind in line)} == set()
