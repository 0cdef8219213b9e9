"""The blocking client: events, callbacks in a thread, results, cancelling."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import redis

import groupmq
from groupmq import ConfigurationError, FailJob, Job, JobFailed, JobNotFound, JobRemoved, Worker, WrongState
from groupmq.core.ids import new_id
from groupmq.sync import Queue
from tests.support.listening import Heard, end_connections, readers
from tests.support.waiting import wait_until

hanging: set[str] = set()
"""The jobs whose handler was called and hangs."""


async def handle(job: Job) -> Any:
    match job.data:
        case "fail":
            raise FailJob("no use")
        case "hang":
            hanging.add(job.id)
            await asyncio.Event().wait()
        case "large":
            return "x" * 100_000
    return {"did": job.data}


@contextlib.contextmanager
def working(queue: Queue, url: str) -> Iterator[None]:
    """Run a worker in a separate thread inside the block."""
    over, ready = threading.Event(), threading.Event()

    async def main() -> None:
        keep = {"keep_completed": queue.options.keep_completed, "keep_failed": queue.options.keep_failed}
        async with groupmq.Queue(queue.name, url, **keep) as same, Worker(same, handle, concurrency=4):  # type: ignore[arg-type]
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        assert ready.wait(10)
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(f"q-{new_id()}", url) as queue:
        yield queue


class Tail:
    """Collects events in a thread."""

    def __init__(self, queue: Queue, n: int, since: str | None = None) -> None:
        self.heard = Heard()
        self._thread = threading.Thread(target=lambda: self.heard.extend(islice(queue.events(since), n)), daemon=True)
        self._thread.start()

    def join(self) -> Heard:
        self._thread.join(10)
        assert not self._thread.is_alive(), f"received only {self.heard.kinds()}"
        return self.heard


def test_events_are_delivered_in_order_and_from_any_event_on(queue: Queue, url: str, client: Any) -> None:
    tail = Tail(queue, 4)
    wait_until(lambda: readers(client), "a connection reads the log")
    with working(queue, url):
        job = queue.add("x", group_id="g")
        heard = tail.join()
    assert [(event.kind, event.job_id) for event in heard] == [
        ("added", job.id),
        ("active", job.id),
        ("completed", job.id),
        ("drained", None),
    ]
    assert heard[2].result == {"did": "x"}
    for at in range(3):
        assert list(islice(queue.events(heard[at].id), 3 - at)) == heard[at + 1 :]
    with pytest.raises(ConfigurationError, match="since: expected the id of an event"):
        next(queue.events("yesterday"))


def test_callbacks_are_called_in_a_thread_while_there_are_any(queue: Queue, client: Any) -> None:
    heard, threads = Heard(), set[str]()

    def broken(event: groupmq.Event) -> None:
        raise ValueError("broken listener")

    def listen(event: groupmq.Event) -> None:
        threads.add(threading.current_thread().name)
        heard.append(event)

    queue.on("added", broken)
    assert queue.on("added", listen) is listen
    queue.add_many({"data": n} for n in range(3))
    wait_until(lambda: len(heard) == 3, "all events are received")
    assert threads == {f"{queue.name}-events"}
    assert queue.off("added", listen)
    assert not queue.off("added", listen)
    queue.remove_all_listeners()
    queue.pause()
    wait_until(lambda: not readers(client), "no connection reads the log any more")
    queue.on("resumed", heard.append)
    queue.resume()
    wait_until(lambda: len(heard) == 4, "a new listener receives events again")
    for bad in (("finished", print), ("added", "print")):
        with pytest.raises(ConfigurationError, match="expected"):
            queue.on(*bad)


@pytest.mark.parametrize("data", ["work", "large", "fail"])
@pytest.mark.parametrize("kept", [0, 100])
@pytest.mark.parametrize("when", ["before", "during"])
def test_results(url: str, data: str, kept: int, when: str, client: Any) -> None:
    with Queue(f"q-{new_id()}", url, keep_completed=kept, keep_failed=kept) as queue:
        ended: list[Any] = []

        def wait(job: Any) -> None:
            try:
                ended.append(job.result(10))
            except JobFailed as error:
                ended.append((error.reason, "FailJob" in error.stacktrace))

        job = queue.add(data)
        thread = threading.Thread(target=wait, args=(job,))
        if when == "during":
            thread.start()
            wait_until(lambda: readers(client), "a call waits for the result")
        with working(queue, url):
            assert queue.wait_for_empty(10)
        if when == "before":
            thread.start()
        thread.join(10)
        assert ended == [{"work": {"did": "work"}, "large": "x" * 100_000, "fail": ("no use", True)}[data]]


def test_a_result_that_never_comes(queue: Queue) -> None:
    job = queue.add(1)
    with pytest.raises(TimeoutError):
        job.result(timeout=0.05)
    job.remove()
    with pytest.raises(JobRemoved):
        job.result(timeout=5)


def test_a_result_outlives_the_connection_it_was_waited_for_on(queue: Queue, url: str, client: Any) -> None:
    job, ended = queue.add("x"), list[Any]()
    thread = threading.Thread(target=lambda: ended.append(job.result(15)))
    thread.start()
    wait_until(lambda: readers(client), "a call waits for the result")
    end_connections(client, readers(client))
    with working(queue, url):
        thread.join(15)
    assert ended == [{"did": "x"}]


def test_callbacks_outlive_their_connection(queue: Queue, client: Any) -> None:
    heard = Heard()
    queue.on("added", heard.append)
    wait_until(lambda: readers(client), "a connection reads the log")
    end_connections(client, readers(client))
    queue.add(1)
    wait_until(lambda: heard, "the event is received")
    assert heard.kinds() == ["added"]


def test_without_events_results_are_asked_for(url: str) -> None:
    with Queue(f"q-{new_id()}", url, events=False) as queue:
        for listen in (lambda: queue.on("added", print), lambda: queue.events()):
            with pytest.raises(ConfigurationError, match="events=False"):
                listen()
        job = queue.add(1)
        with pytest.raises(TimeoutError):
            job.result(0.05)
        job.remove()
        with pytest.raises(JobRemoved):
            job.result(1)


def test_cancelling(queue: Queue, url: str) -> None:
    with working(queue, url):
        job = queue.add("hang", group_id="g")
        wait_until(lambda: job.id in hanging, "it runs")
        assert job.get_state() == "active"
        queue.save_all([queue.create_job(n).group("g") for n in range(5)])
        assert queue.cancel_group("g") == 6
        with pytest.raises(JobFailed, match="cancelled"):
            job.result(3)
        with pytest.raises(WrongState):
            job.cancel()
        later = queue.add(1, delay=60)
        assert queue.cancel(later.id)
        with pytest.raises(JobNotFound):
            later.cancel()


@pytest.mark.one_server("one connection for each primary that has a queue")
def test_one_connection_reads_for_all_queues_listeners_and_waiters_of_a_process(url: str, client: Any) -> None:
    queues = [Queue(f"q-{n}", url) for n in range(5)]
    heard, ended = Heard(), list[Any]()
    threads = []
    for queue in queues:
        queue.on("completed", heard.append)
        for n in range(10):
            job = queue.add(n)
            threads.append(threading.Thread(target=lambda job=job: ended.append(job.result(15))))
    for thread in threads:
        thread.start()
    wait_until(lambda: readers(client), "a connection reads the log")
    assert len(readers(client)) == 1
    for queue in queues:
        with working(queue, url):
            assert queue.wait_for_empty(10)
        assert len(readers(client)) <= 1
    for thread in threads:
        thread.join(15)
    assert len(ended) == 50
    wait_until(lambda: len(heard) == 50, "all events are received")
    for queue in queues:
        queue.close()
    wait_until(lambda: not readers(client), "no connection reads the log any more")


@pytest.mark.one_server("a client of one server is handed in")
@pytest.mark.parametrize("decode", [False, True])
def test_a_client_of_ones_own_is_listened_through_as_well(url: str, decode: bool) -> None:
    with redis.Redis.from_url(url, decode_responses=decode) as own, Queue("own", own) as queue:
        heard = Heard()
        queue.on("completed", heard.append)
        job = queue.add("x")
        with working(queue, url):
            assert job.result(10) == {"did": "x"}
        wait_until(lambda: heard, "the event is received")


def test_a_forked_child_listens_by_itself(queue: Queue, url: str) -> None:
    heard = Heard()
    queue.on("added", heard.append)
    first = queue.add("before")
    wait_until(lambda: heard, "the parent receives the event")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if first.result(10) == {"did": "before"} else 2
        finally:
            os._exit(code)
    with working(queue, url):
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert first.result(10) == {"did": "before"}
    queue.add("after")
    wait_until(lambda: len(heard) == 2, "the parent still receives events")


def test_a_wait_that_is_given_up_leaves_nothing_behind(url: str, client: Any) -> None:
    """Ctrl-C ends the wait of a program, which exits without any message about open connections or threads."""
    program = (
        "import signal\nfrom groupmq.sync import Queue\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job of a shell ignores SIGINT
        f"queue = Queue('q', {url!r})\nseen = []\nqueue.on('added', seen.append)\n"
        "try:\n    queue.add(1, delay=600).result(60)\nexcept KeyboardInterrupt:\n    print('stopped')\n"
    )
    command = [sys.executable, "-c", program]
    with Queue("q", url) as queue, subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        wait_until(lambda: readers(client) and queue.get_job_counts().delayed, "the program waits")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert (out, err, process.returncode) == ("stopped\n", "", 0)
