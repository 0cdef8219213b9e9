"""Open breakers of a queue with partitions: counted, listed by how long they are open, kept by a repartition."""

from __future__ import annotations

from groupmq import Breaker, Queue
from groupmq.core.partitions import place_of
from tests.conftest import MakeQueue
from tests.support.breaking import open_breakers

NAMES = ["g4", "g5", "g6", "g7", "g0", "g1", "g2", "g3"]


async def test_open_breakers_are_counted_and_listed_over_all_partitions_even_after_a_repartition(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue("spread", partitions=4, breaker=Breaker(failures=1, cooldown=3600))
    assert len({place_of(name) % 4 for name in NAMES}) == 4
    await open_breakers(queue, *NAMES)
    before = await queue.get_open_breakers()
    assert [one.id for one in before] == NAMES
    await agrees(queue)
    assert [one.id for one in await queue.get_open_breakers(3, 2)] == NAMES[2:5]
    await queue.pause()
    for partitions in (2, 1, 3):
        await queue.repartition(partitions)
        assert [(one.id, one.breaker_since) for one in await queue.get_open_breakers()] == [
            (one.id, one.breaker_since) for one in before
        ]
        await agrees(queue)
        assert (await queue.repair()).mended == {}


async def agrees(queue: Queue) -> None:
    metrics, survey, page = await queue.get_metrics(), await queue.survey(), await queue.get_groups(state="breaker")
    assert metrics.breakers_open == survey.breakers_open == page.total == len(NAMES)
    assert [one.id for one in survey.breakers] == [lane.group.id for lane in page.groups] == NAMES
    (found,) = [one for one in await queue.check() if one.name == "open breakers"]
    assert found.detail.startswith(f"8 groups; '{NAMES[0]}' for ")
