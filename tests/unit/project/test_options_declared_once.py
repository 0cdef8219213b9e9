"""The options of a job, a queue and a worker are declared only once, and so are their defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import groupmq
from groupmq.core.job_options import JOB_OPTIONS
from groupmq.core.queue_options import QUEUE_DEFAULTS, QueueOptions
from groupmq.core.settings import QueueSettings
from groupmq.core.worker_options import WORKER_DEFAULTS, WorkerOptions
from tools.unasync import GENERATED

PACKAGE = Path(groupmq.__file__).parent
COPIES = {f"sync/{source}" for source in GENERATED}
SOME = 3
"""This many options of one kind in a signature may be a coincidence; more are a copy of the declaration."""


def signatures() -> Iterator[tuple[str, set[str]]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if where in COPIES:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                yield f"{where}: {node.name}", {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


@pytest.mark.parametrize("options", [JOB_OPTIONS, QUEUE_DEFAULTS, WORKER_DEFAULTS], ids=["job", "queue", "worker"])
def test_no_signature_repeats_the_options(options: Collection[str]) -> None:
    assert [name for name, given in signatures() if len(given & set(options)) > SOME] == []


@pytest.mark.parametrize("checked", [QueueOptions, QueueSettings, WorkerOptions])
def test_no_class_of_options_spells_a_default(checked: type) -> None:
    """The defaults are those of QUEUE_DEFAULTS and WORKER_DEFAULTS, apart from parameters that are not options or have
    another form."""
    own = {"unknown", "given", "is_stored", "durability"} | ({"partitions"} if checked is QueueSettings else set())
    tree = ast.parse(Path(str(module_of(checked))).read_text("utf-8"))
    (body,) = [node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == checked.__name__]
    spelled = {
        node.target.id: ast.unparse(node.value)
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }
    assert {name for name, value in spelled.items() if not re.search(r"_DEFAULTS\[|^KEEP_", value)} <= own


def test_a_queue_without_options_is_as_the_defaults_say() -> None:
    checked, plain = QueueOptions.checked("q", {}), QueueOptions("q")
    assert {one.name: getattr(plain, one.name) for one in fields(plain)} == {
        one.name: getattr(checked, one.name) for one in fields(checked)
    }
    assert QueueSettings() == QueueSettings.from_stored(plain.described())


def module_of(kind: type) -> Any:
    return __import__(kind.__module__, fromlist=["_"]).__file__
