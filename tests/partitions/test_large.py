"""Large data of jobs and repeating jobs in a queue whose number of partitions changes."""

from __future__ import annotations

from typing import Any

import redis

from groupmq import Every, FailJob, Job, Worker
from groupmq.client.answers import moving
from tests.conftest import MakeQueue
from tests.support import keyspace
from tests.support.dump import Dump

LARGE = "x" * 20_000


def misplaced(client: redis.Redis) -> list[str]:
    """Data that is not in the partition of its job or repeating job."""
    dump, found = Dump(client), list[str]()
    for key in [key.decode() for key in dump if key.endswith(b"}:meta")]:
        prefix, _, rest = key.partition(":{")
        found += keyspace.violations(keyspace.read(dump, prefix, rest[: -len("}:meta")]))
    return [line for line in found if "data of" in line]


async def test_large_data_goes_with_its_job_and_its_repeat(make_queue: MakeQueue, client: redis.Redis) -> None:
    queue = make_queue("q", partitions=3, keep_completed=10, keep_failed=10)

    async def handle(job: Job) -> Any:
        if job.group_id == "bad":
            raise FailJob("no")
        return job.data

    for n in range(4):
        await queue.add([n, LARGE], job_id=f"done-{n}", group_id=f"g{n}")
    await queue.add(["bad", LARGE], job_id="failed", group_id="bad")
    await Worker(queue, handle).run(burst=True)
    await queue.add_many({"data": [n, LARGE], "job_id": f"waits-{n}", "group_id": f"g{n % 5}"} for n in range(10))
    await queue.add_many({"data": [n, LARGE], "job_id": f"loose-{n}", "delay": 3600} for n in range(5))
    for group in ("g0", "g1", None):
        await queue.add([group, LARGE], group_id=group, repeat=Every(3600))
    await queue.pause()
    ids = [
        *(f"done-{n}" for n in range(4)),
        "failed",
        *(f"waits-{n}" for n in range(10)),
        *(f"loose-{n}" for n in range(5)),
    ]

    async def contents() -> Any:
        jobs = [await queue.get_job(job_id) for job_id in ids]
        repeats = {one.group_id: one.data for one in await queue.get_repeating_jobs()}
        return [(job.id, job.state, job.data, job.group_id) for job in jobs if job is not None], repeats

    before = await contents()
    assert (len(before[0]), len(before[1])) == (len(ids), 3)
    for to in (5, 1, 2):
        queue = make_queue("q", keep_completed=10, keep_failed=10)
        await queue.repartition(to)
        queue = make_queue("q", keep_completed=10, keep_failed=10)
        assert await contents() == before
        assert misplaced(client) == []
    assert (await queue.repair()).mended == {}
    await queue.obliterate()
    assert client.keys("*") == []


def test_data_of_a_repeat_is_distinguished_from_that_of_a_job() -> None:
    assert moving.repeat_of("bodies", b"\xffrepeat-1") == b"repeat-1"
    assert moving.repeat_of("bodies", b"job") is None
    assert moving.repeat_of("state", b"\xffjob") is None
