"""Fixtures of the operator's commands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import groupmq
from groupmq import Every, Job, Worker
from groupmq.sync import Queue
from tests.cli.operating import Command
from tests.cli.programs import Programs, in_folder
from tests.support.waiting import wait_until


@pytest.fixture
def programs(tmp_path: Path, url: str) -> Iterator[Programs]:
    """Starts `groupmq` as separate programs in a folder with handlers."""
    yield from in_folder(tmp_path, url)


@pytest.fixture
def queue(orders: Queue) -> Queue:
    return orders


@pytest.fixture
def command(url: str) -> Command:
    """The command `groupmq`, with the test's server and the queue `orders`."""
    return Command(url)


@pytest.fixture
def orders(url: str) -> Iterator[Queue]:
    """The queue `orders`, used through the library."""
    with Queue("orders", url) as queue:
        yield queue


@pytest.fixture
def stocked(orders: Queue, url: str) -> Queue:
    """`orders` with jobs in every state but active, and a repeat."""
    orders.add({"n": 0}, job_id="done", group_id="user:1")
    finish(url)
    wait_until(lambda: not orders.get_workers(), "the worker that ran it is no longer registered")
    orders.add({"n": 1}, job_id="a", group_id="user:1", max_attempts=5)
    orders.add({"n": 2}, job_id="b", group_id="user:1", priority=3)
    orders.add({"n": 3}, job_id="c", group_id="user:2", timeout=1.5)
    orders.add(["text", None], job_id="late", run_at=4_102_444_800)
    for name in ("bad-1", "bad-2"):
        orders.add({"name": name}, job_id=name, group_id="user:3")
        orders.fail(name, "no such customer")
    orders.add({"kind": "sweep"}, group_id="sweep", repeat=Every(3600, key="hourly"))
    return orders


def finish(url: str) -> None:
    """Run every job that waits in `orders`."""

    async def handle(job: Job) -> dict[str, int]:
        await job.log("half way")
        return {"charged": 7}

    async def work() -> None:
        async with groupmq.Queue("orders", url) as queue:
            await Worker(queue, handle, name="orders-0123456789ab", maintenance=False, heartbeat=0.1).run(burst=True)

    asyncio.run(work())
