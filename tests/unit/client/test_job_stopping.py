"""The request to stop reaches a handler in a thread, whatever the thread does at that moment."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from groupmq.client.job import Job
from groupmq.core.codec import JSON
from groupmq.core.record import Record

TIMES = 50
Look = Callable[[Job, threading.Event], None]


def looks(job: Job, over: threading.Event) -> None:
    while not job.cancelled and not over.is_set():
        pass


def looks_at_the_event(job: Job, over: threading.Event) -> None:
    while not job.cancel_event.is_set() and not over.is_set():
        pass


@pytest.mark.parametrize("handle", [looks, looks_at_the_event])
def test_a_thread_that_looks_all_the_time_sees_that_it_is_to_end(
    handle: Callable[[Job, threading.Event], None],
) -> None:
    for n in range(TIMES):
        job = Job(None, JSON, "j", "active", Record(0, 0, 0, 0, 3, False, "g", {}, b"1"), 3)
        running, over = threading.Event(), threading.Event()

        def run(job: Job = job, running: threading.Event = running, over: threading.Event = over) -> None:
            running.set()
            handle(job, over)

        thread = threading.Thread(target=run)
        thread.start()
        assert running.wait(10)
        job._end_run()
        thread.join(5)
        saw = not thread.is_alive()
        over.set()
        thread.join()
        assert saw, f"thread {n} did not receive the request to stop"
