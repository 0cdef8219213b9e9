"""The lines that the library logs about the life of jobs, and the loggers that get them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest

from groupmq import ConfigurationError, ExpiredJob, FailJob, Job, Queue, RateLimited, Worker
from groupmq.protocol.commands import CHUNK
from groupmq.sync import Queue as BlockingQueue
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.parts import parts_of
from tests.support.waiting import eventually
from tests.support.workers import Recorder, Waiting, one_kind

Line = tuple[str, str, str]


def lines(caplog: pytest.LogCaptureFixture, job: Any) -> list[Line]:
    """The level, logger and text of each line about a job."""
    about = f"job {job.id!r} (queue '{job._queue.name}', "
    found = [record for record in caplog.records if record.getMessage().startswith(about)]
    return [(record.levelname, record.name, record.getMessage().removeprefix(about)) for record in found]


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "groupmq")


async def test_a_job_that_completes_is_logged_as_added_taken_and_completed(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    one = await queue.add(1, group_id="user:42")
    [two] = await queue.add_many([{"data": 2}])
    await Worker(queue, Recorder(), name="w").run(burst=True)
    assert lines(caplog, one) == [
        ("DEBUG", "groupmq.queue", "group 'user:42') added: it waits for a worker"),
        ("DEBUG", "groupmq.worker", "group 'user:42') taken by worker w: attempt 1 of 3 starts now"),
        ("DEBUG", "groupmq.worker", "group 'user:42') completed in attempt 1, and its group goes on"),
    ]
    assert lines(caplog, two) == [
        ("DEBUG", "groupmq.queue", "no group) added: it waits for a worker"),
        ("DEBUG", "groupmq.worker", "no group) taken by worker w: attempt 1 of 3 starts now"),
        ("DEBUG", "groupmq.worker", "no group) completed in attempt 1"),
    ]
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG]


async def test_a_job_that_is_ended_by_a_call_is_logged_by_the_caller(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    removed, cancelled, failed = await queue.add_many([{"data": n, "group_id": "g"} for n in range(3)])
    caplog.clear()
    await queue.remove(removed.id)
    await queue.cancel(cancelled.id)
    await queue.fail(failed.id, "not\nwanted")
    assert not await queue.remove("missing")
    found = [(one.levelname, one.name, one.getMessage()) for one in caplog.records if one.name == "groupmq.queue"]
    assert found == [
        (
            "DEBUG",
            "groupmq.queue",
            f"job {removed.id!r} (queue {queue.name!r}) was removed by a call; a handler that runs it is stopped",
        ),
        (
            "DEBUG",
            "groupmq.queue",
            f"job {cancelled.id!r} (queue {queue.name!r}) was cancelled by a call: it was waiting, and is removed",
        ),
        (
            "INFO",
            "groupmq.queue",
            f"job {failed.id!r} (queue {queue.name!r}) was failed for good by a call: 'not\\nwanted'. A "
            "handler that runs it is stopped",
        ),
    ]
    assert caplog.records[-1].__dict__["job"] == failed.id


async def test_a_retry_is_a_warning_with_its_reason_and_the_end_an_error_with_the_stack(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    async def explode(job: Job) -> None:
        raise ValueError("boom")

    job = await queue.add(1, group_id="g", max_attempts=2, backoff=0)
    yields = await queue.add(2, group_id="y", max_attempts=2, backoff=0.01, on_retry="yield")
    worker = Worker(queue, explode)
    async with worker:
        assert await queue.wait_for_empty(5)
        await eventually(lambda: worker.get_worker_metrics().failed == 2, "both are accepted")
    warning, error = (line for line in lines(caplog, job) if line[0] != "DEBUG")
    assert warning == (
        "WARNING",
        "groupmq.worker",
        "group 'g') failed in attempt 1 of 2: ValueError: boom. The next attempt starts in 0 s, and its group waits "
        "for it",
    )
    level, _, text = error
    assert level == "ERROR"
    first, *stack = text.splitlines()
    assert first == (
        "group 'g') failed for good in attempt 2 of 2: ValueError: boom. It is kept until it is retried or removed, "
        "and its group goes on"
    )
    assert stack[0] == "Traceback (most recent call last):"
    assert stack[-1] == "ValueError: boom"
    assert any("in explode" in line for line in stack)
    [again] = [text for level, _, text in lines(caplog, yields) if level == "WARNING"]
    assert again.endswith("The next attempt starts in 0.01 s, and its group goes on meanwhile")
    assert caplog.text.count("failed for good") == 2, "an error is logged once"


@pytest.mark.parametrize("whose", ["queue", "job"])
async def test_a_job_that_blocks_its_group_says_so(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture, whose: str
) -> None:
    queue = make_queue("q", keep_failed=0, **({"on_failed": "hold"} if whose == "queue" else {}))
    job = await queue.add(1, group_id="g", max_attempts=1, on_failed="hold" if whose == "job" else None)
    alone = await queue.add(1, max_attempts=1, on_failed="hold")

    async def declines(job: Job) -> None:
        raise FailJob("no")

    await Worker(queue, declines).run(burst=True)
    [text] = [text for level, _, text in lines(caplog, job) if level == "ERROR"]
    assert "It is kept, and blocks its group until it is retried, skipped or removed" in text
    [text] = [text for level, _, text in lines(caplog, alone) if level == "ERROR"]
    assert "It is not kept" in text, "without a group it blocks nothing"


@one_kind
async def test_the_stack_of_a_child_process_is_logged_too(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    job = await queue.add("raise", group_id="g", max_attempts=1)
    await Worker(queue, handlers.by_word, executor="process").run(burst=True)
    [text] = [text for level, _, text in lines(caplog, job) if level == "ERROR"]
    assert "failed for good in attempt 1 of 1: ValueError: broken" in text
    assert "in by_word" in text


async def test_a_cancelled_job_is_no_error(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    handler = Waiting()
    job = await queue.add(1, group_id="g")
    async with Worker(queue, handler) as worker:
        await eventually(lambda: handler.running, "it runs")
        await queue.cancel(job.id)
        await eventually(lambda: worker.get_worker_metrics().failed, "it is stopped")
    assert [line for line in lines(caplog, job) if line[0] != "DEBUG"] == [
        (
            "INFO",
            "groupmq.worker",
            "group 'g') was cancelled in attempt 1 and does not run again, and its group goes on",
        )
    ]


async def test_jobs_that_come_back_are_logged(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    handler = Waiting()
    told: list[int] = []

    async def limited(job: Job) -> None:
        told.append(1)
        if len(told) == 1:
            raise RateLimited("429", retry_after=0.05)

    job = await queue.add(1, group_id="g")
    async with Worker(queue, limited):
        assert await queue.wait_for_empty(5)
    assert [text for level, _, text in lines(caplog, job) if level == "INFO"] == [
        "group 'g') was rate-limited: 429. No attempt was used; it starts again in 0.05 s, and its group waits for it"
    ]
    late = await queue.add(2)
    worker = await Worker(queue, handler, name="w").start()
    await eventually(lambda: handler.running, "it runs")
    await worker.close(timeout=0)
    assert [(level, text) for level, _, text in lines(caplog, late)][2:] == [
        (
            "WARNING",
            "no group) did not end before worker w closed: it is cancelled and given back, and no attempt is used",
        ),
        ("DEBUG", "no group) was given back: it keeps its sort key, and no attempt was used"),
    ]


async def test_stalls_and_lost_leases_are_logged_with_queue_and_group(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue(job_timeout=0.3)
    gate = asyncio.Event()

    async def hang(job: Job) -> None:
        await gate.wait()

    job = await queue.add(1, group_id="g", max_attempts=1)
    async with Worker(queue, hang, maintenance=False, name="dead") as dead:
        await eventually(dead.is_processing, "the job runs")
        parts_of(dead).heartbeat.stop()
        async with Worker(queue, Recorder(), stalled_interval=0.1) as other:
            await eventually(lambda: other.get_worker_metrics().stalled_seen, "it is taken back")
        gate.set()
        await eventually(lambda: dead.get_worker_metrics().lease_lost, "the old holder learns that it lost the lease")
    assert [(level, text) for level, _, text in lines(caplog, job) if level != "DEBUG"] == [
        (
            "ERROR",
            "group 'g') stalled, its lease expired: it has failed for good. It is kept until it is retried or removed, "
            "and its group goes on",
        ),
        (
            "WARNING",
            "group 'g') is no longer leased to worker dead: this run is not recorded; unless the job has ended, it "
            "runs again",
        ),
    ]


@pytest.mark.parametrize("noticed_by", ["a worker that asks for jobs", "recovery of a worker", "a duty run by hand"])
async def test_a_job_that_expires_is_an_error_of_whoever_notices_it(
    queue: Queue, caplog: pytest.LogCaptureFixture, noticed_by: str
) -> None:
    await queue.pause()
    grouped = await queue.add(1, group_id="g", ttl=0.001)
    alone = await queue.add(2, ttl=0.001, on_failed="hold")
    if noticed_by == "a duty run by hand":
        logger = "groupmq.queue"
        found: list[ExpiredJob] = []
        await eventually(lambda: recovered(queue, found, 2), "both expire")
    else:
        logger = "groupmq.worker"
        recovers = noticed_by.startswith("recovery")
        async with Worker(queue, Recorder(), maintenance=recovers, stalled_interval=0.01 if recovers else 30):
            await eventually(lambda: lines(caplog, alone)[1:], "both expire")
    assert [line for line in lines(caplog, grouped) if line[0] != "DEBUG"] == [
        (
            "ERROR",
            logger,
            "group 'g') has failed for good, because it had not started when its ttl ended. It is kept until it is "
            "retried or removed, and its group goes on",
        )
    ]
    assert [line for line in lines(caplog, alone) if line[0] != "DEBUG"] == [
        (
            "ERROR",
            logger,
            "no group) has failed for good, because it had not started when its ttl ended. It is kept until it is "
            "retried or removed",
        )
    ]


async def recovered(queue: Queue, found: list[ExpiredJob], expected: int) -> bool:
    """Run recovery once more. Whether its runs have failed that many jobs in total."""
    found += (await queue.run_duty_once("recovery")).expired
    return len(found) == expected


@pytest.mark.parametrize("job_on_failed", ["hold", "continue"])
async def test_a_job_that_expires_says_whether_it_blocks_its_group(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture, job_on_failed: Any
) -> None:
    queue = make_queue(keep_failed=0, on_failed="hold")
    await queue.pause()
    job = await queue.add(1, group_id="g", ttl=0.001, on_failed=job_on_failed)
    await eventually(lambda: recovered(queue, [], 1), "it expires")
    [text] = [text for level, _, text in lines(caplog, job) if level == "ERROR"]
    if job_on_failed == "hold":
        assert text.endswith("It is kept, and blocks its group until it is retried, skipped or removed")
    else:
        assert text.endswith("It is not kept, and its group goes on")


async def test_a_cancelled_job_whose_lease_expires_is_no_error(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue(job_timeout=0.2)
    gate = asyncio.Event()

    async def hang(job: Job) -> None:
        while not gate.is_set():  # a handler that cannot be cancelled
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()

    job = await queue.add(1, group_id="g")
    async with Worker(queue, hang, maintenance=False) as dead:
        await eventually(dead.is_processing, "the job runs")
        parts_of(dead).heartbeat.stop()
        await queue.cancel(job.id)
        await eventually(lambda: stalls(queue), "its lease expires")
        gate.set()
    assert ("INFO", "groupmq.queue") in [line[:2] for line in lines(caplog, job)]
    [text] = [text for level, name, text in lines(caplog, job) if (level, name) == ("INFO", "groupmq.queue")]
    assert text == (
        "group 'g') stalled, its lease expired: it was cancelled and does not run again, and its group goes on"
    )
    assert "ERROR" not in [level for level, *_ in lines(caplog, job)]


async def stalls(queue: Queue) -> bool:
    return bool(await queue.check_stalled_jobs())


async def test_adds_that_add_nothing_now_say_so(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    later = await queue.add(1, job_id="one\nline", delay=60)
    await queue.add(1, job_id="one\nline")
    await later.refresh()
    at = later.run_at
    assert at is not None
    assert [text for _, _, text in lines(caplog, later)] == [
        f"no group) added: it may start at {at.isoformat(timespec='milliseconds')}",
        "no group) existed already: nothing was added",
    ]


# Loggers


class Minimal:
    """A logger that is not from `logging`, and has no `isEnabledFor`."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Any:
        if level not in ("debug", "info", "warning", "error"):
            raise AttributeError(level)
        return lambda msg, *args: self.lines.append((level, msg % args))

    def levels(self) -> list[str]:
        return [level for level, _ in self.lines]


