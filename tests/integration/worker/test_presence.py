"""The list of workers, their health, and the behaviour of a worker that cannot reach its server."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from groupmq import ConfigurationError, ConnectionLost, Job, Queue, Worker, __version__
from groupmq.worker.health import Health
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.listening import end_connections
from tests.support.servers import Server, prefer
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Recorder, looked_once, one_kind


async def idle(job: Job) -> None:
    pass


async def test_a_worker_says_who_it_is_and_what_it_runs(queue: Queue) -> None:
    recorder = Recorder()
    recorder.gate = asyncio.Event()
    async with Worker(queue, recorder, name="mine", concurrency=3, heartbeat=0.05):
        jobs = await queue.add_many({"data": n} for n in range(2))

        async def told() -> bool:
            return [worker.current_jobs for worker in await queue.get_workers()] == [2]

        await eventually(told, "the running jobs are listed")
        [found] = await queue.get_workers()
        assert (found.name, found.host, found.pid) == ("mine", socket.gethostname(), os.getpid())
        assert (found.concurrency, found.version, found.heartbeat) == (3, __version__, 0.05)
        assert sorted(found.jobs) == sorted(job.id for job in jobs)
        assert abs(datetime.now(UTC) - found.last_seen) < timedelta(seconds=2)
        recorder.gate.set()
    assert await queue.get_workers() == []


async def test_each_worker_of_each_process_is_there(queue: Queue, url: str) -> None:
    with Fleet(url, queue.name, worker={"heartbeat": 0.2}) as fleet:
        processes = fleet.start(2)
        async with Worker(queue, idle, heartbeat=0.2):

            async def pids() -> set[int]:
                return {worker.pid for worker in await queue.get_workers()}

            async def all_there() -> bool:
                return await pids() == {os.getpid(), *(process.pid for process in processes)}

            await eventually(all_there, "all three workers are listed")


async def test_a_killed_worker_is_gone_within_two_heartbeats(queue: Queue, url: str) -> None:
    with Fleet(url, queue.name, worker={"heartbeat": 0.5}) as fleet:
        [process] = fleet.start()
        await eventually(queue.get_workers, "the worker is listed")
        fleet.kill(process)
        killed = time.monotonic()

        async def gone() -> bool:
            return await queue.get_workers() == []

        await eventually(gone, "the worker is no longer listed")
        assert time.monotonic() - killed <= 1.0 + 0.5


async def test_a_worker_is_healthy_while_it_works(queue: Queue) -> None:
    worker = Worker(queue, idle, heartbeat=0.05)
    assert (worker.health().alive, worker.health().ready) == (False, False)
    async with worker:
        health = worker.health()
        assert (health.alive, health.ready) == (True, True)
        assert health.loop_seen < 2
        assert health.server_seen < 2
    assert (worker.health().alive, worker.health().ready) == (False, False)


@one_kind
async def test_a_worker_whose_loop_stands_still_is_not_alive_though_its_heart_beats(queue: Queue) -> None:
    """A worker is alive only if its loop advances. The handler blocks the loop, and reads the health meanwhile."""
    seen: list[Health] = []

    async def hang(job: Job) -> None:
        def unwell() -> bool:
            seen.append(worker.health())
            return not seen[-1].alive

        wait_until(unwell, "the worker is reported as not alive")

    worker = Worker(queue, hang, heartbeat=0.02)
    async with worker:
        job = await queue.add(1)
        assert await job.result(20) is None
        await eventually(lambda: worker.health().alive, "it is alive again")
    assert seen[0].alive
    assert (seen[-1].alive, seen[-1].ready) == (False, True)
    assert seen[-1].loop_seen > 1 > seen[-1].server_seen


@pytest.fixture
def mortal() -> object:
    server = Server.start(prefer("redis"))
    yield server
    server.stop()


async def test_a_worker_that_cannot_reach_its_server_says_so_and_lives(mortal: Server) -> None:
    async with Queue("q", mortal.url) as queue, Worker(queue, idle, heartbeat=0.05, blocking_timeout=0.2) as worker:
        mortal.kill()
        await eventually(lambda: not worker.health().ready, "it notices that the server is unreachable")
        assert worker.health().alive
        assert not worker.is_closed()
        mortal.restart()
        await eventually(lambda: worker.health().ready, "it is ready again", 15)
        assert await (await queue.add(1)).result(10) is None


async def test_run_raises_when_the_server_is_away_for_too_long(mortal: Server) -> None:
    async with Queue("q", mortal.url) as queue:
        worker = Worker(queue, idle, unreachable_timeout=0.5, heartbeat=0.1, blocking_timeout=0.2, name="lonely")
        running = asyncio.create_task(worker.run())
        await queue.get_workers()
        await eventually(lambda: worker.health().ready, "the worker is ready")
        mortal.kill()
        with pytest.raises(ConnectionLost, match=r"worker 'lonely' gave up: no answer for 0.5 s"):
            async with asyncio.timeout(15):
                await running
        assert worker.is_closed()


async def test_a_server_that_is_back_in_time_is_no_reason_to_give_up(mortal: Server) -> None:
    async with Queue("q", mortal.url) as queue:
        worker = Worker(queue, idle, unreachable_timeout=30, heartbeat=0.1, blocking_timeout=0.2)
        running = asyncio.create_task(worker.run())
        await eventually(lambda: worker.health().ready, "the worker is ready")
        mortal.kill()
        await eventually(lambda: worker.get_worker_metrics().connection_errors, "the worker has noticed the outage")
        mortal.restart()
        assert await (await queue.add(1)).result(15) is None
        await worker.close()
        await running


async def test_a_process_whose_server_is_away_for_too_long_exits_non_zero(mortal: Server) -> None:
    options = {"unreachable_timeout": 0.3, "heartbeat": 0.1, "blocking_timeout": 0.2}
    with Fleet(mortal.url, "q", worker=options) as fleet:
        [process] = fleet.start()
        mortal.kill()
        fleet.wait_for(lambda: process.poll() is not None, "the process has given up")
        assert process.returncode == 1


async def quiet_time(seconds: float) -> None:
    """Let time pass in which nothing happens, which the test needs."""
    began = time.monotonic()
    await eventually(lambda: time.monotonic() - began > seconds, "the quiet time is over")


@one_kind
@pytest.mark.parametrize("busy", [False, True])
async def test_a_connection_cut_after_a_quiet_time_is_no_reason_to_give_up(
    queue: Queue, client: Any, busy: bool
) -> None:
    """The worker has asked for nothing for longer than its patience; then every connection breaks once."""
    recorder, patience = Recorder(), 0.3
    recorder.gate = asyncio.Event()
    worker = Worker(queue, recorder, unreachable_timeout=patience, heartbeat=0.1)
    running = asyncio.create_task(worker.run())
    if busy:
        await queue.add("busy")
        await eventually(lambda: recorder.started, "it is busy")
    else:
        await looked_once(worker)
    asked = worker.get_worker_metrics().advances
    await quiet_time(1.5 * patience)
    assert worker.get_worker_metrics().advances == asked
    client.client_kill_filter(_type="normal", skipme=True)
    recorder.gate.set()
    job = await queue.add("after")
    assert await job.result(10) is None
    assert not running.done()
    await worker.close()
    await running


@one_kind
async def test_two_failures_with_a_quiet_time_between_them_are_no_reason_to_give_up(
    queue: Queue, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its only slot is taken, so it does not ask for jobs in between. Its heartbeats are answered all the time."""
    recorder, patience = Recorder(), 0.3
    recorder.gate = asyncio.Event()

    def waits_for_hints() -> list[dict[str, str]]:
        return [one for one in client.client_list() if one["cmd"] == "bzpopmin" and "b" in one["flags"]]

    worker = Worker(queue, recorder, unreachable_timeout=patience, heartbeat=0.1)
    running = asyncio.create_task(worker.run())
    await looked_once(worker)
    job = await queue.add("due", delay=1)  # long enough for it to learn of the job and wait again
    await eventually(lambda: recorder.started, "it runs, started by the worker's own timer")
    [one] = waits_for_hints()
    end_connections(client, [one])
    await eventually(lambda: worker.get_worker_metrics().connection_errors == 1, "the first failure")
    await quiet_time(1.5 * patience)
    call, failures = queue._connection.call, [ConnectionLost("the second failure")]

    async def fail_once(*args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return await call(*args, **options)

    monkeypatch.setattr(queue._connection, "call", fail_once)
    recorder.gate.set()
    await eventually(lambda: worker.get_worker_metrics().connection_errors == 2, "the second failure")
    assert await job.result(10) is None
    assert not running.done()
    await worker.close()
    await running


async def test_patience_must_be_a_duration(make_queue: MakeQueue) -> None:
    for bad in (-1, "long", 0):
        with pytest.raises(ConfigurationError, match="unreachable_timeout"):
            Worker(make_queue(), idle, unreachable_timeout=bad)  # type: ignore[arg-type]
