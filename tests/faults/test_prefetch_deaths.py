"""Worker processes that die or freeze while they hold a row: some jobs ended, one runs, some are prefetched."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from groupmq import Queue
from tests.faults.conftest import StartServer
from tests.faults.rows import (
    add_all_and_start,
    add_with_third,
    check,
    failed_of,
    freeze_in_a_row,
    in_rows,
    in_the_middle,
    of_interest,
    see_short_handlers,
    start_used_to_short_handlers,
)
from tests.support.fleet import Fleet
from tests.support.servers import prefer
from tests.support.waiting import eventually

QUEUE: dict[str, Any] = {"job_timeout": 1.0, "keep_completed": 10_000, "backoff": 0}


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_workers_that_are_killed_in_the_middle_of_rows_lose_nothing_and_keep_the_order(
    start_server: StartServer, concurrency: int
) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url, **QUEUE) as queue:
        with Fleet(server.url, "orders", concurrency=concurrency, **QUEUE) as fleet:
            victim = await start_used_to_short_handlers(fleet, queue)
            added = await add_all_and_start(fleet, queue, victim, 5, 800)
            await freeze_in_a_row(fleet, queue, victim, concurrency)
            fleet.kill(victim)
            before = len(fleet.lines("end"))
            (victim,) = await asyncio.to_thread(fleet.start, short_handlers=True)
            await in_the_middle(fleet, 100, before)
            await freeze_in_a_row(fleet, queue, victim, concurrency)
            fleet.kill(victim)
            await asyncio.to_thread(fleet.start)
            assert await queue.wait_for_empty(30)
        failed = await failed_of(queue)
    history = of_interest(fleet.history())
    assert in_rows(history) > 50
    check(history, added, failed)
    assert len(failed) <= 2 * concurrency
    once = {job for job in added if job.endswith("7")}
    assert all(len(runs) == 1 for job, runs in history.by_job().items() if job in once)


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_worker_that_was_frozen_in_the_middle_of_a_row_is_refused_when_it_wakes(
    start_server: StartServer, concurrency: int
) -> None:
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, **QUEUE) as queue:
        with Fleet(server.url, "orders", concurrency=concurrency, **QUEUE) as fleet:
            sleeper = await start_used_to_short_handlers(fleet, queue)
            added = await add_all_and_start(fleet, queue, sleeper, 5, 600)
            await freeze_in_a_row(fleet, queue, sleeper, concurrency)
            await asyncio.to_thread(fleet.start)
            assert await queue.wait_for_empty(30)
            fleet.thaw(sleeper)
            await eventually(lambda: fleet.lines("lease-lost"), "the frozen worker learns that it lost its leases")
            # It continues to work as if nothing had happened.
            await queue.add_many([{"data": {}, "group_id": "g0", "job_id": f"more-{i}"} for i in range(20)])
            added += [f"more-{i}" for i in range(20)]
            assert await queue.wait_for_empty(10)
        failed = await failed_of(queue)
    history = of_interest(fleet.history())
    assert in_rows(history) > 50
    check(history, added, failed)
    assert len(failed) <= concurrency
    assert {run.pid for run in history.runs if run.lost} <= {sleeper.pid}
    assert {line["pid"] for line in history.of_kind("lease-lost")} == {sleeper.pid}


@pytest.mark.parametrize(("max_stalled", "ends_as"), [(None, "completed"), (0, "failed")])
async def test_a_long_job_that_was_taken_behind_others_and_dies_with_its_worker_has_used_an_attempt(
    start_server: StartServer, max_stalled: int | None, ends_as: str
) -> None:
    server = start_server(prefer("valkey"))
    # Only for the second worker, since a worker with max_stalled=0 does not prefetch.
    limits = {"concurrency": 1, "blocking_timeout": 1.0, "max_stalled": max_stalled}
    async with Queue("orders", server.url, **QUEUE) as queue:
        with Fleet(server.url, "orders", concurrency=1, **QUEUE) as fleet:
            victim = await start_used_to_short_handlers(fleet, queue)
            jobs = await add_with_third(queue, {"do": "work-once", "seconds": 60.0})

            async def seen_waiting() -> bool:
                return [await job.get_state() for job in jobs] == ["completed"] * 2 + ["active"] + ["waiting"] * 2

            await eventually(seen_waiting, "the jobs behind the long one wait")
            fleet.kill(victim)
            await asyncio.to_thread(fleet.start, worker_options=limits)
            assert await queue.wait_for_empty(10)
        for job in jobs:
            await job.refresh()
        retried = ends_as == "completed"
        assert [job.state for job in jobs] == ["completed"] * 2 + [ends_as] + ["completed"] * 2
        assert [job.attempts_made for job in jobs] == [1, 1, 2 if retried else 1, 1, 1]
        assert [job.stalls for job in jobs] == [0, 0, 1, 0, 0]
    history = of_interest(fleet.history())
    assert in_rows(history) >= 2
    check(history, [job.id for job in jobs], [] if retried else [jobs[2].id])
    assert [run.attempt for run in history.by_job()[jobs[2].id]] == ([1, 2] if retried else [1])


async def lives_or_dies(queue: Queue, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a process has died, or nothing is left to do."""

    async def over() -> bool:
        return process.poll() is not None or (await queue.get_job_counts()).total == 0

    await eventually(over, "the process has died, or all jobs have ended")
    return process.poll() is not None