async def fail(job: Job) -> None:
    raise FailJob("no")


async def test_a_worker_logs_where_its_queue_does(make_queue: MakeQueue, caplog: pytest.LogCaptureFixture) -> None:
    logger = Minimal()
    queue = make_queue(logger=logger)
    await queue.add(1)
    await Worker(queue, fail).run(burst=True)
    assert logger.levels() == ["debug", "debug", "error"]
    assert caplog.records == []


async def test_a_worker_with_a_logger_of_its_own_uses_that(make_queue: MakeQueue) -> None:
    of_queue, of_worker = Minimal(), Minimal()
    queue = make_queue(logger=of_queue)
    await queue.add(1)
    await Worker(queue, fail, logger=of_worker).run(burst=True)
    assert (of_queue.levels(), of_worker.levels()) == (["debug"], ["debug", "error"])


async def test_lines_carry_fields_for_machines(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    job = await queue.add(1, group_id="g")
    await Worker(queue, fail, name="w").run(burst=True)
    fields = [
        (r.__dict__["job"], r.__dict__["group"], r.__dict__["queue"], r.__dict__["worker"], r.__dict__["attempt"])
        for r in caplog.records
    ]
    assert fields == [(job.id, "g", queue.name, None, 0)] + 2 * [(job.id, "g", queue.name, "w", 1)]


async def test_true_is_the_console(make_queue: MakeQueue, capsys: pytest.CaptureFixture[str]) -> None:
    queue = make_queue(logger=True)
    job = await queue.add(1, group_id="g")
    await Worker(queue, fail, logger=True).run(burst=True)
    shown = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in shown if f"job '{job.id}'" in line] == ["DEBUG", "DEBUG", "ERROR"]
    assert "Traceback (most recent call last):" in shown


