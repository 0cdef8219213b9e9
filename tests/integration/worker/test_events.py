"""The local events of a worker, with their arguments, and its metrics."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from operator import contains
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.parts import parts_of
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder, one_kind


async def test_a_job_that_completes_emits_active_and_completed_then_drained(queue: Queue) -> None:
    async def handle(job: Job) -> str:
        return "value"

    worker = Worker(queue, handle)
    heard = Listener(worker, "ready", "active", "completed", "retrying", "failed", "drained", "closed", "error")
    job = await queue.add(1, group_id="g")
    await worker.run(burst=True)
    assert heard.names() == ["ready", "active", "completed", "drained", "closed"]
    (completed,) = heard.args("completed")[0]
    assert (completed.id, completed.state, completed.return_value) == (job.id, "completed", "value")
    assert (completed.attempts_made, completed.finished_at is not None) == (1, True)
    assert all(heard.args(event) == [()] for event in ("ready", "drained", "closed"))


async def test_active_is_emitted_before_the_handler_starts(queue: Queue) -> None:
    order: list[str] = []

    async def handle(job: Job) -> None:
        order.append("handler")

    worker = Worker(queue, handle)
    worker.on("active", lambda job: order.append(job.state))
    await queue.add(1)
    await worker.run(burst=True)
    assert order == ["active", "handler"]


async def test_retrying_has_job_and_error_and_failed_is_emitted_only_at_the_end(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        raise ValueError(f"attempt {job.attempt}")

    worker = Worker(queue, handle)
    heard = Listener(worker, "retrying", "failed", "completed", "error")
    job = await queue.add(1, max_attempts=3, backoff=0)
    await worker.run(burst=True)
    assert heard.names() == ["retrying", "retrying", "failed"]
    assert [(retried.id, str(error)) for retried, error in heard.args("retrying")] == [
        (job.id, "attempt 1"),
        (job.id, "attempt 2"),
    ]
    (failed,) = heard.args("failed")[0]
    assert (failed.state, failed.attempts_made, failed.failed_reason) == ("failed", 3, "ValueError: attempt 3")
    assert "ValueError" in (failed.stacktrace or "")


async def test_fail_job_emits_failed_at_once(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        raise FailJob("no")

    worker = Worker(queue, handle)
    heard = Listener(worker, "retrying", "failed")
    await queue.add(1, max_attempts=3)
    await worker.run(burst=True)
    assert heard.names() == ["failed"]


async def test_ready_is_emitted_also_when_the_connection_was_there_already(queue: Queue) -> None:
    await queue.get_job_counts()
    for _ in range(2):
        worker = Worker(queue, Recorder())
        heard = Listener(worker, "ready")
        async with worker:
            assert heard.names() == ["ready"]


@pytest.mark.parametrize("atomic", [True, False])
async def test_drained_is_emitted_each_time_the_work_runs_out_and_not_before(queue: Queue, atomic: bool) -> None:
    handler = Recorder(seconds=0.02)
    worker = Worker(queue, handler, concurrency=3, atomic_completion=atomic, blocking_timeout=30)
    drained_after: list[int] = []
    worker.on("drained", lambda: drained_after.append(len(handler.ended)))
    async with worker:
        for total in (1, 6):
            await queue.add_many([{"data": i, "group_id": "g"} for i in range(total - len(handler.ended))])
            await eventually(partial(contains, drained_after, total), "the worker emits `drained`", timeout=5)
    assert drained_after == [1, 6]


@one_kind
async def test_a_worker_whose_outcome_waits_to_be_sent_is_not_drained(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requester that must send the outcome is still waiting for the answer to a call that finds no job."""
    handler, asked, answer = Recorder(), asyncio.Event(), asyncio.Event()
    handler.gate, call = asyncio.Event(), queue._connection.call
    answer.set()

    async def held(made: Any, *args: Any, **options: Any) -> Any:
        reply = await call(made, *args, **options)
        if not answer.is_set():
            asked.set()
            await answer.wait()
        return reply

    monkeypatch.setattr(queue._connection, "call", held)
    worker = Worker(queue, handler, concurrency=3, blocking_timeout=30, maintenance=False)
    drained_after: list[int] = []
    worker.on("drained", lambda: drained_after.append(len(handler.ended)))
    async with worker:
        await queue.add_many([{"data": i, "group_id": "g"} for i in range(2)])
        await eventually(lambda: handler.started, "the first job runs")
        answer.clear()
        parts_of(worker).fetcher.poke()
        await asked.wait()
        handler.gate.set()
        await eventually(lambda: handler.ended, "the first job has ended")
        answer.set()
        await eventually(lambda: 2 in drained_after, "the worker emits `drained`")
    assert drained_after == [2]


async def test_an_idle_worker_is_not_drained_again_and_again(queue: Queue) -> None:
    worker = Worker(queue, Recorder(), blocking_timeout=0.05)
    heard = Listener(worker, "drained")
    async with worker:
        await queue.add(1)
        await eventually(lambda: worker.get_worker_metrics().advances > 10, "the worker looked many times")
    assert heard.names() == ["drained"]


