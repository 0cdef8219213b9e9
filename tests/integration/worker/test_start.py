"""The start of a worker while its server is down, and listeners of "ready"."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator

import pytest

from groupmq import ConfigurationError, ConnectionLost, GroupMQError, Job, Queue, Worker
from groupmq.core.errors import ServerRefused
from groupmq.worker.leases.heartbeat import Heartbeat
from tests.conftest import MakeQueue
from tests.support.servers import Server
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder


@pytest.fixture
def away() -> Iterator[Server]:
    """A server that is not running yet."""
    server = Server.start()
    server.kill()
    yield server
    server.stop()


async def test_run_waits_for_a_server_that_is_away_at_the_start(away: Server, caplog: pytest.LogCaptureFixture) -> None:
    async with Queue("orders", away.url) as queue:
        handler = Recorder()
        worker = Worker(queue, handler)
        heard = Listener(worker, "error", "ready")
        running = asyncio.create_task(worker.run(burst=True))
        await eventually(lambda: len(heard.args("error")) >= 3, "it has tried several times")
        assert not running.done()
        assert worker.get_worker_metrics().connection_errors == len(heard.args("error"))
        await asyncio.to_thread(away.restart)
        await queue.add("x")
        async with asyncio.timeout(25):
            await running
        assert handler.ended == ["x"]
        assert heard.names()[-1] == "ready"
        assert [line.getMessage().split(":")[0] for line in caplog.records if "groupmq.worker" in line.name][:1] == [
            f"worker {worker.name} of queue orders cannot start"
        ]
        assert caplog.text.count("cannot start") == caplog.text.count("reaches its server again") == 1


async def test_run_gives_up_after_its_unreachable_timeout_at_the_start_too(away: Server) -> None:
    async with Queue("orders", away.url) as queue:
        worker = Worker(queue, Recorder(), unreachable_timeout=0.3, name="lonely")
        with pytest.raises(ConnectionLost, match=r"'lonely' gave up: no answer for 0\.3 s"):
            async with asyncio.timeout(10):
                await worker.run()
        assert worker.is_closed()


@pytest.mark.parametrize("how", ["close", "cancel"])
async def test_a_worker_that_waits_for_its_server_can_be_ended(away: Server, how: str) -> None:
    async with Queue("orders", away.url) as queue:
        worker = Worker(queue, Recorder())
        heard = Listener(worker, "error")
        running = asyncio.create_task(worker.run())
        await eventually(lambda: heard.heard, "it has tried")
        async with asyncio.timeout(5):
            if how == "close":
                await worker.close()
                await running
            else:
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
        assert worker.is_closed()
        with pytest.raises(GroupMQError, match="is closed; make a new one"):
            await worker.run()


async def test_run_raises_at_the_start_what_trying_again_does_not_change(make_queue: MakeQueue) -> None:
    await make_queue("disagree", group_concurrency=2).add(1)
    with pytest.raises(ConfigurationError, match="group_concurrency"):
        await Worker(make_queue("disagree", group_concurrency=3), Recorder()).run()
    server = Server.start(config={"requirepass": "secret"})
    try:
        async with Queue("orders", server.url) as queue:
            with pytest.raises(ServerRefused, match="credentials"):
                await Worker(queue, Recorder()).run()
    finally:
        server.stop()


async def test_start_raises_when_the_server_is_away(away: Server) -> None:
    async with Queue("orders", away.url) as queue:
        with pytest.raises(ConnectionLost):
            await Worker(queue, Recorder()).start()


# Listeners


async def test_async_listeners_of_ready_have_ended_before_the_first_job_is_taken(queue: Queue) -> None:
    order: list[str] = []
    gate = asyncio.Event()

    async def set_up() -> None:
        order.append("begins")
        await gate.wait()
        order.append("ended")

    async def handle(job: Job) -> None:
        order.append("job")

    await queue.add(1)
    worker = Worker(queue, handle)
    worker.on("ready", set_up)
    worker.on("ready", lambda: order.append("plain"))
    starting = asyncio.create_task(worker.start())
    await eventually(lambda: "begins" in order, "the listener runs")
    assert (await queue.get_job_counts()).waiting == 1
    gate.set()
    async with await starting:
        assert order[:3] == ["plain", "begins", "ended"]
        assert await queue.wait_for_empty(5)
    assert order == ["plain", "begins", "ended", "job"]


async def test_a_listener_of_ready_that_raises_is_logged_and_the_worker_works(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("no pool")

    handler = Recorder()
    worker = Worker(queue, handler)
    worker.on("ready", broken)
    await queue.add(1)
    await worker.run(burst=True)
    assert handler.ended == [1]
    assert f"of queue {queue.name}: a listener of 'ready' raised RuntimeError: no pool" in caplog.text


async def test_a_listener_of_ready_may_close_the_worker(queue: Queue) -> None:
    worker = Worker(queue, Recorder())
    worker.on("ready", worker.close)
    async with asyncio.timeout(5):
        await worker.run()
    assert worker.is_closed()


@pytest.mark.parametrize("event", ["ready", "active", "completed", "drained", "closed"])
async def test_async_listeners_of_every_event_run_to_their_end_before_run_returns(queue: Queue, event: str) -> None:
    ended: list[object] = []

    async def slow(*args: object) -> None:
        await queue.get_job_counts()
        ended.append(args)

    worker = Worker(queue, Recorder())
    worker.on(event, slow)
    await queue.add(1)
    await worker.run(burst=True)
    assert len(ended) == 1


async def test_a_listener_may_close_the_worker_it_listens_to(queue: Queue) -> None:
    worker = Worker(queue, Recorder())
    worker.on("drained", worker.close)
    await queue.add(1)
    async with asyncio.timeout(5):
        await worker.run()
    assert worker.is_closed()


async def test_a_listener_that_hangs_keeps_close_no_longer_than_its_timeout(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    async def hang(job: Job) -> None:
        await asyncio.Event().wait()

    worker = Worker(queue, Recorder())
    worker.on("completed", hang)
    await queue.add(1)
    with caplog.at_level(logging.ERROR):
        async with asyncio.timeout(10):
            await worker.start()
            assert await queue.wait_for_empty(5)
            await worker.close(timeout=0.1)
    assert "listeners did not end within" in caplog.text


async def test_options_that_do_not_fit_the_stored_settings_are_refused_at_every_start(make_queue: MakeQueue) -> None:
    made = make_queue("orders", exclusive=True)
    await made.add(1, group_id="g")
    batches: list[int] = []

    async def handle(jobs: list[Job]) -> None:
        batches.append(len(jobs))

    worker = Worker(make_queue("orders"), handle, batch=5)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="batch: cannot be combined with exclusive=True"):
            await worker.start()
    assert await made.get_waiting_count() == 1
    await made.reconfigure(exclusive=False)
    async with worker:
        await eventually(lambda: batches, "the settings fit now")


def doubled(job: Job) -> int:
    return 2 * int(job.data)


async def test_processes_of_a_worker_outlive_a_start_whose_options_do_not_fit(make_queue: MakeQueue) -> None:
    made = make_queue("orders", job_timeout=5)
    await made.add(21)
    worker = Worker(make_queue("orders"), doubled, executor="process", heartbeat=20)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="heartbeat"):
            await worker.start()
    await made.reconfigure(job_timeout=120)
    [job] = await made.get_jobs_by_id(await made.get_waiting_jobs())
    assert job is not None
    async with worker:
        assert await job.result(20) == 42


async def test_a_run_after_a_burst_that_could_not_start_waits_for_its_batches(make_queue: MakeQueue) -> None:
    made = make_queue("orders", max_attempts=3)
    await made.get_job_counts()
    batches: list[list[int]] = []

    async def handle(jobs: list[Job]) -> None:
        batches.append([job.data for job in jobs])

    worker = Worker(make_queue("orders", max_attempts=5), handle, batch=3, batch_wait=30)
    with pytest.raises(ConfigurationError, match="max_attempts"):
        await worker.run(burst=True)
    await made.reconfigure(max_attempts=5)
    running = asyncio.create_task(worker.run())
    for i in range(3):
        await made.add(i, group_id="g")
        await eventually(lambda: looked(made), "it has been seen, alone")
    await eventually(lambda: batches, "the batch is full")
    assert batches == [[0, 1, 2]]
    await worker.close()
    await running


async def looked(queue: Queue) -> bool:
    """Whether no marker is left for a worker that might ask for jobs."""
    return not await queue._connection.command("EXISTS", queue._connection.session.keys.wake)


async def test_a_worker_that_cannot_start_its_threads_is_closed_as_a_whole(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Heartbeat) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Heartbeat, "start", refuse)
    before = set(threading.enumerate())
    worker = Worker(queue, Recorder())
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await worker.start()
    assert worker.is_closed()
    assert not worker.health().alive
    await eventually(lambda: set(threading.enumerate()) <= before, "no thread of it is left")