async def test_nothing_is_written_for_jobs_when_nobody_wants_it(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "groupmq")
    await queue.add_many({"data": n} for n in range(50))
    await Worker(queue, Recorder(), concurrency=10).run(burst=True)
    assert caplog.records == []


async def test_whether_debug_lines_are_wanted_is_asked_once_for_many_jobs(make_queue: MakeQueue) -> None:
    class Counting(logging.Logger):
        asked = 0

        def isEnabledFor(self, level: int) -> bool:
            self.asked += 1
            return False

    logger = Counting("counting")
    queue = make_queue(logger=logger)
    await queue.add_many({"data": n} for n in range(500))
    assert logger.asked <= -(-500 // CHUNK), "a disabled level is checked once per call"
    await Worker(queue, Recorder(), concurrency=100).run(burst=True)
    assert logger.asked < 100


async def test_a_logger_that_raises_harms_nothing(make_queue: MakeQueue) -> None:
    class Broken:
        def debug(self, msg: str, *args: object) -> None:
            raise RuntimeError("disk full")

        info = warning = error = debug

    queue = make_queue(logger=Broken())
    job = await queue.add(1)
    await Worker(queue, fail).run(burst=True)
    assert (await queue.require_job(job.id)).state == "failed"


def test_the_blocking_queue_logs_what_it_adds(url: str, caplog: pytest.LogCaptureFixture) -> None:
    logger = Minimal()
    with BlockingQueue("orders", url) as queue, BlockingQueue("orders", url, logger=logger) as other:
        one = queue.add(1, group_id="g")
        [two] = other.add_many([{"data": 2, "group_id": "g"}])
    assert lines(caplog, one) == [("DEBUG", "groupmq.queue", "group 'g') added: it waits for a worker")]
    assert [line for _, line in logger.lines] == [
        f"job '{two.id}' (queue 'orders', group 'g') added: it waits for a worker"
    ]


@pytest.mark.parametrize("bad", [False, "console", 1, object()])
def test_what_is_no_logger_is_refused(bad: Any) -> None:
    expected = r"^logger: expected an object with debug, info, warning and error, or True, got "
    with pytest.raises(ConfigurationError, match=expected):
        Queue("orders", logger=bad)
    with pytest.raises(ConfigurationError, match=expected):
        BlockingQueue("orders", logger=bad)
    with pytest.raises(ConfigurationError, match=expected):
        Worker(Queue("orders"), fail, logger=bad)
