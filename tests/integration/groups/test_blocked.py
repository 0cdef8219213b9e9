"""A group whose head failed for good, as users see it: blocked, skipped, resumed. Also breakers and Snooze."""

from __future__ import annotations

from datetime import datetime

import pytest

from groupmq import Breaker, ConfigurationError, FailJob, Job, Queue, Snooze, Worker, WrongState
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Listener


async def fail_first(job: Job) -> None:
    if job.data == 0:
        raise FailJob("declined")


async def added(queue: Queue, n: int = 3, group_id: str = "g") -> list[Job]:
    return await queue.add_many({"data": i, "group_id": group_id, "job_id": f"{group_id}{i}"} for i in range(n))


async def moved_on(queue: Queue) -> bool:
    """Wait until the server's clock has left the millisecond in which a group was last blocked."""
    last = (await queue.get_blocked_groups())[-1].blocked_since
    assert last is not None
    return (await queue.survey()).at > last


def str_of(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


async def test_a_group_stops_behind_a_job_that_failed_for_good_and_others_go_on(make_queue: MakeQueue) -> None:
    queue = make_queue("q", on_failed="hold")
    await added(queue)
    await added(queue, 2, "other")
    await Worker(queue, fail_first, concurrency=4).run(burst=True)
    group = await queue.get_group("g")
    assert (group.state, group.blocked_by, group.blockers, group.waiting) == ("blocked", "g0", 1, 2)
    assert group.blocked_since is not None
    assert group.held is not None
    assert "failed for good" in group.held.explanation
    assert (await queue.get_metrics()).groups_blocked == 2
    assert await queue.get_completed_count() == 0


@pytest.mark.parametrize("how", ["skip", "retry", "remove", "resume_group"])
async def test_a_blocked_group_goes_on_when_someone_decides(make_queue: MakeQueue, how: str) -> None:
    queue = make_queue("q", on_failed="hold")
    first, second, third = await added(queue)
    await Worker(queue, fail_first).run(burst=True)
    assert (await queue.get_group("g")).state == "blocked"
    if how == "retry":
        await first.update_data(1)
    assert await (queue.resume_group("g") if how == "resume_group" else getattr(first, how)())
    await Worker(queue, fail_first).run(burst=True)
    assert [await second.get_state(), await third.get_state()] == ["completed"] * 2
    assert (await queue.get_group("g")).state == "idle"
    ends = {"skip": "failed", "resume_group": "failed", "retry": "completed", "remove": None}
    found = await queue.get_job(first.id)
    assert (found.state if found else None) == ends[how]


async def test_resuming_a_paused_and_blocked_group_ends_the_pause_only(make_queue: MakeQueue) -> None:
    queue = make_queue("q", on_failed="hold")
    await added(queue)
    await Worker(queue, fail_first).run(burst=True)
    await queue.pause_group("g")
    assert await queue.resume_group("g")
    assert (await queue.get_group("g")).state == "blocked"
    assert await queue.resume_group("g")
    assert (await queue.get_group("g")).state == "ready"
    assert not await queue.resume_group("g")


async def test_only_a_job_that_blocks_its_group_can_be_skipped(make_queue: MakeQueue) -> None:
    queue = make_queue("q")
    [job] = await added(queue, 1)
    with pytest.raises(WrongState, match="blocking its group"):
        await queue.skip(job.id)
    await Worker(queue, fail_first).run(burst=True)
    with pytest.raises(WrongState):
        await job.skip()


async def test_a_job_may_hold_where_its_queue_goes_on(make_queue: MakeQueue) -> None:
    queue = make_queue("q")
    await queue.add(0, group_id="g", on_failed="hold")
    behind = await queue.add(1, group_id="g")
    await Worker(queue, fail_first).run(burst=True)
    assert await behind.get_state() == "waiting"


async def test_blocked_groups_are_listed_by_how_long_they_have_been_blocked(make_queue: MakeQueue, url: str) -> None:
    """The list includes groups that are paused or have no other job."""
    queue = make_queue("q", on_failed="hold")
    for group_id, n in (("c", 1), ("a", 3), ("b", 1)):
        await added(queue, n, group_id)
        await queue.fail(f"{group_id}0")
        await eventually(lambda: moved_on(queue), "the server's clock has left the millisecond of the last block")
    await added(queue, 2, "fine")
    await queue.pause_group("b")
    found = await queue.get_blocked_groups()
    assert [(one.id, one.state, one.blocked_by, one.waiting) for one in found] == [
        ("c", "blocked", "c0", 0),
        ("a", "blocked", "a0", 2),
        ("b", "blocked", "b0", 0),
    ]
    assert [one.id for one in await queue.get_blocked_groups(1, offset=1)] == ["a"]
    page = await queue.get_groups(state="blocked", behind=1)
    assert [(lane.group.id, [job.id for job in lane.next]) for lane in page.groups] == [
        ("c", []),
        ("a", ["a1"]),
        ("b", []),
    ]
    assert (page.total, page.matched, page.complete) == (3, 3, True)
    assert [lane.group.id for lane in (await queue.get_groups(state="blocked", match="A")).groups] == ["a"]
    assert [lane.group.id for lane in (await queue.get_groups(state="ready")).groups] == ["fine"]
    with pytest.raises(ConfigurationError, match=r"^state: "):
        await queue.get_groups(state="stuck")  # type: ignore[arg-type]
    with SyncQueue("q", url, on_failed="hold") as same:
        assert [(one.id, one.blocked_since) for one in same.get_blocked_groups()] == [
            (one.id, one.blocked_since) for one in found
        ]
    job = await queue.require_job("a0")
    assert (job.blocks_since, job.to_dict()["blocks_since"]) == (found[1].blocked_since, str_of(found[1].blocked_since))
    await queue.skip("a0")
    assert [one.id for one in await queue.get_blocked_groups()] == ["c", "b"]
    await job.refresh()
    assert job.blocks_since is None


async def test_a_blocked_group_is_among_the_held_ones(make_queue: MakeQueue) -> None:
    queue = make_queue("q", on_failed="hold")
    await added(queue, 2, "blocked")
    await added(queue, 2, "ready")
    await queue.fail("blocked0")
    assert [lane.group.id for lane in (await queue.get_groups(sort="held", limit=1)).groups] == ["blocked"]


async def test_blocking_and_unblocking_are_published(make_queue: MakeQueue) -> None:
    queue = make_queue("q", on_failed="hold")
    heard: list[tuple[str, str | None]] = []
    for kind in ("blocked", "unblocked"):
        queue.on(kind, lambda event: heard.append((event.kind, event.group_id)))
    [job] = await added(queue, 1)
    await Worker(queue, fail_first).run(burst=True)
    await job.skip()
    await eventually(lambda: heard == [("blocked", "g"), ("unblocked", "g")], "both are published")


async def test_a_breaker_rests_a_group_that_fails_in_a_row(make_queue: MakeQueue) -> None:
    queue = make_queue("q", breaker=Breaker(failures=2, cooldown=3600), max_attempts=1)
    jobs = await added(queue, 4)

    async def fail(job: Job) -> None:
        raise RuntimeError("the endpoint is down")

    await Worker(queue, fail).run(burst=True)
    assert [await job.get_state() for job in jobs] == ["failed", "failed", "waiting", "waiting"]
    held = (await queue.get_group("g")).held
    assert held is not None
    assert (held.reason, held.failures) == ("breaker", 2)


async def test_a_snoozed_job_comes_back_at_its_place_and_uses_no_attempt(make_queue: MakeQueue) -> None:
    queue = make_queue("q", max_attempts=1)
    await added(queue, 2)
    seen: list[tuple[int, int]] = []

    async def handle(job: Job) -> None:
        seen.append((job.data, job.attempt))
        if len(seen) <= 2:
            raise Snooze(0.01, "not yet")

    worker = Worker(queue, handle)
    heard = Listener(worker, "failed", "retrying")
    async with worker:
        assert await queue.wait_for_empty(10)
    assert seen == [(0, 1), (0, 1), (0, 1), (1, 1)]
    assert heard.heard == []


async def test_an_id_stays_taken_after_its_job(make_queue: MakeQueue) -> None:
    queue = make_queue("q", keep_completed=0)
    await queue.add(1, job_id="invoice", unique_for=3600)

    async def nothing(job: Job) -> None:
        pass

    await Worker(queue, nothing).run(burst=True)
    again = await queue.add(2, job_id="invoice")
    assert (again.duplicate, again.state) == (True, "gone")
    assert (await queue.get_job_counts()).total == 0
