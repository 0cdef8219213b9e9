"""The loggers that get the lines about jobs: those of the library, or those of a queue or a worker."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, Queue, Worker
from groupmq.protocol.commands import CHUNK
from groupmq.sync import Queue as BlockingQueue
from tests.conftest import MakeQueue
from tests.support.log_lines import lines
from tests.support.workers import Recorder


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "groupmq")


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
