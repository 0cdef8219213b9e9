"""`create_job`: a job described step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.core.backoff import Backoff
from groupmq.core.draft_chain import JobDraft
from groupmq.core.errors import ConfigurationError, PayloadTooLarge
from groupmq.core.job_options import JOB_OPTIONS
from groupmq.core.limits import Debounce, Throttle
from groupmq.core.queue_options import QueueOptions

OPTIONS = QueueOptions(name="q", max_payload=1000)


class BytesOnly:
    """A serializer for bytes and nothing else."""

    def encode(self, value: Any, /) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError("only bytes")
        return value

    def decode(self, raw: bytes, /) -> Any:
        return raw


def saved(data: Any, **fields: Any) -> dict[str, Any]:
    return {"data": data, **fields}


def chain(data: Any = 1, options: QueueOptions = OPTIONS) -> JobDraft[dict[str, Any]]:
    return JobDraft(options, saved, data)


def test_steps_become_the_arguments_of_add() -> None:
    policy = Backoff.fixed(1)
    job = chain({"x": 1}).group("g").retries(4).timeout(9).delay(5).backoff(policy).priority(7).order(-3).set_id("me")
    assert job.save() == {
        "data": {"x": 1},
        "group_id": "g",
        "max_attempts": 5,
        "timeout": 9,
        "delay": 5,
        "backoff": policy,
        "priority": 7,
        "order_ms": -3,
        "job_id": "me",
    }


STEPS = {"group_id": "group", "max_attempts": "retries", "order_ms": "order", "job_id": "set_id"}
"""The steps that have another name than their option."""


@pytest.mark.parametrize("option", sorted(JOB_OPTIONS))
def test_every_option_of_a_job_is_a_step(option: str) -> None:
    assert callable(getattr(JobDraft, STEPS.get(option, option)))


def test_the_rarer_options_are_steps_too() -> None:
    job = chain().set_id("me").unique_for(60).run_at(2_000_000_000).on_retry("yield").on_failed("hold")
    assert job.save() == {
        "data": 1,
        "job_id": "me",
        "unique_for": 60,
        "run_at": 2_000_000_000,
        "on_retry": "yield",
        "on_failed": "hold",
    }


def test_a_time_to_start_and_a_key_are_steps_too() -> None:
    once = Throttle("k", 5)
    assert chain().ttl(9).dedupe(once).save() == {"data": 1, "ttl": 9, "dedupe": once}


@pytest.mark.parametrize(
    "steps",
    [lambda job: job.delay(5).dedupe(Debounce("k", 5)), lambda job: job.dedupe(Debounce("k", 5)).delay(5)],
)
def test_steps_that_exclude_each_other_are_refused_in_either_order(steps: Callable[[JobDraft[Any]], object]) -> None:
    with pytest.raises(ConfigurationError, match=r"^dedupe: a Debounce brings its own delay"):
        steps(chain())


def test_retries_are_runs_after_the_first() -> None:
    assert chain().retries(0).save()["max_attempts"] == 1


def test_a_later_step_replaces_an_earlier_one() -> None:
    assert chain().group("a").group("b").save()["group_id"] == "b"


def test_saving_does_not_use_the_draft_up() -> None:
    job = chain()
    assert job.save() == job.save()


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (lambda job: job.group(""), "group_id"),
        (lambda job: job.retries(-1), "retries"),
        (lambda job: job.retries(65_535), "retries"),
        (lambda job: job.retries(True), "retries"),
        (lambda job: job.timeout(0), "timeout"),
        (lambda job: job.delay(-1), "delay"),
        (lambda job: job.backoff("x"), "backoff"),
        (lambda job: job.priority(1024), "priority"),
        (lambda job: job.order(2**63), "order_ms"),
        (lambda job: job.set_id(""), "job_id"),
        (lambda job: job.ttl(0), "ttl"),
        (lambda job: job.ttl("5"), "ttl"),
        (lambda job: job.dedupe("key"), "dedupe"),
    ],
)
def test_a_bad_step_is_refused_at_once_and_leaves_the_draft_as_it_was(
    step: Callable[[JobDraft[Any]], object], named: str
) -> None:
    job = chain()
    with pytest.raises(ConfigurationError, match=f"^{named}: expected "):
        step(job)
    assert job.save() == {"data": 1}


def test_bad_data_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"^data: cannot be serialized"):
        chain(object())
    with pytest.raises(PayloadTooLarge, match=r"^data: "):
        chain("x" * 1000)


def test_a_serializer_sees_only_the_users_own_data() -> None:
    job = chain(b"\xff", QueueOptions(name="q", serializer=BytesOnly()))
    assert job.group("g").save() == {"data": b"\xff", "group_id": "g"}
