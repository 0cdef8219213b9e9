"""Applications use only the public API: the modules that they import, and the attributes of its objects."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import groupmq

PACKAGE = Path(groupmq.__file__).parent
APPLICATIONS = ("cli", "contrib", "dashboard", "demo", "metrics")
PUBLIC = ("sync", "embedded", "errors", "wording")
"""Public modules beside `groupmq` itself."""
FILES = sorted(path for name in APPLICATIONS for path in (PACKAGE / name).rglob("*.py"))
PLUMBING = frozenset("connection session endpoint run call report result_of listen_to make_worker start_soon".split())


def contract() -> dict[str, list[str]]:
    text = (PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    [found] = [one for one in contracts if one["id"] == "applications"]
    return dict(found)


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported, even if only for type checking. `from groupmq import x` imports a module if x is
    not a public name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            if node.module == "groupmq":
                names = (alias.name for alias in node.names)
                yield from (f"groupmq.{name}" for name in names if name not in groupmq.__all__)


def test_the_contract_names_every_module_that_is_not_public() -> None:
    modules = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or is_package(path)}
    private = {f"groupmq.{name}" for name in modules - {"__init__", *APPLICATIONS, *PUBLIC}}
    assert set(contract()["forbidden_modules"]) == private
    assert contract()["source_modules"] == [f"groupmq.{name}" for name in APPLICATIONS]
    assert "ignore_imports" not in contract()


def is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_application_imports_public_modules_only(path: Path) -> None:
    allowed = {"groupmq", *(f"groupmq.{name}" for name in (*PUBLIC, *APPLICATIONS))}
    names = {name for name in imported(ast.parse(path.read_text(encoding="utf-8"))) if name.startswith("groupmq")}
    assert {name for name in names if ".".join(name.split(".")[:2]) not in allowed} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_application_asks_for_no_private_name_of_a_queue_worker_or_job(path: Path) -> None:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Attribute) or owner(node) not in ("queue", "worker", "job", "probe", "Queue"):
            continue
        if node.attr.startswith("_") or node.attr in PLUMBING - ({"run"} if owner(node) == "worker" else set()):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    assert found == []


def owner(node: ast.Attribute) -> str:
    """The last name in front of the attribute, without underscores: `queue` for `self._queue.run`."""
    value = node.value
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return name.lstrip("_")
