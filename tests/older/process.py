"""A process of an older release: only its public API is used here. Prints the results as lines of JSON.

Run by its path, with the older package first on PYTHONPATH.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import redis.asyncio

from groupmq import GroupMQError, Job, Queue, Worker


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def attempt(name: str, operation: Callable[[], Awaitable[Any]]) -> None:
    try:
        answer = await operation()
    except GroupMQError as error:
        say(tried=name, error=type(error).__name__, text=str(error))
    else:
        say(tried=name, answer=repr(answer))


async def nothing(job: Job) -> None:
    """Report a job that has reached this handler; none must."""
    say(ran=job.id)


async def try_all(url: str, name: str) -> None:
    """Try every operation of an old process on a queue, each with a new object, as after a start of the process."""
    operations: dict[str, Callable[[Queue], Awaitable[Any]]] = {
        "add": lambda queue: queue.add(1, group_id="g", job_id="of-the-old"),
        "add many": lambda queue: queue.add_many([{"data": n, "group_id": "g"} for n in range(3)]),
        "count": lambda queue: queue.get_job_counts(),
        "read": lambda queue: queue.get_job("a"),
        "groups": lambda queue: queue.get_groups(),
        "work": lambda queue: Worker(queue, nothing).run(burst=True),
        "recover": lambda queue: queue.run_duty_once("recovery"),
        "schedule": lambda queue: queue.run_duty_once("scheduler"),
        "pause": lambda queue: queue.pause(),
        "retry": lambda queue: queue.retry("bad"),
        "remove": lambda queue: queue.remove("a"),
        "clean": lambda queue: queue.clean("completed"),
        "settings": lambda queue: queue.get_settings(),
        "reconfigure": lambda queue: queue.reconfigure(max_attempts=9),
        "own settings": lambda queue: queue.reconfigure(),
        "repair": lambda queue: queue.repair(),
        "obliterate": lambda queue: queue.obliterate(),
    }
    for what, operation in operations.items():
        async with Queue(name, url, max_attempts=2) as queue:
            await attempt(what, lambda queue=queue, operation=operation: operation(queue))  # type: ignore[misc]
    await attempt("open", lambda: Queue.open(name, url))


async def make(url: str, name: str, jobs: int) -> None:
    async with Queue(name, url) as queue:
        for n in range(jobs):
            await queue.add(n, group_id=f"g{n % 3}")
    say(made=jobs)


async def work(url: str, name: str) -> None:
    """Work until standard input ends. Records each job in the list `log`, with the process that ran it."""
    client = redis.asyncio.Redis.from_url(url)

    async def handle(job: Job) -> None:
        await client.rpush("log", json.dumps(["older", job.group_id, job.data]))

    async with Queue(name, url) as queue:
        worker = Worker(queue, handle, concurrency=4, name="older")
        worker.on("error", lambda error: say(error=type(error).__name__, text=str(error)))
        await worker.start()
        say(works=name)
        await asyncio.to_thread(sys.stdin.read)
        await worker.close(timeout=5)
    await client.aclose()
    say(closed=name)


async def obliterate(url: str, name: str) -> None:
    async with Queue(name, url) as queue:
        await queue.get_job_counts()
        await queue.obliterate()
    say(obliterated=name)


def main() -> None:
    logging.basicConfig(level="CRITICAL")
    what, url, name, *rest = sys.argv[1:]
    if what == "make":
        asyncio.run(make(url, name, int(rest[0])))
    else:
        asyncio.run({"try": try_all, "work": work, "obliterate": obliterate}[what](url, name))


if __name__ == "__main__":
    main()
