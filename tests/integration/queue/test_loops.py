"""One Queue object in several event loops, one after the other or at once, and after a fork."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from groupmq import ConfigurationError, Event, GroupMQError, Job, Queue, Worker
from groupmq.core.ids import new_id
from groupmq.protocol.requesters import Requesters
from tests.support.waiting import eventually, wait_until


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    """A queue that is made while no loop runs, as by an import of a module."""
    queue = Queue(f"q-{new_id()}", url)
    yield queue
    asyncio.run(queue.close())


async def handle(job: Job) -> Any:
    return job.data


async def round_trip(queue: Queue, data: Any) -> Any:
    """Add a job, run it and wait for its result, all in this loop."""
    async with Worker(queue, handle):
        return await (await queue.add(data, group_id="g")).result(20)


def in_thread(work: Callable[[], Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run a coroutine in a new event loop of another thread, as test clients of web frameworks do."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(work())))
    thread.start()
    thread.join(60)
    return found


def in_child(work: Callable[[], Any]) -> int:
    """Run a function in a forked child. Returns the exit status."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_queue_works_in_one_loop_after_the_other(queue: Queue) -> None:
    for i in range(3):
        assert asyncio.run(round_trip(queue, i)) == i


def test_a_queue_works_in_a_loop_of_each_thread(queue: Queue) -> None:
    assert in_thread(lambda: round_trip(queue, "a")) == ["a"]
    assert asyncio.run(round_trip(queue, "b")) == "b"
    assert in_thread(lambda: round_trip(queue, "c")) == ["c"]


def test_a_queue_works_in_two_loops_at_once(queue: Queue) -> None:
    both = threading.Barrier(2)

    async def work() -> list[str]:
        await queue.get_job_counts()
        both.wait(20)
        jobs = await asyncio.gather(*(queue.add(i, group_id="g") for i in range(300)))
        return [await job.get_state() for job in jobs]

    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(work()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [["waiting"] * 300] * 2
    assert asyncio.run(queue.get_waiting_count()) == 600


def test_an_add_that_its_loop_left_behind_stops_nobody(queue: Queue) -> None:
    adding: list[asyncio.Future[Job]] = []

    async def leave() -> None:
        adding.append(asyncio.ensure_future(queue.add("left")))
        await asyncio.sleep(0)  # the add is sent at the end of this tick, after the loop has ended

    asyncio.run(leave())
    asyncio.run(queue.add("next"))
    assert asyncio.run(queue.get_waiting_count()) >= 1


def test_connections_end_with_their_loop(queue: Queue, client: redis.Redis) -> None:
    before = len(client.client_list())
    for i in range(3):
        asyncio.run(round_trip(queue, i))
        wait_until(lambda: len(client.client_list()) == before, "its connections are closed")


def test_listeners_are_called_in_the_next_loop(queue: Queue) -> None:
    heard: list[Any] = []
    queue.on("completed", lambda event: heard.append(event.job_id))

    async def work(n: int) -> None:
        await round_trip(queue, n)
        await eventually(lambda: len(heard) == n, "the event of its end is received")

    asyncio.run(work(1))
    asyncio.run(work(2))
    assert len(set(heard)) == 2


def test_events_are_followed_in_each_loop(queue: Queue) -> None:
    async def first_event() -> Event | None:
        async for event in queue.events():
            return event
        return None

    async def work() -> str | None:
        following = asyncio.ensure_future(first_event())
        while not following.done():
            await queue.add(1)
            await asyncio.wait([following], timeout=0.05)
        event = following.result()
        return event.kind if event else None

    assert [asyncio.run(work()), asyncio.run(work())] == ["added", "added"]


def test_a_forked_child_goes_on_with_the_queue_and_so_does_its_parent(queue: Queue) -> None:
    assert asyncio.run(round_trip(queue, "before")) == "before"

    def child() -> None:
        for i in range(2):
            assert asyncio.run(round_trip(queue, i)) == i
        asyncio.run(queue.close())

    assert in_child(child) == 0
    assert asyncio.run(round_trip(queue, "after")) == "after"


async def test_a_child_that_is_forked_while_the_loop_runs_leaves_its_parent_alone(url: str) -> None:
    async with Queue(f"q-{new_id()}", url) as queue:
        await queue.add("parent")
        status = await asyncio.to_thread(in_child, lambda: asyncio.run(queue.add("child")))
        await queue.add("parent again")
        assert (status, await queue.get_waiting_count()) == (0, 3)


def test_a_forked_child_has_requesters_of_its_own() -> None:
    requesters = Requesters()
    requesters.give_back(requesters.take())
    read, write = os.pipe()
    assert in_child(lambda: os.write(write, requesters.take().requester.encode())) == 0
    name, number = requesters.take()
    assert os.read(read, 100).decode().partition(":")[0] != name.partition(":")[0]
    assert number == 2
    os.close(read)
    os.close(write)


@pytest.mark.one_server("a client of one server is handed in")
def test_a_client_of_the_users_stays_in_its_loop(url: str) -> None:
    client: Any = redis.asyncio.Redis.from_url(url)
    queue = Queue(f"q-{new_id()}", client)

    async def second() -> None:
        with pytest.raises(
            ConfigurationError,
            match=r"^redis: this client belongs to the event loop and process .* give the Queue a URL",
        ):
            await queue.add(2)

    async def main() -> None:
        await queue.add(1)
        await asyncio.to_thread(lambda: asyncio.run(second()))
        await client.aclose()

    asyncio.run(main())

    async def again() -> None:
        await queue.add(3)  # the queue must not use a connection of another loop
        await client.aclose()

    asyncio.run(again())


async def test_a_worker_is_closed_in_its_own_loop(url: str) -> None:
    async with Queue(f"q-{new_id()}", url) as queue:
        worker = await Worker(queue, handle).start()

        async def close() -> None:
            with pytest.raises(GroupMQError, match="runs in another event loop; close it there"):
                await worker.close()

        await asyncio.to_thread(lambda: asyncio.run(close()))
        await worker.close()


def test_a_worker_whose_loop_is_over_does_not_hinder_closing(url: str) -> None:
    queue = Queue(f"q-{new_id()}", url)

    async def work() -> Worker:
        return await queue.process(handle)

    worker = asyncio.run(work())
    asyncio.run(queue.close())
    assert worker.is_closed()


PROGRAM = """
import asyncio
from groupmq import Queue, Worker

queue = Queue("program", {url!r})

async def handle(job):
    return job.data

async def main():
    asyncio.get_running_loop().slow_callback_duration = 10  # a busy machine is slow; that is nothing left behind
    async with Worker(queue, handle):
        return await (await queue.add(1)).result(20)

print(asyncio.run(main()), asyncio.run(main()))
"""


def test_a_program_that_closes_nothing_ends_without_a_word(url: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM.format(url=url)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("1 1\n", "", 0)
