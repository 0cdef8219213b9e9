"""The lines that the library logs about the life of a job, from its add to its end."""

from __future__ import annotations

import logging

import pytest

from groupmq import FailJob, Job, Queue, RateLimited, Worker
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.log_lines import lines
from tests.support.waiting import eventually
from tests.support.workers import Recorder, Waiting, one_kind


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
            f"job {removed.id!r} (queue {queue.name!r}) was removed by a call; if it was running, its "
            "handler is stopped",
        ),
        (
            "DEBUG",
            "groupmq.queue",
            f"job {cancelled.id!r} (queue {queue.name!r}) was cancelled by a call: it was waiting, and is removed",
        ),
        (
            "INFO",
            "groupmq.queue",
            f"job {failed.id!r} (queue {queue.name!r}) was failed for good by a call: 'not\\nwanted'. If "
            "it was running, its handler is stopped",
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


async def test_adds_that_add_nothing_now_say_so(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    later = await queue.add(1, job_id="one\nline", delay=60)
    await queue.add(1, job_id="one\nline")
    await later.refresh()
    at = later.run_at
    assert at is not None
    assert [text for _, _, text in lines(caplog, later)] == [
        f"no group) added: it may start at {at.isoformat(timespec='milliseconds')}",
        "no group) exists already; nothing was added",
    ]
