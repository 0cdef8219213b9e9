"""Worker processes that die or freeze. The kind of server makes no difference, so each test runs on one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from groupmq import Queue
from tests.faults.conftest import StartServer
from tests.support.begun import known_to_have_begun
from tests.support.deaths import LEASE, kill_workers_in_the_middle, open_runs
from tests.support.fleet import Fleet
from tests.support.producing import produce
from tests.support.servers import prefer
from tests.support.waiting import eventually


async def test_killed_workers_lose_nothing_and_keep_the_order(start_server: StartServer) -> None:
    history = await kill_workers_in_the_middle(start_server(prefer("valkey")).url)
    assert not history.gaps()


async def test_a_frozen_worker_is_replaced_and_its_outcome_refused_when_it_wakes(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, job_timeout=LEASE) as queue:
        with Fleet(server.url, "orders", concurrency=2, job_timeout=LEASE) as fleet:
            (sleeper,) = fleet.start()
            added = await produce(queue, range(20), groups=4, seconds=0.3)
            await eventually(lambda: open_runs(fleet, sleeper), "the first worker is in a handler")
            fleet.freeze(sleeper)
            await asyncio.to_thread(fleet.start)
            assert await queue.wait_for_empty(20)
            fleet.thaw(sleeper)
            await eventually(lambda: fleet.lines("lease-lost"), "the frozen worker learns that it lost its leases")
            # It continues to work as if nothing had happened.
            more = await produce(queue, range(20, 24), groups=4)
            assert await queue.wait_for_empty(10)
    history = fleet.history()
    history.check([*added, *more])
    lost = [run for run in history.runs if run.lost]
    assert {run.pid for run in lost} == {sleeper.pid}
    for run in lost:
        assert not run.accepted
        (winner,) = [other for other in history.by_job()[run.job] if other.accepted == "completed"]
        assert winner.fence > run.fence
        assert winner.attempt == 2


async def test_a_handler_that_hangs_the_loop_past_its_timeout_loses_its_group_to_another_process(
    start_server: StartServer, tmp_path: Path
) -> None:
    server, goes_on = start_server(prefer("valkey")), tmp_path / "goes on"
    async with Queue("orders", server.url, job_timeout=LEASE) as queue:
        with Fleet(server.url, "orders", concurrency=1, job_timeout=LEASE) as fleet:
            fleet.start(2)
            hanging = {"do": "block-once", "seconds": 40.0, "until": str(goes_on)}
            hangs = await queue.add(hanging, group_id="g", timeout=0.3, backoff=0)
            behind = await queue.add({}, group_id="g")
            assert await queue.wait_for_empty(20), "the hanging handler still blocks its group"
            goes_on.touch()
            await eventually(lambda: fleet.lines("lease-lost"), "the one that hung learns that it lost its lease")
    history = fleet.history()
    history.check([hangs.id, behind.id])
    first, second = history.by_job()[hangs.id]
    assert (first.lost, second.accepted, second.attempt) == (True, "completed", 2)
    assert first.pid != second.pid


async def test_a_thread_that_hangs_does_not_keep_a_closed_worker_process_alive(start_server: StartServer) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url) as queue:
        with Fleet(server.url, "orders", concurrency=1, close_timeout=0.2) as fleet:
            (process,) = fleet.start(handler="thread")
            job = await queue.add({"seconds": 60.0}, group_id="g", max_attempts=1)
            await eventually(lambda: open_runs(fleet, process), "the handler hangs")
            process.terminate()
            assert await asyncio.to_thread(process.wait, 5) == 0
        await job.refresh()
        assert (job.state, job.attempts_made) == ("waiting", 0)
        assert [line["job"] for line in fleet.history().of_kind("graceful-timeout")] == [job.id]


@pytest.mark.parametrize(("max_stalled", "max_attempts", "deaths"), [(None, 2, 2), (0, 9, 1)])
async def test_a_poison_pill_kills_only_as_many_workers_as_it_may_and_its_group_goes_on(
    start_server: StartServer, max_stalled: int | None, max_attempts: int, deaths: int
) -> None:
    server = start_server(prefer("redis"))
    async with Queue("orders", server.url, job_timeout=0.6) as queue:
        limits = {"max_stalled": max_stalled}
        with Fleet(server.url, "orders", concurrency=1, worker=limits, job_timeout=0.6) as fleet:
            pill = await queue.add({"do": "exit", "times": 99}, group_id="g", max_attempts=max_attempts)
            behind = [(await queue.add({}, group_id="g")).id for _ in range(3)]
            for _ in range(deaths):
                (process,) = fleet.start()
                assert await asyncio.to_thread(process.wait, 10) == 13
                fleet.note_death(process)
            fleet.start()
            assert await queue.wait_for_empty(10)
        await pill.refresh()
        assert (pill.state, pill.attempts_made) == ("failed", deaths)
        assert "stalled" in (pill.failed_reason or "")
    history = fleet.history()
    history.check([pill.id, *behind], unfinished=[pill.id])
    assert len(history.by_job()[pill.id]) == deaths


async def test_a_job_that_had_run_for_a_while_is_removed_at_once_though_its_worker_is_dead(
    start_server: StartServer,
) -> None:
    """The lease and the time between heartbeats are long. The worker has reported that the job began."""
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url, job_timeout=600) as queue:
        with Fleet(server.url, "orders", job_timeout=600) as fleet:
            (worker,) = fleet.start()
            (job_id,) = await produce(queue, [0], seconds=60)
            await known_to_have_begun(server.url, "orders")
            fleet.kill(worker)
            async with asyncio.timeout(20):
                assert await queue.remove(job_id)
