"""A page costs the server of the queues only a few commands, however large the queue is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from groupmq import Ordering, Queue
from groupmq.dashboard.pages import PAGES
from tests.conftest import MakeQueue
from tests.dashboard.visitor import Site
from tests.support.servers import Server

MOST = 50
GREETING = ("HELLO", "CLIENT")
GROUPS, JOBS = 10_000, 100_000


class Commands:
    """The commands that clients sent, without those that scripts ran.

    Commands that open a connection do not count: how many connections are opened depends on how busy the machine is.
    """

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url)
        self._monitor: Any = None
        self.seen: list[str] = []

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        self.seen = []
        with self._client.monitor() as monitor:  # type: ignore[no-untyped-call]
            yield self.seen
            self._client.echo("end of the count")
            for command in monitor.listen():
                if command["command"] == "ECHO end of the count":
                    break
                name = command["command"].split(" ", 1)[0]
                if command["client_type"] != "lua" and name not in GREETING:
                    self.seen.append(name)

    def close(self) -> None:
        self._client.close()


@pytest.fixture(params=["ready", "held"])
async def large(request: pytest.FixtureRequest, make_queue: MakeQueue) -> Queue:
    """A large queue whose groups are all ready, or all wait for late arrivals."""
    queue = make_queue("orders", ordering=Ordering.event_time(3600) if request.param == "held" else None)
    items = ({"data": {"n": n}, "group_id": f"user:{n % GROUPS}"} for n in range(JOBS))
    await queue.add_many(items)
    for n in range(300):
        await queue.add({"n": n}, job_id=f"failed-{n}")
        await queue.fail(f"failed-{n}", f"error number {n}")
    for n in range(300):
        await queue.pause_group(f"user:{n}")
    return queue


@pytest.mark.timeout(240)
async def test_no_page_takes_many_commands(server: Server, large: Queue, site: Site) -> None:
    commands = Commands(server.url)
    first = (await site.json("jobs", queue="orders"))["jobs"][0]
    ids = {"group": first["group_id"], "job": first["id"]}
    taken = {}
    for name in PAGES:
        if name == "task":
            continue
        for params in ({}, {"limit": 200, "behind": 5}) if name == "lanes" else ({},):
            with commands.counted() as seen:
                await site.page(name, queue="orders", **ids, **params)
            taken[f"{name} {params}"] = len(seen)
    commands.close()
    assert max(taken.values()) <= MOST, taken
