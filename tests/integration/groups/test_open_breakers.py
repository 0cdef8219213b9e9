"""Groups whose breaker is open: counted, listed and shown, as users see them."""

from __future__ import annotations

import pytest
import redis

from groupmq import Breaker, ConfigurationError, Job, Queue, Worker
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.breaking import open_breakers
from tests.support.waiting import eventually

HOUR = 3600


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("q", breaker=Breaker(failures=1, cooldown=HOUR))


async def count(queue: Queue) -> int:
    """The number of open breakers. Checks that it is the same everywhere."""
    metrics, survey = await queue.get_metrics(), await queue.survey()
    page = await queue.get_groups(state="breaker")
    assert metrics.breakers_open == survey.breakers_open == len(survey.breakers) == page.total == len(page.groups)
    assert (metrics.longest_breaker_open is None) == (metrics.breakers_open == 0)
    return metrics.breakers_open


async def test_open_breakers_are_counted_and_listed_the_longest_open_first(queue: Queue, url: str) -> None:
    assert (await count(queue), await queue.get_open_breakers()) == (0, [])
    await open_breakers(queue, "b", "a")
    await queue.add(1, group_id="fine")
    assert await count(queue) == 2
    found = await queue.get_open_breakers()
    assert [(one.id, one.failures, one.waiting, one.state) for one in found] == [
        ("b", 1, 1, "parked"),
        ("a", 1, 1, "parked"),
    ]
    for one in found:
        assert one.breaker_since is not None
        assert one.breaker_until is not None
        assert (one.breaker_until - one.breaker_since).total_seconds() == HOUR
        assert (await queue.get_group(one.id)).breaker_since == one.breaker_since
    assert [one.id for one in await queue.get_open_breakers(1, 1)] == ["a"]
    assert [lane.group.id for lane in (await queue.get_groups(state="breaker")).groups] == ["b", "a"]
    assert [lane.group.id for lane in (await queue.get_groups(state="breaker", match="A")).groups] == ["a"]
    fine = await queue.get_group("fine")
    assert (fine.failures, fine.breaker_since, fine.breaker_until) == (0, None, None)
    with SyncQueue("q", url) as blocking:
        assert [one.id for one in blocking.get_open_breakers()] == ["b", "a"]
    with pytest.raises(ConfigurationError, match="limit"):
        await queue.get_open_breakers(1001)


async def test_the_count_holds_whatever_is_done_to_the_group(queue: Queue, client: redis.Redis) -> None:
    await open_breakers(queue, "g", "h")
    assert await queue.retry("g-0")
    await queue.pause_group("g")
    await queue.resume_group("g")
    assert await count(queue) == 2
    assert await queue.repair() == await queue.repair()
    await queue.purge()
    assert [one.id for one in await queue.get_open_breakers()] == ["g", "h"], "failures outlive the jobs of their group"
    await queue.reconfigure(breaker=None)
    assert (await count(queue), await queue.get_open_breakers()) == (0, [])
    await queue.reconfigure(breaker=Breaker(1, HOUR))
    assert await count(queue) == 2
    key = Keys("groupmq", "q").fixed("opened")
    client.zrem(key, "g")
    client.zadd(key, {"stranger": 1})
    assert (await queue.repair()).mended == {
        "open breaker that is not listed": ["g"],
        "failures in a row that cannot be read": ["stranger"],
    }
    assert {one.id for one in await queue.get_open_breakers()} == {"g", "h"}
    await queue.obliterate()
    assert client.keys("*opened*") == []


async def test_a_job_that_completes_closes_the_breaker(make_queue: MakeQueue) -> None:
    queue = make_queue("q", breaker=Breaker(failures=1, cooldown=0.001))
    await open_breakers(queue, "g", behind=0)

    async def works(job: Job) -> None:
        """A handler that succeeds, since the endpoint works again."""

    await queue.add(1, group_id="g")
    await Worker(queue, works).run(burst=True)

    async def closed() -> bool:
        await Worker(queue, works).run(burst=True)
        return await count(queue) == 0

    await eventually(closed, "its rest is over, and the job has completed")


async def test_check_names_the_breaker_that_opened_first(queue: Queue, make_queue: MakeQueue) -> None:
    await queue.add(1, group_id="fine", delay=HOUR)
    assert [one.detail for one in await queue.check() if one.name == "open breakers"] == ["none"]
    await open_breakers(queue, "b", "a")
    (found,) = [one for one in await queue.check() if one.name == "open breakers"]
    assert found.status == "warn"
    assert found.detail.startswith("2 groups; 'b' for ")
    assert found.detail.endswith("1 failed attempt in a row")
    other = make_queue("other")
    await other.add(1)
    assert [one for one in await other.check() if one.name == "open breakers"] == [], "the queue has no breaker"
