"""Sentinel: every connection finds the primary, and finds it again after a failover."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio.sentinel
import redis.sentinel
import valkey
import valkey.asyncio.sentinel
import valkey.sentinel

from groupmq import Queue, Worker
from groupmq.errors import ConnectionLost, ServerRefused
from groupmq.sync import Queue as SyncQueue
from tests.support import keyspace
from tests.support.fleet import Fleet
from tests.support.load import all_done, in_order, working
from tests.support.sentinels import SERVICE, Sentinels
from tests.support.servers import Kind, available_kinds, prefer
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Recorder, add_and_obliterate, looked_once, works

SECRET, SENTINEL_SECRET = "s3cr3t-of-the-server", "s3cr3t-of-the-sentinels"


@pytest.fixture(scope="module")
def calm() -> Iterator[Sentinels]:
    """A service with passwords of both kinds, without failovers."""
    with Sentinels(prefer("valkey"), password=SECRET, sentinel_password=SENTINEL_SECRET) as service:
        yield service


def calm_url(service: Sentinels, *, password: str = SECRET, sentinel_password: str = SENTINEL_SECRET) -> str:
    return f"redis+sentinel://:{password}@{service.addresses}/{SERVICE}/2?sentinel_password={sentinel_password}"


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Iterator[Sentinels]:
    """A service for one test. Its queues must be consistent after it."""
    kind: Kind = getattr(request, "param", prefer("valkey"))
    with Sentinels(kind) as service:
        yield service
        with service.client(service.primary) as client:
            keyspace.check(client)


each_kind = pytest.mark.parametrize("service", available_kinds(), indirect=True)


async def test_a_url_leads_to_the_primary_with_passwords_of_both_kinds(calm: Sentinels) -> None:
    async with Queue("by-url", calm_url(calm)) as queue:
        await works(queue)
        assert queue.address == f"redis+sentinel://{calm.addresses}/{SERVICE}/2"
        assert [info.name for info in await Queue.list(calm_url(calm))] == ["by-url"]
        findings = {finding.name: finding for finding in await queue.check()}
        assert findings["role"].detail == "primary"
        primary = f"127.0.0.1:{calm.primary.port}"
        assert findings["topology"].detail == f"Sentinel: the primary of {SERVICE!r} is {primary} (3 sentinels known)"
        await queue.obliterate()
    with redis.Redis(port=calm.primary.port, password=SECRET, db=2) as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize("library", [redis, valkey], ids=["redis-py", "valkey-py"])
@pytest.mark.parametrize("asynchronous", [True, False], ids=["asyncio", "blocking"])
async def test_a_client_of_sentinel_describes_the_service(calm: Sentinels, library: Any, asynchronous: bool) -> None:
    module = library.asyncio.sentinel if asynchronous else library.sentinel
    addresses = [("127.0.0.1", sentinel.port) for sentinel in calm.sentinels]
    sentinel = module.Sentinel(addresses, sentinel_kwargs={"password": SENTINEL_SECRET}, password=SECRET, db=2)
    client = sentinel.master_for(SERVICE)
    async with Queue("by-client", client) as queue:
        await works(queue)
        assert queue.address == f"redis+sentinel://{calm.addresses}/{SERVICE}/2"
    await asyncio.to_thread(add_and_obliterate, "by-client", client)
    if asynchronous:
        await client.aclose()
    else:
        client.close()


async def test_a_wrong_password_of_the_sentinels_is_said_and_not_shown(calm: Sentinels) -> None:
    url = calm_url(calm, sentinel_password="wrong-one")
    queue = Queue.attach("q", url, patience=60)
    began = time.monotonic()
    with pytest.raises(ServerRefused, match="no sentinel names a primary") as caught:
        await queue.get_job_counts()
    with SyncQueue("q", url) as blocking, pytest.raises(ServerRefused, match="no sentinel names a primary"):
        blocking.add(1)
    assert time.monotonic() - began < 10, "waiting cannot help, so the call must fail at once"
    assert "wrong-one" not in str(caught.value)
    assert SECRET not in str(caught.value)
    await queue.close()


async def test_an_unknown_service_is_named(calm: Sentinels) -> None:
    url = calm_url(calm).replace(f"/{SERVICE}/", "/elsewhere/")
    queue = Queue.attach("q", url, patience=0.0)
    with pytest.raises(ConnectionLost, match="knows no service 'elsewhere'"):
        await queue.get_job_counts()
    await queue.close()


async def test_a_sentinel_that_is_silent_is_passed_over(calm: Sentinels) -> None:
    calm.sentinels[0].pause()
    try:
        async with Queue("one-silent", calm_url(calm)) as queue:
            began = time.monotonic()
            await queue.add(1)
            assert time.monotonic() - began < 5
            await queue.obliterate()
    finally:
        calm.sentinels[0].resume()


async def test_without_a_sentinel_open_connections_go_on_and_new_ones_wait(service: Sentinels) -> None:
    async with Queue("orders", service.url) as queue:
        await queue.add("before")
        for sentinel in service.sentinels:
            sentinel.kill()
        await queue.add("without sentinels")
        other = Queue.attach("orders", service.url.replace("127.0.0.1", "localhost"), patience=0.0)
        with pytest.raises(ConnectionLost, match="no sentinel names a primary"):
            await other.get_job_counts()
        for sentinel in service.sentinels:
            sentinel.restart()
        other._connection.patience = 15.0
        assert await other.get_waiting_count() == 2
        await other.close()


@each_kind
@pytest.mark.parametrize("how", [Sentinels.kill_primary, Sentinels.fail_over], ids=["killed", "failover-asked-for"])
async def test_nothing_replicated_is_lost_when_the_primary_changes_under_load(
    service: Sentinels, how: Callable[[Sentinels], object]
) -> None:
    async with working(service.url, "orders", job_timeout=5) as (load, handler):
        await load.goes_on(100)
        safe = tuple(load.added)
        await asyncio.to_thread(service.replicated)
        await asyncio.to_thread(how, service)
        await load.goes_on(200)
        await all_done(load, handler, (*safe, *load.added[-100:]))
        assert in_order(handler.started) == {}
        assert set(handler.started) <= set(load.added)


async def test_worker_processes_go_on_after_the_primary_was_killed(service: Sentinels) -> None:
    async with Queue("orders", service.url, job_timeout=5) as queue:
        with Fleet(service.url, "orders", job_timeout=5, worker={"heartbeat": 0.5}) as fleet:
            await asyncio.to_thread(fleet.start, 2)
            before = [(await queue.add({"n": n}, group_id=f"g{n % 3}")).id for n in range(30)]
            await asyncio.to_thread(service.replicated)
            await asyncio.to_thread(service.kill_primary)
            after = [(await queue.add({"n": n}, group_id=f"g{n % 3}")).id for n in range(30, 60)]
            expected = {*before, *after}
            await eventually(
                lambda: expected <= {line["job"] for line in fleet.lines("completed")}, "all jobs completed", 30
            )


async def test_an_idle_worker_and_a_listener_follow_at_once_though_they_are_blocked(service: Sentinels) -> None:
    """Their reads block for long on the old primary, which is a replica now and would never wake them."""
    handler, heard = Recorder(), list[Any]()
    async with Queue("orders", service.url) as queue, Queue("orders", service.url) as listener:
        listener.on("completed", lambda event: heard.append(event.job_id))
        await listener.get_waiting_count()  # from now on it is subscribed
        async with Worker(queue, handler, heartbeat=20, blocking_timeout=60) as worker:
            await (await queue.add("before")).result(20)
            await looked_once(worker)
            await asyncio.to_thread(service.replicated)
            await asyncio.to_thread(service.fail_over)
            job = await queue.add("after")
            assert await job.result(20) is None
            await eventually(lambda: job.id in heard, "the listener receives the event", 20)
    assert handler.ended == ["before", "after"]


async def test_a_frozen_primary_is_left(service: Sentinels) -> None:
    """Its connections stay open: calls time out, and then go to the new primary."""
    handler = Recorder()
    queue = Queue("orders", f"{service.url}?socket_timeout=1")
    async with queue, Worker(queue, handler, heartbeat=0.5, blocking_timeout=30):
        await (await queue.add("before")).result(20)
        await asyncio.to_thread(service.replicated)
        frozen = await asyncio.to_thread(lambda: service.primary)
        frozen.pause()
        try:
            assert await (await queue.add("after")).result(30) is None
        finally:
            frozen.resume()
    assert handler.ended == ["before", "after"]


@each_kind
async def test_a_blocking_client_and_what_it_listens_to_follow(service: Sentinels) -> None:
    def use(url: str) -> int:
        heard: list[Any] = []
        with SyncQueue("orders", url) as queue:
            queue.on("added", lambda event: heard.append(event.job_id))
            before = queue.add("before")
            wait_until(lambda: heard == [before.id], "the first event is received")
            service.replicated()
            service.kill_primary()
            after = queue.add("after")
            assert after.duplicate is False
            wait_until(lambda: heard == [before.id, after.id], "the second event is received", 20)
            return queue.get_waiting_count()

    assert await asyncio.to_thread(use, service.url) == 2
