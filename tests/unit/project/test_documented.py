"""What the guide promises to those who come from bee-queue: every setting has its counterpart, and that exists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from groupmq import Queue, Worker
from groupmq.sync import Queue as SyncQueue

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


@pytest.mark.parametrize("kind", [Queue, SyncQueue])
def test_every_public_name_of_a_queue_stands_in_the_reference(kind: type[Queue] | type[SyncQueue]) -> None:
    """A name that is not worth a word there is plumbing, and private."""
    words = set(re.findall(r"\w+", (DOCS / "reference.md").read_text(encoding="utf-8")))
    names = {name for name in dir(kind("orders", "redis://127.0.0.1:1")) if not name.startswith("_")}
    assert names - words == set()
