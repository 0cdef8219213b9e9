"""The server of the queues goes down and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from groupmq import Queue
from groupmq.dashboard.live import reader as readers
from groupmq.protocol.keys import Keys
from tests.conftest import MakeQueue
from tests.dashboard.serving import listening_to, serving, until
from tests.dashboard.visitor import Site
from tests.support.servers import Server
from tests.support.waiting import eventually


@pytest.fixture
def mortal() -> Iterator[Server]:
    server = Server.start("valkey", aof=True)
    yield server
    server.stop()


async def test_a_queue_that_cannot_be_read_says_so_and_the_others_are_shown(
    make_queue: MakeQueue, site: Site, client: Any
) -> None:
    await make_queue("emails").add({})
    await make_queue("orders").add({})
    client.hset(Keys("groupmq", "orders").meta, "schema", "999")
    rows = {row["name"]: row for row in (await site.json("queues"))["queues"]}
    assert rows["emails"]["error"] is None
    assert "stored in format 999" in rows["orders"]["error"]
    html = await site.page("queues")
    assert html.count("This queue cannot be read") == 1
    assert (await site.get("/queues/orders")).status_code in (400, 409, 422)
    assert (await site.get("/queues/nothing")).status_code == 404
    client.flushall()


async def test_pages_say_that_the_server_is_away_and_work_again_when_it_is_back(mortal: Server) -> None:
    async with Queue("orders", mortal.url) as queue:
        await queue.add({}, group_id="g")
    site = Site(redis=mortal.url)
    assert "orders" in await site.page("queues")
    mortal.kill()
    # Concurrently, since each request retries for some seconds before it gives up.
    answer, listed, page = await asyncio.gather(
        site.get("/queues/orders/lanes"), site.get("/"), site.json("lanes", 503, queue="orders")
    )
    assert answer.status_code == 503
    assert "does not answer" in answer.text
    assert answer.headers["retry-after"]
    assert listed.status_code == 503
    assert "does not answer" in listed.text
    for text in (answer.text, listed.text):
        assert str(mortal.port) not in text
    assert page["unreachable"]
    mortal.restart()
    await eventually(lambda: _works(site), "the page works again")
    await site.close()


async def _works(site: Site) -> bool:
    return (await site.get("/queues/orders/lanes")).status_code == 200


async def test_a_stream_says_that_the_server_is_gone_and_back(mortal: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SNAPSHOT_EVERY", "CHANGES_EVERY", "ROWS_EVERY", "_AGAIN_AFTER"):
        monkeypatch.setattr(readers, name, 0.05)
    async with Queue("orders", mortal.url) as queue:
        await queue.add({}, group_id="g")
    site = Site(redis=mortal.url)
    async with serving(site.dashboard) as at, listening_to(f"{at}/queues/orders/stream") as stream:
        await until(stream, "snapshot")
        mortal.kill()
        gone = await until(stream, "gone", 30)
        assert str(mortal.port) not in gone.data["text"]
        mortal.restart()
        await until(stream, "back", 30)
        async with Queue("orders", mortal.url) as queue:
            await queue.add({}, job_id="after")
        while "after" not in (changed := await until(stream, "changed", 30)).data["jobs"]:
            assert changed.name == "changed"
    await site.close()


async def test_a_queue_that_is_deleted_is_gone_from_the_pages(queue: Queue, site: Site) -> None:
    await queue.add({})
    await site.page("queue", queue=queue.name)
    await queue.obliterate()
    await eventually(lambda: _gone(site, queue.name), "the queue's page is gone")
    await eventually(lambda: _empty(site), "the queue is off the list")


async def _gone(site: Site, name: str) -> bool:
    return (await site.get(f"/queues/{name}")).status_code == 404


async def _empty(site: Site) -> bool:
    return not (await site.json("queues"))["queues"]
