"""A test module imports no other: what tests share is in modules that are no tests, and a moved test breaks nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
FOLDERS = (
    "chaos",
    "cli",
    "cluster",
    "dashboard",
    "faults",
    "integration",
    "model",
    "partitions",
    "support",
    "unit/core",
    "unit/embedded",
    "unit/project",
    "unit/protocol",
)
ABOUT_TESTS = {"dashboard/browser/test_nothing_is_left_out.py"}
"""Modules whose subject is what other tests cover."""


def imported(source: str) -> Iterator[str]:
    """The test modules that a module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        else:
            continue
        for name in names:
            if name.startswith("tests.") and any(part.startswith("test_") for part in name.split(".")):
                yield name


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_of_a_folder_imports_a_test_module(folder: str) -> None:
    modules = sorted((TESTS / folder).rglob("*.py"))
    assert modules
    found = {
        path.relative_to(TESTS).as_posix(): names
        for path in modules
        if (names := list(imported(path.read_text("utf-8"))))
    }
    assert {path: names for path, names in found.items() if path not in ABOUT_TESTS} == {}


def test_an_import_of_a_test_module_is_found() -> None:
    assert list(imported("from tests.lua.test_cost import cost")) == ["tests.lua.test_cost.cost"]
    assert list(imported("from tests.lua import test_cost, engine")) == ["tests.lua.test_cost"]
    assert list(imported("import tests.lua.test_cost")) == ["tests.lua.test_cost"]
    assert list(imported("from tests.support.rows import add_row")) == []
