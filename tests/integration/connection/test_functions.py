"""The function library on real servers: loaded on demand, shared, and replaced by scripts where a server refuses it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from groupmq import Queue, ServerRefused, Worker
from groupmq.protocol import functions
from groupmq.sync import Queue as SyncQueue
from tests.support.servers import Kind, Server, available_kinds
from tests.support.waiting import eventually
from tests.support.workers import Recorder

pytestmark = pytest.mark.parametrize("kind", available_kinds())


@pytest.fixture
def fresh(kind: Kind) -> Iterator[Server]:
    """A separate server, since functions belong to the whole server."""
    server = Server.start(kind)
    yield server
    server.stop()


@pytest.fixture
def client(fresh: Server) -> Iterator[Any]:
    client = redis.Redis.from_url(fresh.url)
    yield client
    client.close()


def calls(client: Any, command: str) -> int:
    found: int = client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"]
    return found


def loads(client: Any) -> int:
    return calls(client, "function|load")


async def work_through(queue: Queue, n: int = 20) -> None:
    """Add jobs, promote one, run them all, and count them."""
    counts = await queue.get_job_counts()
    before = counts.completed + counts.waiting
    await queue.add_many([{"data": i, "group_id": f"g{i % 3}"} for i in range(n)])
    delayed = await queue.add("later", delay=60)
    assert await delayed.promote()
    await Worker(queue, Recorder(), concurrency=3).run(burst=True)
    assert (await queue.get_job_counts()).completed == before + n + 1


async def test_the_library_is_loaded_once_and_then_every_call_is_one_of_its_functions(
    fresh: Server, client: Any
) -> None:
    async with Queue("orders", fresh.url) as queue:
        await work_through(queue)
        assert queue.calls_by == "function"
    with SyncQueue("orders", fresh.url) as queue:
        assert queue.get_job_counts().completed == 21
        assert queue.calls_by == "function"
    assert loads(client) == 1
    assert calls(client, "evalsha") + calls(client, "eval") == 0


async def test_clients_that_load_at_once_do_not_disturb_each_other(fresh: Server, client: Any) -> None:
    queues = [Queue(f"q{i}", fresh.url) for i in range(12)]
    await asyncio.gather(*(queue.add(1) for queue in queues))
    assert {queue.calls_by for queue in queues} == {"function"}
    assert len(client.function_list()) == 1
    await asyncio.gather(*(queue.close() for queue in queues))


async def test_flushed_functions_are_loaded_again(fresh: Server, client: Any) -> None:
    async with Queue("orders", fresh.url) as queue:
        handler = Recorder()
        async with Worker(queue, handler):
            for i in range(5):
                client.function_flush()
                await queue.add(i)
                await handler.has_run(i)


async def test_a_restart_of_the_server_keeps_the_library(kind: Kind) -> None:
    server = Server.start(kind, aof=True)
    try:
        async with Queue("orders", server.url) as queue:
            await queue.add(1)
            server.kill()
            server.restart()
            await eventually(lambda: _is_up(server), "the server is back")
            await work_through(queue)
            assert queue.calls_by == "function"
        with redis.Redis.from_url(server.url) as client:
            assert loads(client) == 0, "the server must still have the library"
    finally:
        server.stop()


def _is_up(server: Server) -> bool:
    with redis.Redis.from_url(server.url) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


DENIED = {
    "functions": ["+@all", "-function", "-function|load"],
    "calls": ["+@all", "-fcall", "-fcall_ro"],
    "all of it": ["+@all", "-@scripting", "+evalsha", "+eval", "+evalsha_ro", "+eval_ro"],
}


@pytest.mark.parametrize("denied", DENIED)
async def test_a_user_without_functions_works_by_scripts(fresh: Server, client: Any, denied: str) -> None:
    client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", *DENIED[denied])
    url = fresh.url.replace("://", "://app:secret@")
    async with Queue("orders", url) as queue:
        await work_through(queue)
        assert queue.calls_by == "script"
        [found] = [one for one in await queue.check() if one.name == "functions"]
        assert found.status == ("ok" if denied == "calls" else "warn")
    assert client.function_list() == []


async def test_a_user_without_any_lua_gets_one_clear_error(fresh: Server, client: Any) -> None:
    client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-@scripting")
    async with Queue("orders", fresh.url.replace("://", "://app:secret@")) as queue:
        with pytest.raises(ServerRefused, match="denies this user a command or key"):
            await queue.add(1)


async def test_a_full_server_that_lost_its_functions_still_drains(fresh: Server, client: Any) -> None:
    """Loading a library needs memory, which the server refuses. Reports are sent as scripts, which need none."""
    handler = Recorder()
    async with Queue("orders", fresh.url, keep_completed=0) as queue:
        await queue.add_many([{"data": "x" * 1000, "group_id": f"g{i % 50}"} for i in range(2000)])
        client.function_flush()
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", int(client.info("memory")["used_memory"]) - 500_000)
        with pytest.raises(ServerRefused, match="out of memory"):
            await queue.add("one more")
        async with Worker(queue, handler, concurrency=20):
            assert await queue.wait_for_empty(30)
            await eventually(lambda: _has_room(client), "there is room again")
            await queue.add("one more")
            assert await queue.wait_for_empty(10)
    assert len(handler.ended) == 2001


def _has_room(client: Any) -> bool:
    memory = client.info("memory")
    return bool(memory["used_memory"] < memory["maxmemory"])


async def test_what_only_looks_may_be_asked_of_a_replica(fresh: Server, client: Any, kind: Kind) -> None:
    async with Queue("orders", fresh.url) as queue:
        job = await queue.add({"n": 1}, group_id="g")
    replica = Server.start(kind)
    try:
        with redis.Redis.from_url(replica.url) as direct:
            direct.replicaof("127.0.0.1", fresh.port)
            await eventually(lambda: direct.exists("groupmq:{orders}:meta"), "the replica has the queue")
        async with await Queue.open("orders", replica.url) as queue:
            found = await queue.get_job(job.id)
            assert found is not None
            assert found.data == {"n": 1}
            assert (await queue.get_job_counts()).waiting == 1
            assert (await queue.get_group("g")).waiting == 1
    finally:
        replica.stop()


async def test_two_releases_share_a_server(fresh: Server, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Queue("orders", fresh.url) as queue:
        await queue.add(1)
        names = {functions.library().name}
        other = functions.named(functions.library().text.replace(functions.library().name, "LIBRARY") + "\n", ())
        client.function_load(other.text)
        names.add(other.name)
        assert {library[b"library_name"].decode() for library in _listed(client)} == names
        await work_through(queue)


def _listed(client: Any) -> list[dict[bytes, bytes]]:
    return [
        library if isinstance(library, dict) else dict(zip(library[::2], library[1::2], strict=True))
        for library in client.function_list("groupmq_*")
    ]
