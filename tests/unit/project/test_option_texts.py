"""`help()` explains each option of a queue, a worker and a job, in the words of its declaration."""

from __future__ import annotations

import pydoc
from pathlib import Path
from typing import Any

import pytest

import groupmq
import groupmq.sync
from groupmq.core.job_options import JOB_DEFAULTS
from groupmq.core.queue_options import QUEUE_DEFAULTS
from groupmq.core.worker_options import WORKER_DEFAULTS
from tools.option_texts import declared_options, stale, with_blocks

DECLARED = declared_options()
DEFAULTS = {"JobOptions": JOB_DEFAULTS, "QueueArguments": QUEUE_DEFAULTS, "WorkerArguments": WORKER_DEFAULTS}


def test_no_docstring_is_stale() -> None:
    assert stale() == {}, "run `make sync`"


@pytest.mark.parametrize("declared", DEFAULTS)
def test_every_option_has_a_text(declared: str) -> None:
    assert [*DECLARED[declared]] == [*DEFAULTS[declared]]


@pytest.mark.parametrize(
    ("shown", "declared"),
    [
        (groupmq.Queue, ["QueueArguments", "JobOptions", "WorkerArguments"]),
        (groupmq.Queue.add, ["JobOptions"]),
        (groupmq.Queue.process, ["WorkerArguments"]),
        (groupmq.Worker, ["WorkerArguments"]),
        (groupmq.sync.Queue, ["QueueArguments", "JobOptions"]),
        (groupmq.sync.Queue.add, ["JobOptions"]),
    ],
)
def test_help_explains_every_option(shown: Any, declared: list[str]) -> None:
    text = " ".join(pydoc.plain(pydoc.render_doc(shown)).replace("|", " ").split())
    for kind in declared:
        assert [name for name, words in DECLARED[kind].items() if f" {name}: {words}" not in text] == []


SOURCE = '''class Shelf:
    @shows_options(Sizes, SIZES)
    def __init__(self, **sizes):
        """Make a shelf."""

    def move(self):
        """Not decorated."""
'''
WRITTEN = '''class Shelf:
    @shows_options(Sizes, SIZES)
    def __init__(self, **sizes):
        """Make a shelf.

        Options:
            height: In metres.
        """

    def move(self):
        """Not decorated."""
'''


def test_a_block_is_written_once_and_follows_its_declaration() -> None:
    declared = {"Sizes": {"height": "In metres."}}
    assert with_blocks(SOURCE, declared) == WRITTEN
    assert with_blocks(WRITTEN, declared) == WRITTEN
    assert with_blocks(WRITTEN, {"Sizes": {"height": "In feet."}}) == WRITTEN.replace("metres", "feet")


def test_a_function_that_shows_options_needs_a_text_of_its_own() -> None:
    with pytest.raises(SystemExit, match="__init__"):
        with_blocks(SOURCE.replace('"""Make a shelf."""', "pass"), {"Sizes": {}})


def test_the_options_of_a_base_class_follow_those_of_the_class(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "shelf_options.py").write_text(
        'class Base:\n    depth: int\n    """In\n    metres."""\nclass Sizes(Base):\n    height: int\n    """Up."""\n',
        encoding="utf-8",
    )
    assert declared_options(tmp_path)["Sizes"] == {"height": "Up.", "depth": "In metres."}
