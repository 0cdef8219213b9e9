"""`queue.process(handler)`, awaited or not, with and without an event loop: it makes one worker, which starts, or
reports that it could not."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
from typing import Any

import pytest

from groupmq import ConfigurationError, ConnectionLost, Job, Queue
from tests.conftest import MakeQueue
from tests.support.servers import Server
from tests.support.waiting import eventually
from tests.support.workers import Recorder


async def double(job: Job) -> Any:
    return 2 * job.data


async def test_a_worker_that_is_not_awaited_starts_all_the_same(queue: Queue) -> None:
    queue.process(double)
    assert await (await queue.add(21)).result(5) == 42


async def test_an_awaited_worker_is_one_worker_however_often_and_late_it_is_awaited(queue: Queue) -> None:
    processing = queue.process(double, 2, name="one")
    await queue.add(1)
    workers = [await processing, await processing, *await asyncio.gather(*map(awaited, 3 * [processing]))]
    assert len(set(workers)) == 1
    await eventually(lambda: workers[0].get_worker_metrics().completed, "the worker works")
    assert queue._workers._all == [workers[0]]


async def awaited(processing: Any) -> Any:
    return await processing


async def test_a_bare_decorator_works_and_the_name_stands_for_the_handler(queue: Queue) -> None:
    @queue.process
    async def handle(job: Job) -> int:
        return int(job.data) + 1

    job = await queue.add(1)
    assert await job.result(5) == 2
    assert await handle(job) == 2


@pytest.mark.parametrize("how", ["block", "work", "await"])
def test_without_a_loop_a_worker_starts_later(url: str, how: str, caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue("module", url)
    processing = queue.process(double, name="later")

    async def main() -> Any:
        if how == "await":
            worker = await processing
            assert worker.name == "later"
        working = asyncio.create_task(queue.work()) if how == "work" else None
        if how == "block":
            async with queue:
                return await (await queue.add(21)).result(5)
        value = await (await queue.add(21)).result(5)
        await queue.close()
        if working is not None:
            await working
        return value

    assert asyncio.run(main()) == 42
    assert "never started" not in caplog.text


def test_a_worker_that_never_started_is_logged_when_its_queue_is_closed(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue("module", url)
    queue.process(double, name="first")
    queue.process(print, name="second")
    asyncio.run(queue.close())
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "worker first of queue module was never started" in caplog.text
    assert "worker second of queue module was never started" in caplog.text


def test_a_program_that_only_adds_to_the_queue_of_decorated_handlers_is_not_warned(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Such a program imports the module only for its queue. The handlers run in `groupmq worker`."""
    caplog.set_level(logging.DEBUG)
    queue = Queue("module", url)
    queue.process(name="elsewhere")(double)

    async def main() -> None:
        await queue.add(1)
        assert (await queue.get_job_counts()).waiting == 1
        await queue.close()

    asyncio.run(main())
    assert [record.levelname for record in caplog.records if "elsewhere" in record.message] == ["DEBUG"]
    assert "worker elsewhere of queue module was not started here" in caplog.text


def test_a_worker_that_never_started_is_logged_when_its_queue_is_thrown_away(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue("module", url)
    queue.process(double, name="first")
    del queue
    gc.collect()
    assert "worker first of queue module was never started" in caplog.text


def test_a_worker_that_never_started_is_logged_when_the_program_ends(url: str) -> None:
    program = f"from groupmq import Queue; queue = Queue('module', {url!r}); queue.process(print, name='first')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "worker first of queue module was never started" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_a_worker_that_is_not_awaited_waits_for_its_server(caplog: pytest.LogCaptureFixture) -> None:
    server = Server.start()
    try:
        server.kill()
        async with Queue("orders", server.url) as queue:
            queue.process(double)
            await eventually(lambda: "cannot start" in caplog.text, "the worker has logged that it cannot start")
            await asyncio.to_thread(server.restart)
            assert await (await queue.add(21)).result(30) == 42
            assert caplog.text.count("reaches its server again") == 1
    finally:
        server.stop()


async def test_an_awaited_worker_whose_server_is_away_raises_and_does_not_start_behind_ones_back() -> None:
    server = Server.start()
    try:
        server.kill()
        async with Queue("orders", server.url) as queue:
            processing = queue.process(double)
            await asyncio.sleep(0)
            with pytest.raises(ConnectionLost):
                await processing
            await asyncio.to_thread(server.restart)
            assert not queue._workers._tasks or await done(queue), "no task retries in the background"
            worker = await processing
            assert await (await queue.add(21)).result(10) == 42
            assert len(queue._workers._all) == 1
            assert worker is queue._workers._all[0]
    finally:
        server.stop()


async def done(queue: Queue) -> bool:
    await eventually(lambda: not queue._workers._tasks, "the background tasks have ended", timeout=30)
    return True


async def test_settings_that_differ_are_an_error_and_the_worker_stays_away(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    await make_queue("disagree", group_concurrency=2).add(1)
    queue = make_queue("disagree", group_concurrency=3)
    queue.process(Recorder(), name="odd")
    await eventually(lambda: caplog.records, "the failure is logged")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "worker odd of queue disagree could not be started and takes no jobs" in caplog.text
    with pytest.raises(ConfigurationError, match="group_concurrency"):
        await queue.process(Recorder())
