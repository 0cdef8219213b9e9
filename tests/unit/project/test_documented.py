"""The guide for users of bee-queue: each of its settings and methods has a counterpart that exists."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from groupmq import Job, Queue, Worker, errors, wording
from groupmq.core.codec import JSON
from groupmq.core.drafts import draft
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import pack_order
from groupmq.sync import Job as SyncJob
from groupmq.sync import Queue as SyncQueue

NOWHERE = "redis://127.0.0.1:1"
DOCS = Path(__file__).parents[3] / "docs"
GUIDE = DOCS / "guide.md"
SETTINGS = ("getEvents", "sendEvents", "isWorker", "removeOnSuccess", "stallInterval", "catchExceptions")


def table(heading: str) -> dict[str, str]:
    """The rows of the table under a heading: first column, second column."""
    text = GUIDE.read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n## {heading}\n")
    section = rest.partition("\n## ")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]
    return {left.strip(): right.strip() for left, right in rows[2:]}


BEE = table("Coming from bee-queue")


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_of_bee_queue_has_its_counterpart(setting: str) -> None:
    [ours] = [right for left, right in BEE.items() if re.search(rf"`{setting}\b", left)]
    assert ours


def test_the_options_that_the_table_names_exist() -> None:
    queue, worker = inspect.signature(Queue).parameters, inspect.signature(Worker).parameters
    named = set(re.findall(r"\b([a-z_]+)=", " ".join(BEE.values())))
    assert {"events", "keep_completed", "concurrency"} <= named
    assert named - queue.keys() - worker.keys() == set()


def test_the_methods_that_the_table_names_exist() -> None:
    named = set(re.findall(r"\bqueue\.([a-z_]+)", " ".join(BEE.values())))
    assert {"create_job", "save_all", "process", "on"} <= named
    assert [name for name in sorted(named) if not callable(getattr(Queue, name, None))] == []


PUBLIC = {"Queue": Queue, "sync.Queue": SyncQueue, "Worker": Worker, "Job": Job, "sync.Job": SyncJob}


SECTIONS = {
    "Queue": ["Queue"],
    "sync.Queue": ["Queue", "groupmq.sync"],
    "Worker": ["Worker"],
    "Job": ["Job"],
    "sync.Job": ["Job", "groupmq.sync"],
}
"""The headings of the reference, up to the first bracket, under which the names of a class stand."""


@pytest.mark.parametrize("name", PUBLIC)
async def test_every_public_name_stands_in_its_section_of_the_reference(name: str) -> None:
    """A name that the reference does not document is internal, and must be private."""
    words = {word for heading in SECTIONS[name] for word in re.findall(r"\w+", code_in(section(heading)))}
    assert {one for one in names_of(PUBLIC[name]) if not one.startswith("_")} - words == set()


@pytest.mark.parametrize("module", [errors, wording], ids=["groupmq.errors", "groupmq.wording"])
def test_every_name_of_the_smaller_modules_stands_in_its_section(module: ModuleType) -> None:
    assert set(module.__all__) - set(re.findall(r"\w+", code_in(section(module.__name__)))) == set()


def section(heading: str) -> str:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    [found] = [part for part in text.split("\n## ")[1:] if re.match(rf"{re.escape(heading)}(\(|\n)", part)]
    return found


def code_in(text: str) -> str:
    """The parts of a text that are set as code: a word of a sentence documents nothing."""
    return " ".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL))


def names_of(kind: type) -> set[str]:
    """The names of a class and of its objects, which have attributes that no class declares."""
    names = set(dir(kind)) | set(dir(made(kind)))
    for base in kind.__mro__:
        names |= set(getattr(base, "__annotations__", ()))
    return names


def made(kind: Any) -> Any:
    if kind in (Queue, SyncQueue):
        return kind("orders", NOWHERE)
    if kind is Worker:
        return Worker(Queue("orders", NOWHERE), lambda job: None)
    stored = bytes(2) + pack_order(0) + bytes(12) + draft(QueueOptions("orders"), 1).body
    return kind(None, JSON, "id", "waiting", stored, 3)


@pytest.mark.parametrize("kind", PUBLIC.values(), ids=PUBLIC)
def test_a_method_is_described_once(kind: type) -> None:
    """An override has the docstring of the method it overrides, which `help()` shows; a copy would go stale."""
    twice = []
    for name in (name for name in dir(kind) if not name.startswith("_")):
        owners = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
        written = [one.__doc__ for one in owners if inspect.isfunction(one) and one.__doc__ and not is_wrapped(one)]
        if len(written) > 1:
            twice.append(name)
    assert twice == []


def is_wrapped(function: object) -> bool:
    """Whether `functools.wraps` gave it the docstring."""
    return hasattr(function, "__wrapped__")


@pytest.mark.parametrize("kind", PUBLIC.values(), ids=PUBLIC)
def test_every_public_method_is_described(kind: type) -> None:
    methods = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    assert [name for name in methods if not inspect.getdoc(getattr(kind, name))] == []


@pytest.mark.parametrize("kind", PUBLIC.values(), ids=PUBLIC)
def test_the_types_of_every_public_method_are_known_at_run_time(kind: type) -> None:
    """Frameworks that call methods for their users read the types at run time."""
    public = [getattr(kind, name) for name in dir(kind) if not name.startswith("_")]
    for method in filter(inspect.isfunction, public):
        assert "return" in typing.get_type_hints(method)
