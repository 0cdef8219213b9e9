"""Failed jobs by kind: the class of the error and the shape of its message."""

from __future__ import annotations

import asyncio

from groupmq import FailJob, Job, Queue, Worker
from tests.conftest import MakeQueue


class CardDeclined(Exception):
    """An error class of the user."""


async def fail(job: Job) -> None:
    kind = job.data["kind"]
    if kind == "card":
        raise CardDeclined(f"card {job.data['n']} of 'user {job.data['n']}' declined")
    if kind == "long":
        raise ValueError("x" * 1024 * 1024)
    raise FailJob("gone") if kind == "gone" else KeyError("missing")


async def run_all(queue: Queue) -> None:
    async with asyncio.timeout(30):
        await Worker(queue, fail, max_attempts=1, concurrency=5).run(burst=True)


async def test_failures_are_grouped_by_class_and_shape_the_most_frequent_first(queue: Queue) -> None:
    for n, kind in enumerate(["card"] * 5 + ["gone"] * 2 + ["key"] * 3):
        await queue.add({"kind": kind, "n": n}, job_id=f"{kind}-{n}", group_id=f"g{n}")
    await run_all(queue)
    found = await queue.get_failure_groups()
    assert (found.scanned, found.total) == (10, 10)
    told = [(group.error_class, group.shape, group.count) for group in found.groups]
    path = f"{__name__}.CardDeclined"
    assert told == [
        (path, "card # of '...' declined", 5),
        ("KeyError", "'...'", 3),
        ("groupmq.errors.FailJob", "gone", 2),
    ]
    cards = found.groups[0]
    assert found.since is not None
    assert found.until is not None
    assert found.since <= cards.first <= cards.last <= found.until
    assert cards.sample_job_id.startswith("card-")
    assert [sum(group.series) for group in found.groups] == [5, 3, 2]
    assert all(len(group.series) == 24 for group in found.groups)
    assert len((await queue.get_failure_groups(1)).groups) == 1


async def test_the_newest_failures_are_looked_at(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_failed=1000)
    for n in range(300):
        await queue.add({"kind": "card" if n < 50 else "gone", "n": n}, group_id="g")
    await run_all(queue)
    found = await queue.get_failure_groups(scan=250)
    assert (found.scanned, found.total) == (250, 300)
    assert [(group.shape, group.count) for group in found.groups] == [("gone", 250)]
    assert (await queue.get_failure_groups()).scanned == 300


async def test_what_no_handler_raised_has_no_class(queue: Queue) -> None:
    await queue.add({}, job_id="a")
    await queue.fail("a", "by hand 7")
    (group,) = (await queue.get_failure_groups()).groups
    assert (group.error_class, group.shape, group.sample_job_id) == (None, "by hand #", "a")
    (failure,) = await queue.get_failures()
    assert (failure.error_class, failure.group_id) == (None, None)


async def test_a_message_of_a_megabyte_has_a_short_shape(queue: Queue) -> None:
    for n in range(40):
        await queue.add({"kind": "long", "n": n}, group_id="g")
    await run_all(queue)
    found = await queue.get_failure_groups()
    assert [(group.error_class, group.count) for group in found.groups] == [("ValueError", 40)]
    assert len(found.groups[0].shape) <= 200
    failure = (await queue.get_failures(1))[0]
    assert (failure.error_class, failure.group_id) == ("ValueError", "g")


async def test_there_are_no_groups_where_nothing_failed(queue: Queue) -> None:
    found = await queue.get_failure_groups()
    assert (found.groups, found.scanned, found.total, found.since) == ([], 0, 0, None)
