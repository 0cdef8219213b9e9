"""`overlap="skip"` with real workers: what counts as a live occurrence."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq import ConfigurationError, Every, FailJob, Job, Queue, RepeatingJob, Snooze, Worker
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

OFTEN = Every(0.05, overlap="skip", immediately=True)


async def repeat_of(queue: Queue) -> RepeatingJob:
    (found,) = await queue.get_repeating_jobs()
    return found


@pytest.mark.parametrize("how", ["retried", "snoozed", "paused", "delayed"])
async def test_ticks_are_skipped_while_the_last_occurrence_waits_for_whatever_reason(
    make_queue: MakeQueue, how: str
) -> None:
    queue = make_queue(backoff=60)
    runs: list[str] = []

    async def handle(job: Job) -> None:
        runs.append(job.id)
        if how == "retried":
            raise ValueError("down")
        if how == "snoozed":
            raise Snooze(60)

    if how in ("paused", "delayed"):
        await queue.pause_group("g")
    job = await queue.add({}, group_id="g", repeat=OFTEN)
    if how == "delayed":
        assert await queue.change_delay(job.id, 60)
        await queue.resume_group("g")

    async def skipped() -> bool:
        return (await repeat_of(queue)).skipped >= 3

    async with Worker(queue, handle):
        await eventually(skipped, "ticks were skipped")
        assert (await queue.get_job_counts()).total == 1
    assert runs == ([job.id] if how in ("retried", "snoozed") else [])
    assert (await repeat_of(queue)).count == 1


@pytest.mark.parametrize(("on_failed", "most"), [("continue", 0), ("hold", 1)])
async def test_an_occurrence_that_failed_for_good_does_not_stop_the_schedule(
    make_queue: MakeQueue, on_failed: Any, most: int
) -> None:
    """If it blocks its group, one more is added and waits behind it; the other ticks add nothing."""
    queue = make_queue(on_failed=on_failed)

    async def handle(job: Job) -> None:
        raise FailJob("no")

    await queue.add({}, group_id="g", repeat=OFTEN)

    async def went_on() -> bool:
        repeat = await repeat_of(queue)
        return repeat.skipped >= 3 if on_failed == "hold" else repeat.count >= 4

    async with Worker(queue, handle):
        await eventually(went_on, "the schedule goes on")
        counts = await queue.get_job_counts()
    assert counts.total <= 1
    if on_failed == "hold":
        assert (counts.failed, counts.waiting) == (1, most)
        assert (await queue.get_group("g")).state == "blocked"


@pytest.mark.parametrize("overlap", ["Skip", None, True, "no"])
def test_anything_else_is_refused_by_its_name(overlap: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"repeat\.overlap: expected 'allow' or 'skip'"):
        Every(1, overlap=overlap)