@pytest.mark.parametrize("max_attempts", [1, 2])
async def test_a_poison_pill_in_a_row_kills_one_worker_more_than_it_may_at_most(
    start_server: StartServer, max_attempts: int
) -> None:
    """The first death is not charged to the pill if the server does not know that it had started: it was prefetched.
    A job with one attempt is never prefetched."""
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, **QUEUE) as queue:
        with Fleet(server.url, "orders", concurrency=1, **QUEUE) as fleet:
            process = await start_used_to_short_handlers(fleet, queue)
            jobs = await add_with_third(queue, {"do": "exit", "times": 99}, max_attempts=max_attempts)
            deaths = 0
            while await lives_or_dies(queue, process):
                assert process.wait() == 13
                fleet.note_death(process)
                deaths += 1
                (process,) = await asyncio.to_thread(fleet.start)
        assert deaths in ([1] if max_attempts == 1 else [max_attempts, max_attempts + 1])
        for job in jobs:
            await job.refresh()
        assert [job.state for job in jobs] == ["completed"] * 2 + ["failed"] + ["completed"] * 2
        assert (jobs[2].attempts_made, [job.attempts_made for job in jobs[3:]]) == (max_attempts, [1, 1])
    history = of_interest(fleet.history())
    check(history, [job.id for job in jobs], [jobs[2].id])
    assert len(history.by_job()[jobs[2].id]) == deaths


async def test_where_no_stall_is_allowed_no_job_runs_again_after_its_worker_died(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url, **QUEUE) as queue:
        with Fleet(server.url, "orders", concurrency=1, worker={"max_stalled": 0}, **QUEUE) as fleet:
            (victim,) = await asyncio.to_thread(fleet.start)
            await see_short_handlers(queue, 600)
            await add_with_third(queue, {"do": "exit", "times": 99})
            assert await asyncio.to_thread(victim.wait, 10) == 13
            fleet.note_death(victim)
            (other,) = await asyncio.to_thread(fleet.start)
            ended = await queue.wait_for_empty(5)
            assert other.poll() is None, "the pill ran again, and killed another worker"
            assert ended
    assert {job: len(runs) for job, runs in of_interest(fleet.history()).by_job().items() if len(runs) > 1} == {}


@pytest.mark.parametrize("hangs_at", [0, 2, 4])
async def test_a_handler_that_hangs_the_loop_past_its_timeout_loses_its_group_though_others_of_its_row_do_not_hang(
    start_server: StartServer, tmp_path: Path, hangs_at: int
) -> None:
    """Unless its job is the first of the row, the server does not know that it has started, and charges no attempt.
    Then it also hangs a second worker."""
    server = start_server(prefer("valkey"))
    options = QUEUE | {"job_timeout": 0.6}
    goes_on = tmp_path / "goes on"
    async with Queue("orders", server.url, **options) as queue:
        with Fleet(server.url, "orders", concurrency=1, **options) as fleet:
            hung = await start_used_to_short_handlers(fleet, queue)
            items: list[dict[str, Any]] = [{"data": {}, "group_id": "g"} for _ in range(5)]
            hanging = {"do": "block-once", "seconds": 40.0, "until": str(goes_on)}
            items[hangs_at] |= {"data": hanging, "timeout": 0.3}
            jobs = await queue.add_many(items)
            hangs = jobs[hangs_at].id

            def starts() -> list[int]:
                return [line["pid"] for line in fleet.lines("start") if line["job"] == hangs]

            await eventually(starts, "it hangs")
            assert (await queue.get_job_counts()).active == 5, "the jobs were not taken in a row"
            await asyncio.to_thread(fleet.start)
            await eventually(lambda: len(starts()) == 2, "another process has the group")
            assert not [line for line in fleet.lines("end") if (line["job"], line["pid"]) == (hangs, hung.pid)]
            goes_on.touch()
            assert await queue.wait_for_empty(10)
            await eventually(
                lambda: [line for line in fleet.lines("lease-lost") if line["job"] == hangs],
                "the one that hung learns that it lost its lease",
            )
    history = of_interest(fleet.history())
    check(history, [job.id for job in jobs])
    first, second, *_ = history.by_job()[hangs]
    assert (first.pid, first.lost, second.pid != hung.pid) == (hung.pid, True, True)
    assert second.attempt == 2 or hangs_at > 0
