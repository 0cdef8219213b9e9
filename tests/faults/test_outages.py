"""A server that is unreachable: what its worker logs, how often it retries, and how soon it works again."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from groupmq import Queue, Worker
from tests.faults.conftest import StartServer
from tests.support.parts import parts_of
from tests.support.servers import prefer
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder


async def test_an_outage_is_one_warning_and_one_line_at_its_end_whichever_parts_notice_it(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server(prefer("redis"), aof=True)
    handler, seen = Recorder(), []
    handler.gate = asyncio.Event()
    async with Queue("orders", server.url) as queue:
        # All parts of a worker are active: jobs that run, free slots, repeating jobs, and frequent duties.
        worker = Worker(
            queue,
            handler,
            concurrency=2,
            heartbeat=1.5,
            cleanup_interval=0.2,
            stalled_interval=0.2,
            on_error=lambda error, job: seen.append(error),
        )
        heard = Listener(worker, "error")
        with caplog.at_level(logging.DEBUG, "groupmq"):
            async with worker:
                await queue.add(1, group_id="g")
                await eventually(lambda: handler.started, "the job runs")
                beats = parts_of(worker).heartbeat.last_beat
                await asyncio.to_thread(server.kill)
                await eventually(lambda: worker.get_worker_metrics().connection_errors >= 6, "all parts notice", 20)
                await asyncio.to_thread(server.restart)
                await eventually(lambda: "reaches its server again" in caplog.text, "it is back", 25)
                await eventually(lambda: parts_of(worker).heartbeat.last_beat > beats + 1, "leases are renewed", 5)
                handler.gate.set()
                assert await queue.wait_for_empty(10)
        lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert [record.levelname for record in lines] == ["WARNING", "WARNING"], [r.getMessage() for r in lines]
        lost, back = (record.getMessage() for record in lines)
        assert f"worker {worker.name} of queue orders cannot " in lost
        assert "The last answer of the server came " in lost
        assert "failed tries" in back
        errors = worker.get_worker_metrics().connection_errors
        assert len(heard.args("error")) == len(seen) == errors >= 6
        assert handler.ended == [1]
        assert handler.attempts == [1]


async def test_an_outage_of_one_server_is_told_once_however_many_partitions_it_has(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server(prefer("redis"), aof=True)
    async with Queue("orders", server.url, partitions=3) as queue:
        handler = Recorder()
        # Frequent duties: even idle consumers notice that the server is down.
        worker = Worker(queue, handler, cleanup_interval=0.2, stalled_interval=0.2)
        with caplog.at_level(logging.WARNING, "groupmq"):
            async with worker:
                await queue.add_many({"data": n, "group_id": f"g{n}"} for n in range(9))
                await eventually(lambda: len(handler.ended) == 9, "all partitions are served")
                await asyncio.to_thread(server.kill)
                tries = worker.get_worker_metrics
                await eventually(lambda: tries().connection_errors >= 6, "all consumers have noticed", 20)
                await asyncio.to_thread(server.restart)
                await queue.add_many({"data": n, "group_id": f"g{n}"} for n in range(9))
                await eventually(lambda: len(handler.ended) == 18, "all partitions are served again", 30)
        lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2, lines
    assert lines[0].startswith(f"worker {worker.name} of queue orders cannot ")
    assert lines[1].startswith(f"worker {worker.name} of queue orders reaches its server again, ")


async def test_a_heartbeat_that_pauses_beats_as_soon_as_another_part_hears_of_the_server(
    start_server: StartServer,
) -> None:
    server = start_server(prefer("valkey"), aof=True)
    async with Queue("orders", server.url, job_timeout=60) as queue, Worker(queue, Recorder()) as worker:
        beat = parts_of(worker).heartbeat
        await asyncio.to_thread(server.kill)
        await eventually(lambda: beat._pauses.tries, "the heartbeat has failed")
        beat._pauses._least = 16.0  # the pause after half a minute without a server
        tries = beat._pauses.tries
        await eventually(lambda: beat._pauses.tries > tries, "it pauses for long")
        await asyncio.to_thread(server.restart)
        back = time.monotonic()
        await queue.get_job_counts()
        parts_of(worker).fetcher._calls.retry_now()
        await eventually(lambda: beat.last_beat > back, "the heartbeat comes at once", timeout=8)


async def test_a_heartbeat_without_a_server_tries_less_and_less_often(start_server: StartServer) -> None:
    server = start_server(prefer("redis"), aof=True)
    async with Queue("orders", server.url, job_timeout=0.3) as queue, Worker(queue, Recorder()) as worker:
        pauses = parts_of(worker).heartbeat._pauses
        await asyncio.to_thread(server.kill)
        # It tries every 0.1 s while a lease could still be renewed, then after 1 s, 2 s, and so on.
        await eventually(lambda: pauses._least > 1, "the heartbeat has failed, and the leases have ended")
        tries, began = pauses.tries, time.monotonic()
        await eventually(lambda: pauses.tries == tries + 2, "it keeps trying")
        assert time.monotonic() - began > 2
        await asyncio.to_thread(server.restart)


async def test_a_refused_heartbeat_is_told_once_and_does_not_hide_an_outage(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The server answers all other calls: their answers must not count as a success of the heartbeat."""
    server = start_server(prefer("valkey"))
    async with Queue("orders", server.url) as queue:
        handler = Recorder()
        worker = Worker(queue, handler, heartbeat=0.05)
        with caplog.at_level(logging.WARNING, "groupmq"):
            async with worker:
                tries = parts_of(worker).heartbeat._pauses
                await queue._connection.command("SET", f"{queue.options.prefix}:{{orders}}:workers", "no hash")
                await eventually(lambda: tries.tries >= 2, "beats are refused")
                assert caplog.text.count("cannot renew its leases") == 1
                await queue.add(2)
                await handler.has_run(2)
                await queue._connection.command("DEL", f"{queue.options.prefix}:{{orders}}:workers")
                await eventually(lambda: "can renew its leases again" in caplog.text, "beats are accepted", 25)
    assert len(caplog.records) == 2


async def test_a_worker_that_closes_while_its_server_is_away_reports_what_has_ended(start_server: StartServer) -> None:
    """Found by lost replies under load: it gave up after a second, though its timeout was half a minute."""
    server = start_server(prefer("redis"), aof=True)
    handler = Recorder()
    handler.gate = asyncio.Event()
    async with Queue("orders", server.url) as queue:
        worker = await Worker(queue, handler).start()
        job = await queue.add(1)
        await eventually(lambda: handler.started, "the job runs")
        await asyncio.to_thread(server.kill)
        handler.gate.set()
        await eventually(lambda: handler.ended, "the handler has ended")
        closing = asyncio.create_task(worker.close())
        await asyncio.sleep(1.5)  # the outage itself
        assert not closing.done()
        await asyncio.to_thread(server.restart)
        await closing
        assert worker.get_worker_metrics().completed == 1
        assert await job.get_state() == "completed"
