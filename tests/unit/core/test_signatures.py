"""Options are declared once and shown in each signature. The error for an unknown option names the nearest one."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from groupmq import Queue, Worker
from groupmq.core.drafts import draft
from groupmq.core.job_options import JOB_DEFAULTS, JobOptions
from groupmq.core.queue_options import QUEUE_DEFAULTS, QueueArguments, QueueOptions
from groupmq.core.signatures import unknown_option
from groupmq.core.worker_options import WORKER_DEFAULTS, WorkerArguments
from groupmq.sync import Queue as SyncQueue

NOWHERE = "redis://127.0.0.1:1"


@pytest.mark.parametrize(
    ("declared", "defaults"),
    [(JobOptions, JOB_DEFAULTS), (QueueArguments, QUEUE_DEFAULTS), (WorkerArguments, WORKER_DEFAULTS)],
)
def test_every_option_that_is_declared_has_a_default(declared: type, defaults: dict[str, Any]) -> None:
    assert declared.__annotations__.keys() == defaults.keys()


def test_a_draft_takes_the_options_of_a_job_with_the_same_defaults() -> None:
    options = QueueOptions(name="q")
    assert draft(options, 1, **JOB_DEFAULTS)._replace(id="") == draft(options, 1)._replace(id="")
    for name in ("headers", "ids", "foo"):
        with pytest.raises(TypeError, match=name):
            draft(options, 1, **{name: None})


@pytest.mark.parametrize("queue", [Queue, SyncQueue])
def test_signatures_show_each_option_with_its_default(queue: Any) -> None:
    add = inspect.signature(queue.add).parameters
    assert {name: add[name].default for name in JOB_DEFAULTS} == JOB_DEFAULTS
    assert list(add)[:2] == ["queue", "data"]
    assert add["repeat"].default is None
    assert str(add["group_id"].annotation) == "str | None"
    made = inspect.signature(queue).parameters
    assert {name: made[name].default for name in QUEUE_DEFAULTS} == QUEUE_DEFAULTS


def test_the_signature_of_a_worker_shows_its_options() -> None:
    made = inspect.signature(Worker).parameters
    assert {name: made[name].default for name in WORKER_DEFAULTS} == WORKER_DEFAULTS
    assert list(made)[:2] == ["queue", "handler"]


def test_the_signature_of_process_shows_the_options_of_a_worker() -> None:
    made = inspect.signature(Queue.process).parameters
    assert {name: made[name].default for name in WORKER_DEFAULTS} == WORKER_DEFAULTS
    assert list(made)[:3] == ["self", "handler", "concurrency"]


async def handle(job: Any) -> None: ...


@pytest.mark.parametrize("name", ["headers", "ids", "queue", "data_", "foo"])
async def test_what_is_no_option_of_a_job_is_refused_by_both_clients(name: str) -> None:
    options: Any = {name: 1}
    message = rf"^Queue\.add\(\) got an unexpected keyword argument '{name}'"
    with pytest.raises(TypeError, match=message):
        await Queue("q", NOWHERE).add(1, **options)
    with pytest.raises(TypeError, match=message):
        SyncQueue("q", NOWHERE).add(1, **options)


async def test_a_misspelt_option_is_answered_with_the_nearest_one() -> None:
    wrong: Any = {"grup_id": "g"}
    with pytest.raises(TypeError, match=r"'grup_id'; did you mean 'group_id'\?$"):
        await Queue("q", NOWHERE).add(1, **wrong)
    wrong = {"jobtimeout": 5}
    with pytest.raises(TypeError, match=r"^Queue\(\) got .* 'jobtimeout'; did you mean 'job_timeout'\?$"):
        SyncQueue("q", NOWHERE, **wrong)
    wrong = {"concurency": 5}
    with pytest.raises(TypeError, match=r"^Worker\(\) got .* 'concurency'; did you mean 'concurrency'\?$"):
        Worker(Queue("q", NOWHERE), handle, **wrong)


def test_known_options_are_no_error() -> None:
    assert unknown_option("f", ["a"], ["a", "b"]) is None
