"""The two requesters of a worker with short handlers: while the jobs of one run, the server handles the call of the
other."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from groupmq import Queue, Worker
from groupmq.protocol.commands import Advanced, Call
from groupmq.worker.fetching.requester import Requester
from groupmq.worker.parts import WorkerParts
from tests.support.parts import at_start
from tests.support.rows import add_to_groups, whatever_happens
from tests.support.workers import Recorder

LARGE, APART = 50, 0.0005


class Trip(NamedTuple):
    sent: float
    noted: float
    """The time that the worker recorded for the sending. It is a little earlier, and much earlier on a busy machine."""
    answered: float
    jobs: int


def watched(worker: Worker) -> list[Trip]:
    """Record the calls that the worker makes from now on."""
    trips: list[Trip] = []

    def watch(parts: WorkerParts) -> None:
        fetcher = parts.fetcher
        persist = fetcher._persist

        async def timed(call: Call[Advanced], requester: Requester) -> Advanced:
            sent, noted = time.monotonic(), fetcher._demand.large_sent
            answer = await persist(call, requester)
            trips.append(Trip(sent, noted, time.monotonic(), max(len(answer.accepted), len(answer.jobs))))
            return answer

        fetcher._persist = timed  # type: ignore[method-assign]

    at_start(worker, watch)
    return trips


@pytest.mark.parametrize("handlers", ["short", "waiting"])
async def test_large_calls_are_not_sent_together(queue: Queue, handlers: str) -> None:
    """Otherwise the server would answer both at the same time. Worker and server would wait for each other."""
    await add_to_groups(queue, 300, 30)
    worker = whatever_happens(Worker(queue, Recorder(0.0 if handlers == "short" else 0.0005), concurrency=100))
    trips = watched(worker)
    await worker.run(burst=True)
    assert worker.get_worker_metrics().completed == 9000
    large = sorted(trip for trip in trips if trip.jobs >= LARGE)
    overlapping = [(one, next_one) for one, next_one in pairwise(large) if one.answered > next_one.sent]
    assert overlapping, "the requesters never overlap"
    assert min(next_one.noted - one.noted for one, next_one in overlapping) >= APART
    apart = [next_one.sent - one.sent >= APART for one, next_one in overlapping]
    assert sum(apart) > 0.7 * len(apart), "the recorded times do not match the real ones"


async def test_a_call_of_the_other_requester_is_sent_before_an_answer_is_read(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_to_groups(queue, 300, 30)
    worker = whatever_happens(Worker(queue, Recorder(), concurrency=100))
    unsent: list[int] = []

    def watch(parts: WorkerParts) -> None:
        take_on = parts.dispatcher.take_on

        def watched_take_on(*args: Any) -> None:
            unsent.append(parts.fetcher._demand.unsent)
            take_on(*args)

        monkeypatch.setattr(parts.dispatcher, "take_on", watched_take_on)

    at_start(worker, watch)
    await worker.run(burst=True)
    assert worker.get_worker_metrics().completed == 9000
    assert set(unsent) == {0}
