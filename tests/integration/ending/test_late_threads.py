"""A handler thread that is slow to start: if its job is ended in the meantime, its handler must not be called."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from groupmq import Job, Queue, Worker
from groupmq.worker.runners.threads import HandlerThread
from tests.support.parts import parts_of
from tests.support.waiting import eventually


class SlowThreads:
    """Every handler thread begins with a job only when the gate is open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate, self.asked = threading.Event(), 0
        ask: Callable[..., Any] = HandlerThread.ask
        run = HandlerThread.run

        def asked(thread: HandlerThread, given: Any) -> Any:
            self.asked += 1
            return ask(thread, given)

        def late(thread: HandlerThread) -> None:
            self.gate.wait(30)
            run(thread)

        monkeypatch.setattr(HandlerThread, "ask", asked)
        monkeypatch.setattr(HandlerThread, "run", late)


@pytest.mark.parametrize("how", ["remove", "fail", "cancel"])
async def test_its_handler_is_not_called_after_the_job_was_ended(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    threads, called = SlowThreads(monkeypatch), []

    def handle(job: Job) -> None:
        called.append(job.data)

    async with Worker(queue, handle) as worker:
        job = await queue.add("ended", group_id="g")
        await eventually(lambda: threads.asked == 1, "the job is handed to the thread")
        [(running, _)] = parts_of(worker).executor.running_tasks()
        assert await getattr(job, how)()
        await eventually(lambda: running._stopped, "the worker has stopped its run")
        threads.gate.set()
        await (await queue.add("next", group_id="g")).result(timeout=10)
    assert called == ["next"]
