"""The reserve of a worker, without a server: its jobs start when a slot becomes free, or are given back."""

from __future__ import annotations

import asyncio
import math

import pytest

from groupmq.client.job import Job
from groupmq.core.codec import JSON
from groupmq.core.record import Record
from groupmq.worker.running import executor
from groupmq.worker.running.executor import PATIENCE
from tests.unit.worker.running.test_executor_rows import Harness, Requester


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep jobs from being given back because the machine is slow. Tests of this limit set their own."""
    monkeypatch.setattr(executor, "PATIENCE", 60.0)
    monkeypatch.setattr(executor, "ROW_PATIENCE", 60.0)


def job(fence: int, name: str, max_attempts: int = 3) -> Job:
    made = Job(None, JSON, name, "active", Record(0, 0, 0, 0, max_attempts, False, name, {}, b"1"), max_attempts)
    made.fence = fence
    return made


def reserve(harness: Harness, names: str, *, first: int = 2, requester: Requester | None = None) -> None:
    """Reserve jobs, each in a different group."""
    for fence, name in enumerate(names, first):
        harness.executor.reserve([job(fence, name)], requester or harness.requester, math.inf)


async def test_they_start_in_their_order_in_the_slot_that_becomes_free() -> None:
    harness = Harness()
    harness.start("a")
    reserve(harness, "bc")
    assert (harness.executor.unstarted, harness.executor.slots_used) == (2, 1)
    await harness.hears("c completed")
    assert harness.said == ["a starts", "a completed", "b starts", "b completed", "c starts", "c completed"]
    assert harness.urgent == [False, False, True], "the reports travel together"
    assert harness.contexts == ["nothing"] * 3
    assert harness.nothing_left


async def test_the_last_of_a_requester_is_reported_at_once() -> None:
    harness = Harness()
    harness.start("a")
    reserve(harness, "b", requester=harness.other_requester)
    await harness.hears("b completed")
    assert harness.urgent == [True, True]
    assert harness.requesters == {harness.requester, harness.other_requester}


async def test_one_that_may_run_once_is_reported_at_once() -> None:
    harness = Harness()
    harness.executor.start([job(1, "a", max_attempts=1)], harness.requester, math.inf)
    reserve(harness, "b")
    await harness.hears("b completed")
    assert harness.urgent == [True, True]


async def test_one_that_fails_frees_its_slot_for_the_next_one() -> None:
    harness = Harness()
    harness.errors = {"a": ValueError("x"), "b": SystemExit(1)}
    harness.start("a")
    reserve(harness, "bc")
    await harness.hears("c completed")
    assert harness.said == ["a starts", "a retrying", "b starts", "b retrying", "c starts", "c completed"]
    assert harness.nothing_left


async def test_no_more_start_than_there_are_slots() -> None:
    harness = Harness()
    reserve(harness, "bcd")
    harness.executor.start_reserved(0)
    assert harness.said == []
    harness.executor.start_reserved(1)
    assert (harness.executor.slots_used, harness.executor.unstarted) == (1, 2)
    await harness.hears("d completed")
    assert harness.nothing_left


async def test_where_no_slot_becomes_free_they_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "PATIENCE", PATIENCE)
    harness = Harness()
    gate = asyncio.Event()
    harness.start("a", a=gate)
    reserve(harness, "bc")
    await harness.hears("c released")
    assert harness.said == ["a starts", "b released", "c released"]
    gate.set()
    await harness.hears("a completed")
    assert harness.nothing_left


async def test_what_waited_too_long_here_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "ROW_LASTS", -1)
    harness = Harness()
    harness.start("a")
    reserve(harness, "bc")
    await harness.hears("a completed")
    assert harness.said == ["a starts", "b released", "c released", "a completed"]
    assert harness.nothing_left


async def test_what_another_worker_wants_goes_back_and_later_ones_stay() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("a", a=gate)
    reserve(harness, "bcd")
    assert [one.id for one, requester in harness.executor.withdraw_reserved(3) if requester is harness.requester] == [
        "b",
        "c",
    ]
    reserve(harness, "e", first=3)
    assert harness.said == ["e released"], "it was still on its way when the reserve was asked back"
    gate.set()
    await harness.hears("d completed")
    assert harness.said[1:] == ["a starts", "a completed", "d starts", "d completed"]
    assert harness.nothing_left


async def test_closing_gives_back_the_whole_reserve() -> None:
    harness = Harness()
    harness.start("ab")
    reserve(harness, "cd", first=3)
    harness.executor.give_back_all()
    await harness.hears("a completed")
    assert sorted(harness.said) == ["a completed", "a starts", "b released", "c released", "d released"]
    assert harness.nothing_left


async def test_an_operator_asks_for_one_of_them_and_the_others_stay() -> None:
    harness = Harness()
    gate = asyncio.Event()
    harness.start("a", a=gate)
    reserve(harness, "bcd")
    assert [one.id for one, _ in harness.executor.withdraw([3])] == ["c"]
    gate.set()
    await harness.hears("d completed")
    assert harness.said == ["a starts", "a completed", "b starts", "b completed", "d starts", "d completed"]
    assert harness.nothing_left
