"""The bequest: the data by which a supervisor takes back the jobs of a dead worker."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis.asyncio

from groupmq import Job, Queue, Worker


async def nothing(job: Job) -> None: ...


def plain(job: Job) -> None: ...


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@127.0.0.1:6379/3",
        "unix:///tmp/none.sock",
        "redis+cluster://h1:6379,h2:6379",
        "redis+sentinel://h1:26379,h2:26379/mymaster/0",
    ],
)
async def test_it_names_the_server_however_that_is_found(url: str) -> None:
    async with Queue("orders", url, prefix="p") as queue:
        worker = Worker(queue, nothing, max_attempts=7)
        told = json.loads(worker.bequest() or "null")
        assert (told["url"], told["queue"], told["prefix"], told["worker"]) == (url, "orders", "p", worker.id)
        assert told["max_attempts"] == 7


async def test_there_is_none_of_a_client_that_the_user_gave_or_of_handlers_in_other_processes() -> None:
    client: Any = redis.asyncio.Redis()
    async with Queue("orders", client) as queue:
        assert Worker(queue, nothing).bequest() is None
    await client.aclose()
    async with Queue("orders", "redis://127.0.0.1:6379") as queue:
        assert Worker(queue, plain, executor="process").bequest() is None