async def test_stalled_is_emitted_by_the_worker_that_takes_the_job_back(make_queue: MakeQueue) -> None:
    queue = make_queue(job_timeout=0.3)
    dead = Worker(queue, Recorder(), heartbeat=0.29, maintenance=False)
    gate = asyncio.Event()

    async def hang(job: Job) -> None:
        await gate.wait()

    job = await queue.add(1, group_id="g", max_attempts=2)
    dead = Worker(queue, hang, maintenance=False)
    async with dead:
        await eventually(dead.is_processing, "the job runs")
        parts_of(dead).heartbeat.stop()
        handler = Recorder()
        worker = Worker(queue, handler)
        heard = Listener(worker, "stalled", "active", "completed")
        async with worker:
            await eventually(lambda: handler.ended, "the job ran again")
            await eventually(lambda: heard.args("completed"), "its outcome is recorded")
        assert heard.names() == ["stalled", "active", "completed"]
        assert heard.args("stalled") == [(job.id, "g")]
        assert handler.attempts == [2]
        assert worker.get_worker_metrics().stalled_seen == 1
        lost = Listener(dead, "lease-lost", "completed")
        gate.set()
        await eventually(lambda: lost.heard, "the old holder learns that it lost the lease")
        assert lost.names() == ["lease-lost"]
        assert lost.args("lease-lost")[0][0].id == job.id


@pytest.mark.parametrize("how", ["remove", "fail"])
async def test_an_operator_who_takes_a_running_job_away_is_noticed_by_the_heartbeat(
    make_queue: MakeQueue, how: str
) -> None:
    queue = make_queue(job_timeout=3)
    cancelled = []

    async def handle(job: Job) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(job.id)
            raise

    worker = Worker(queue, handle, heartbeat=0.1)
    heard = Listener(worker, "lease-lost", "completed", "retrying", "failed")
    job = await queue.add(1, group_id="g")
    async with worker:
        await eventually(worker.is_processing, "the job runs")
        await getattr(queue, how)(job.id)
        await eventually(lambda: heard.heard, "the worker learns of it")
    assert heard.names() == ["lease-lost"]
    assert cancelled == [job.id]
    assert worker.get_worker_metrics().lease_lost == 1


async def test_a_listener_that_raises_is_logged_and_harms_nothing(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Recorder()
    worker = Worker(queue, handler)

    def broken(*args: object) -> None:
        raise RuntimeError("broken listener")

    async def broken_later(*args: object) -> None:
        raise SystemExit("broken async listener")

    for event in ("ready", "active", "completed", "drained", "closed"):
        worker.on(event, broken)
        worker.on(event, broken_later)
    heard = Listener(worker, "completed")
    await queue.add_many([{"data": i, "group_id": "g"} for i in range(3)])
    with caplog.at_level(logging.ERROR, logger="groupmq.worker"):
        await worker.run(burst=True)
        await asyncio.sleep(0)
    assert handler.ended == [0, 1, 2]
    assert len(heard.heard) == 3
    assert "broken listener" in caplog.text
    assert "broken async listener" in caplog.text


async def test_listeners_can_be_async_and_taken_off_again(queue: Queue) -> None:
    heard: list[str] = []
    worker = Worker(queue, Recorder())

    async def later(job: Job) -> None:
        await asyncio.sleep(0)
        heard.append("async")

    worker.on("completed", later)
    gone = worker.on("completed", lambda job: heard.append("gone"))
    assert worker.off("completed", gone)
    assert not worker.off("completed", gone)
    await queue.add(1)
    async with worker:
        await eventually(lambda: heard, "the async listener ran")
        worker.remove_all_listeners()
        await queue.add(2)
        assert await queue.wait_for_empty(5)
    assert heard == ["async"]
    with pytest.raises(ConfigurationError, match="event"):
        worker.on("finished", later)


async def test_a_worker_lists_its_running_jobs(queue: Queue) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    worker = Worker(queue, handler, concurrency=2, name="looked-at")
    assert (worker.is_processing(), worker.is_closed(), worker.get_current_job()) == (False, False, None)
    async with worker:
        jobs = [await queue.add(i) for i in range(2)]
        await eventually(lambda: len(worker.get_current_jobs()) == 2, "both run")
        assert worker.is_processing()
        assert {current.job.id for current in worker.get_current_jobs()} == {job.id for job in jobs}
        first = worker.get_current_job()
        assert first is not None
        assert 0 <= first.processing_time < 60
        assert first == max(worker.get_current_jobs(), key=lambda c: c.processing_time) or first.job.id == jobs[0].id
        handler.gate.set()
        assert await queue.wait_for_empty(5)
    assert (worker.is_processing(), worker.is_closed(), worker.get_current_jobs()) == (False, True, [])


async def test_metrics_count_what_became_of_the_runs(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        if job.data == "fails" or (job.data == "recovers" and job.attempt == 1):
            raise ValueError

    worker = Worker(queue, handle, max_attempts=2, backoff=0)
    for data in ("fine", "fails", "recovers"):
        await queue.add(data)
    await worker.run(burst=True)
    metrics = worker.get_worker_metrics()
    assert (metrics.completed, metrics.failed, metrics.retried, metrics.runs_ended) == (2, 1, 2, 5)
    assert (metrics.running, metrics.lease_lost, metrics.connection_errors) == (0, 0, 0)
    assert metrics.name == worker.name
    assert metrics.uptime > 0
    assert metrics.advances >= 2


async def test_a_worker_says_that_it_lives_and_that_it_left(queue: Queue) -> None:
    async with Worker(queue, Recorder(), name="present", concurrency=3) as worker:

        async def listed() -> bool:
            return bool(await queue.get_workers())

        await eventually(listed, "the worker is listed")
        (info,) = await queue.get_workers()
        assert (info.id, info.name, info.concurrency) == (worker.id, "present", 3)
    assert await queue.get_workers() == []


async def test_any_object_with_the_four_methods_is_a_logger(queue: Queue) -> None:
    class Minimal:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def debug(self, msg: str, *args: object) -> None:
            self.lines.append(msg % args)

        info = warning = error = debug

    logger = Minimal()
    worker = Worker(queue, Recorder(), logger=logger)
    worker.on("completed", lambda job: 1 / 0)
    await queue.add(1)
    await worker.run(burst=True)
    assert any("ZeroDivisionError" in line for line in logger.lines)
