"""Events that are gone from the log before a listener that was cut off is back: reported as a gap; no wait hangs."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import pytest

from groupmq import JobRemoved, Queue
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.listening import Heard, end_connections, hears, listening, readers
from tests.support.waiting import wait_until
from tests.support.workers import one_kind

NEVER = 3600.0
BEGINNING = "0-1/0/0"
"""A position before the first event of a queue."""


def cut_off(client: Any) -> None:
    """End the connections that read the log. Until the test awaits something, its own event loop stands still."""
    end_connections(client, readers(client))
    assert readers(client) == []


def forget(client: Any, queue: Queue) -> None:
    """Trim the log to its last entry."""
    client.xtrim(Keys("groupmq", queue.name).fixed("events"), maxlen=1, approximate=False)


def miss_some(client: Any, queue: Queue, url: str) -> None:
    """Publish events that are trimmed from the log before any current listener can read them."""
    cut_off(client)
    with SyncQueue(queue.name, url) as other:
        for n in range(5):
            other.add(n, job_id=f"missed-{n}")
    forget(client, queue)


async def test_a_gap_is_delivered_to_listeners_of_the_queue(queue: Queue, url: str, client: Any) -> None:
    called = Heard()
    async with listening(queue, client) as heard:
        for kind in ("gap", "added"):
            queue.on(kind, called.append)
        await queue.add("seen", job_id="seen")
        await heard.has("added")
        await called.has("added")
        await hears(client)
        miss_some(client, queue, url)
        await heard.has("gap")
        await called.has("gap")
        await heard.has("added", 2)
        await called.has("added", 2)
    for found in (heard, called):
        assert found.kinds() == ["added", "gap", "added"]
        assert found.ids("added") == ["seen", "missed-4"], "events that the log still holds are delivered"


async def test_a_gap_is_delivered_to_listeners_of_a_job(queue: Queue, url: str, client: Any) -> None:
    heard, witness = Heard(), Heard()
    queue.on("gap", witness.append)
    job = await queue.add(1)
    for kind in ("gap", "added", "completed"):
        job.on(kind, heard.append)
    await heard.has("added")
    await hears(client)
    miss_some(client, queue, url)
    await witness.has("gap")
    await heard.has("gap", timeout=2)
    assert heard.kinds() == ["added", "gap"]


def test_a_gap_is_delivered_by_the_blocking_client(url: str, client: Any) -> None:
    with SyncQueue("twin", url) as queue:
        for n in range(6):
            queue.add(n, job_id=str(n))
        first = next(queue.events(BEGINNING))
        assert (first.kind, first.job_id) == ("added", "0")
        client.xtrim(Keys("groupmq", "twin").fixed("events"), maxlen=1, approximate=False)
        resumed = list(islice(queue.events(first.id), 2))
        assert [(event.kind, event.job_id) for event in resumed] == [("gap", None), ("added", "5")]


@one_kind
@pytest.mark.parametrize("kept", [True, False])
async def test_a_result_call_looks_at_the_job_when_its_end_fell_into_a_gap(
    make_queue: MakeQueue, url: str, client: Any, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """The wait ends at once, not at the next periodic check. A job that is not kept is reported as removed, since its
    outcome is unknown."""
    monkeypatch.setattr("groupmq.client.events.results._LOOK_AGAIN", NEVER)
    keep: dict[str, Any] = {"keep_completed": 100 if kept else 0}
    queue = make_queue(**keep)
    async with listening(queue, client) as heard:
        job = await queue.add({}, delay=0.05)
        await heard.has("added")
        task = asyncio.create_task(job.result(20))
        await hears(client)
        with Fleet(url, queue.name, **keep) as fleet:
            cut_off(client)
            fleet.start()
            fleet.wait_for(lambda: fleet.lines("completed"), "the job is done")
        with SyncQueue(queue.name, url, **keep) as other:
            other.add("last", delay=60)
        wait_until(lambda: not readers(client), "no listener has reconnected yet")
        forget(client, queue)
        if kept:
            assert await task == job.id
        else:
            with pytest.raises(JobRemoved, match=job.id):
                await task
        await heard.has("gap")
