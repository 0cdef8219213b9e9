"""Repeating jobs, driven by hand: arguments that are refused before any call, and the handling of the answers."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

import msgspec
import pytest

from groupmq import Queue
from groupmq.client.answers.repeats import Definition, repeat_id
from groupmq.client.job import Job
from groupmq.core import record
from groupmq.core.codec import JSON
from groupmq.core.errors import ConfigurationError, PayloadTooLarge
from groupmq.core.limits import Throttle
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Stored
from groupmq.core.schedule import Cron, Every
from groupmq.protocol.commands import DefinitionsPage
from groupmq.sync import Queue as SyncQueue
from tests.support.by_hand import Operations
from tests.unit.client.queue.test_methods import arguments, play

OPTIONS = QueueOptions(name="q", max_payload=1000)
NOWHERE = "redis://127.0.0.1:1"
T0 = 1_700_000_000_000


def make(job_id: str, state: str, found: Stored) -> Job:
    return Job(None, JSON, job_id, state, found, OPTIONS.max_attempts)


REPEATING = Operations(OPTIONS, make)
UNTYPED: Any = REPEATING


def stored(repeat: Every | Cron, data: Any = 1, **changed: Any) -> tuple[str, bytes]:
    """A definition as the server would store it: its id and value."""
    _, calls = play(REPEATING._add_repeating(data, repeat, None, group_id="g"), DefinitionsPage(T0, {}, -1, "0"), True)
    named = arguments(calls[1])
    packed = msgspec.msgpack.encode(named["definition"] | changed)
    return named["id"], len(packed).to_bytes(4, "big") + packed + calls[1].blob


# Refused before any call

BAD: list[tuple[dict[str, Any], str]] = [
    ({"job_id": "x"}, "job_id: cannot be combined with repeat"),
    ({"order_ms": 5}, "order_ms: cannot be combined with repeat"),
    ({"order_ms": 0}, "order_ms: cannot be combined with repeat"),
    ({"delay": 5}, "delay: cannot be combined with repeat"),
    ({"delay": 0}, "delay: cannot be combined with repeat"),
    ({"run_at": 5}, "run_at: cannot be combined with repeat"),
    ({"dedupe": Throttle("k", 5)}, "dedupe: cannot be combined with repeat"),
    ({"repeat": 5}, "repeat: expected Every(seconds) or Cron(pattern, tz=...), got 5"),
    ({"repeat": "0 9 * * *"}, "repeat: expected Every(seconds)"),
    ({"repeat": Every}, "repeat: expected Every(seconds)"),
    ({"repeat": True}, "repeat: expected Every(seconds)"),
    ({"group_id": ""}, "group_id: expected a non-empty string"),
    ({"priority": -1}, "priority: expected an integer"),
    ({"ttl": 0}, "ttl: expected between"),
    ({"max_attempts": 0}, "max_attempts: expected an integer"),
    ({"data": object()}, "data: cannot be serialized"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=[message[:30] for _, message in BAD])
async def test_a_bad_repeat_is_refused_by_name_before_anything_is_asked(given: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"data": 1, "repeat": Every(5), **given}
    with pytest.raises(ConfigurationError) as caught:
        await Queue("q", NOWHERE).add(**fields)
    assert str(caught.value).startswith(message)
    with pytest.raises(ConfigurationError) as caught:
        SyncQueue("q", NOWHERE).add(**fields)
    assert str(caught.value).startswith(message)


def test_data_that_no_occurrence_could_carry_is_refused_at_the_definition() -> None:
    with pytest.raises(PayloadTooLarge, match=r"^data: "):
        REPEATING._add_repeating("x" * 2000, Every(5), None).send(None)


@pytest.mark.parametrize(
    ("group", "what", "named"),
    [
        ("", "k", "group_id"),
        (5, "k", "group_id"),
        ("g", "", "repeat_or_key"),
        ("g", None, "repeat_or_key"),
        ("g", 5, "repeat_or_key"),
        ("g", Every, "repeat_or_key"),
    ],
)
def test_removing_what_cannot_be_a_repeat_is_refused_by_name(group: Any, what: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{named}: expected "):
        UNTYPED.remove_repeating_job(group, what).send(None)


# Ids


def test_the_id_of_a_repeat_is_that_of_its_group_and_name_in_every_process() -> None:
    assert repeat_id("g", "every 5 s") == repeat_id("g", Every(5.0).name)
    names = [(None, "k"), ("g", "k"), ("g", "l"), ("h", "k"), ("gk", ""), ("g\0k", "k"), ("g", "k\0k"), ("k", "g")]
    assert len({repeat_id(group, name) for group, name in names}) == len(names)


def test_the_ids_of_occurrences_are_short_however_long_group_and_key_are() -> None:
    assert len(repeat_id("g" * 4096, "k" * 4096)) < 40


# Defining


def test_a_definition_is_read_then_written_against_what_was_read() -> None:
    job, calls = play(
        REPEATING._add_repeating("d", Every(5), None, group_id="g", ttl=3), DefinitionsPage(T0, {}, -1, "0"), True
    )
    assert [call.script for call in calls] == ["repeats", "define"]
    named = arguments(calls[1])
    assert (named["seen"], named["definition"]["next"], named["definition"]["ttl"]) == ("", T0 + 5000, 3000)
    assert "tick" not in named
    assert job.id == f"{named['id']}:{T0 + 5000}"


def test_a_definition_that_somebody_changed_meanwhile_is_read_again() -> None:
    rid, raw = stored(Every(5), count=4)
    answers = [DefinitionsPage(T0, {}, -1, "0"), False, DefinitionsPage(T0 + 7, {rid: raw}, -1, "0"), True]
    _, calls = play(REPEATING._add_repeating("new", Every(5), None, group_id="g"), *answers)
    assert [call.script for call in calls] == ["repeats", "define", "repeats", "define"]
    named = arguments(calls[3])
    assert named["seen"] == sha1(raw, usedforsecurity=False).hexdigest()
    assert record.data_of(calls[3].blob) == b'"new"'
    assert (named["definition"]["count"], named["definition"]["next"]) == (4, T0 + 5000)


def test_only_a_new_definition_runs_immediately() -> None:
    at_once = Every(5, immediately=True)
    _, calls = play(REPEATING._add_repeating(1, at_once, None, group_id="g"), DefinitionsPage(T0, {}, -1, "0"), True)
    assert arguments(calls[1])["tick"] == T0
    rid, raw = stored(Every(5))
    _, calls = play(
        REPEATING._add_repeating(1, at_once, None, group_id="g"), DefinitionsPage(T0 + 1, {rid: raw}, -1, "0"), True
    )
    assert "tick" not in arguments(calls[1])


def test_a_definition_comes_back_as_it_was_stored() -> None:
    rid, raw = stored(Every(5, key="k", limit=7), {"x": [1]}, last=T0, count=2)
    definition = Definition.read(raw)
    assert (definition.fields["key"], definition.fields["group"], definition.plan["every"]) == ("k", "g", 5_000_000)
    [found], _ = play(REPEATING.get_repeating_jobs(), DefinitionsPage(T0, {rid: raw}, -1, "0"))
    assert (found.key, found.group_id, found.data, found.count, found.limit) == ("k", "g", {"x": [1]}, 2, 7)


def test_all_pages_are_read_and_one_seen_twice_is_listed_once() -> None:
    one, two = stored(Every(5, key="a")), stored(Every(3, key="b"))
    pages = [DefinitionsPage(T0, dict([one]), -1, "17"), DefinitionsPage(T0, dict([one, two]), -1, "0")]
    found, calls = play(REPEATING.get_repeating_jobs(), *pages)
    assert [job.key for job in found] == ["b", "a"]
    assert [arguments(call)["cursor"] for call in calls] == ["0", "17"]


# Removing


def test_removing_is_done_against_what_was_read_and_tried_again() -> None:
    rid, raw = stored(Every(5, key="k"))
    found = DefinitionsPage(T0, {rid: raw}, -1, "0")
    removed, calls = play(REPEATING.remove_repeating_job("g", "k"), found, False, found, True)
    assert removed is True
    assert [call.script for call in calls] == ["repeats", "undefine"] * 2
    assert "definition" not in arguments(calls[3])
    assert calls[3].blob == raw


def test_removing_what_is_not_there_says_so() -> None:
    assert play(REPEATING.remove_repeating_job("g", Every(5)), DefinitionsPage(T0, {}, -1, "0"))[0] is False
