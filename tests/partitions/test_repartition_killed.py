"""`groupmq queue repartition` as a process that is killed and started again: contents and order stay the same."""

from __future__ import annotations

import signal

import pytest
import redis

from groupmq import Queue
from groupmq.core.partitions import Part
from groupmq.protocol.keys import Keys
from tests.conftest import MakeQueue
from tests.partitions.killing import check_order, kill_and_go_on
from tests.support import repartitioning
from tests.support.waiting import wait_until

MANY = 4000


@pytest.mark.timeout(300)
async def test_a_repartition_killed_at_any_step_can_be_continued(url: str, client: redis.Redis) -> None:
    queue = await kill_and_go_on(url, "q", 10)
    async with queue:
        await check_order(queue)
        await queue.obliterate()
    assert client.keys("*") == []


@pytest.mark.parametrize("kills", [1, 3])
async def test_a_repartition_killed_while_it_copies_can_be_continued(
    url: str, make_queue: MakeQueue, client: redis.Redis, kills: int
) -> None:
    queue = make_queue("q", partitions=2)
    groups = [f"g{n}" for n in range(40)]
    await queue.add_many({"data": n, "group_id": g} for n in range(MANY // 40) for g in groups)
    await queue.pause()
    before = {g: [job.id for job in (await queue.get_group_jobs(g, 1000)).jobs] for g in groups}
    copies = [Keys("groupmq", "q", Part(n, 3)).fixed("jobs") for n in range(3)]
    for _ in range(kills):
        client.unlink(*copies)  # left by the previous kill; the next run would delete them and start again
        process = repartitioning.start(url, "q", 3)
        wait_until(lambda: client.exists(*copies), "some jobs are copied", 60)
        process.kill()
        assert process.wait(20) == -signal.SIGKILL
        assert process.stdout is not None
        process.stdout.close()
    code, said = repartitioning.run(url, "q", 3)
    assert code == 0, said
    async with Queue("q", url) as fresh:
        assert {g: [job.id for job in (await fresh.get_group_jobs(g, 1000)).jobs] for g in groups} == before
        assert (await fresh.repair()).clean
