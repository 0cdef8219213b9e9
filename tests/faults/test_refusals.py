"""Servers that answer but refuse calls: each kind of refusal is recognised, and waited out if waiting helps.

The text of a refusal comes from the server, so these tests run on both kinds.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from groupmq import Job, Queue, ServerRefused, Worker
from groupmq.protocol import commands
from tests.faults.conftest import StartServer
from tests.support.servers import Kind, Server, available_kinds
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Listener, Recorder

pytestmark = pytest.mark.parametrize("kind", available_kinds())


async def refusal(queue: Queue) -> str:
    """The kind of refusal that a call without patience gets right now."""
    with pytest.raises(ServerRefused) as caught:
        await queue._connection.call(commands.switch(paused=False), patience=0.0)
    assert queue._connection.endpoint.where in str(caught.value)
    assert "user_function" not in str(caught.value)
    return caught.value.kind


async def add_that_waits(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> asyncio.Task[Job]:
    """Begin an add, and return when the server has refused it twice: a call that raises or gives up fails here."""
    pauses: list[float] = []
    producer = Queue(queue.name, queue._connection.endpoint.where)
    sleep = producer._connection.sleep

    def pause(seconds: float) -> Coroutine[Any, Any, None]:
        pauses.append(seconds)
        return sleep(seconds)

    async def add() -> Job:
        async with producer:
            return await producer.add("waits")

    monkeypatch.setattr(producer._connection, "sleep", pause)
    adding = asyncio.create_task(add())
    await eventually(lambda: adding.done() or len(pauses) >= 2, "the add was refused and will be tried again")
    assert not adding.done()
    return adding


async def test_a_worker_that_starts_while_the_server_is_full_drains_it(start_server: StartServer, kind: Kind) -> None:
    server = start_server(kind)
    handler = Recorder()
    async with Queue("orders", server.url) as queue:
        await queue.add_many([{"data": i, "group_id": f"g{i % 5}"} for i in range(50)])
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        async with Queue("orders", server.url) as opened_later, Worker(opened_later, handler):
            assert await opened_later.wait_for_empty(20)
        client.config_set("maxmemory", 0)
    assert len(handler.ended) == 50


async def test_a_server_without_memory_refuses_adds_clearly_and_workers_drain_it(
    start_server: StartServer, kind: Kind
) -> None:
    server = start_server(kind)
    handler = Recorder()
    with redis.Redis.from_url(server.url) as client:
        async with Queue("orders", server.url, keep_completed=0) as queue:
            items = [{"data": "x" * 1000, "group_id": f"g{i % 50}"} for i in range(3000)]
            await queue.add_many(items)
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", int(client.info("memory")["used_memory"]) - 500_000)
            with pytest.raises(ServerRefused, match="out of memory") as caught:
                await queue.add("x" * 1000)
            assert caught.value.kind == "OOM"
            assert "script" not in str(caught.value)
            with pytest.raises(ServerRefused):
                await queue.add_many(items[:10])
            assert (await queue.get_job_counts()).waiting == 3000
            worker = Worker(queue, handler, concurrency=20)
            heard = Listener(worker, "error", "failed")
            async with worker:
                assert await queue.wait_for_empty(20)
                await queue.add("there is room again")
                assert await queue.wait_for_empty(5)
            assert len(handler.ended) == 3001
            assert heard.heard == []


async def test_a_worker_outlasts_a_server_that_became_a_replica_and_was_promoted_again(
    start_server: StartServer, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary = start_server(kind, config={"repl-diskless-sync-delay": 0})
    server = start_server(kind)
    handler = Recorder()
    with redis.Redis.from_url(server.url) as client:
        async with Queue("orders", server.url) as queue:
            worker = Worker(queue, handler, blocking_timeout=0.3)
            heard = Listener(worker, "error")
            async with worker:
                client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
                await eventually(
                    lambda: client.info("replication")["master_link_status"] == "up",
                    "the replica follows",
                )
                assert await refusal(queue) == "READONLY"
                await eventually(
                    lambda: [
                        e for (e,) in heard.args("error") if isinstance(e, ServerRefused) and e.kind == "READONLY"
                    ],
                    "the worker emits the error",
                )
                # An add that waits meanwhile succeeds once the server is a primary again.
                adding = await add_that_waits(queue, monkeypatch)
                client.execute_command("REPLICAOF", "NO", "ONE")
                await adding
                await eventually(lambda: handler.ended == ["waits"], "the worker works again")


async def test_a_worker_outlasts_a_server_that_is_busy_with_a_long_script(
    start_server: StartServer, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(kind, config={"busy-reply-threshold": 50})
    handler = Recorder()
    async with Queue("orders", server.url) as queue:
        worker = Worker(queue, handler, blocking_timeout=0.3)
        heard = Listener(worker, "failed", "lease-lost")
        async with worker:
            with endless_script(server):
                await eventually(lambda: busy(server), "the server is busy")
                assert await refusal(queue) == "BUSY"
                adding = await add_that_waits(queue, monkeypatch)
            await adding
            await eventually(lambda: handler.ended == ["waits"], "the worker works again")
    assert heard.heard == []


@contextmanager
def endless_script(server: Server) -> Iterator[None]:
    """A script of another program that runs until it is killed."""

    def run() -> None:
        with redis.Redis.from_url(server.url, socket_timeout=30) as client, pytest.raises(redis.ResponseError):
            client.eval("while true do end", 0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        with redis.Redis.from_url(server.url) as client:
            wait_until(lambda: killed(client), "the script is killed")
        thread.join(10)


def killed(client: redis.Redis) -> bool:
    try:
        client.script_kill()
    except redis.ResponseError as error:
        return "NOTBUSY" in str(error)
    return False


def busy(server: Server) -> bool:
    with redis.Redis.from_url(server.url, retry=None) as client:
        try:
            client.ping()
        except redis.ResponseError as error:
            return "BUSY" in str(error)
        return False


async def test_a_loading_server_is_waited_for(start_server: StartServer, kind: Kind) -> None:
    # Each key takes half a millisecond to load, and the server answers clients meanwhile.
    slow = {"key-load-delay": 500, "loading-process-events-interval-bytes": 1024, "dbfilename": "dump.rdb"}
    server = start_server(kind, config=slow)
    handler = Recorder()
    async with Queue("orders", server.url) as queue:
        await queue.add("before", group_id="g")
        with redis.Redis.from_url(server.url) as client:
            client.mset({f"filler:{i}": "x" * 100 for i in range(2000)})
            client.save()
        server.kill()
        restarting = asyncio.create_task(asyncio.to_thread(server.restart))
        kinds: set[str] = set()

        async def loading() -> bool:
            try:
                await queue._connection.call(commands.counts(), patience=0.0)
            except ServerRefused as error:
                kinds.add(error.kind)
            except ConnectionError:
                return False
            return bool(kinds)

        await eventually(loading, "the server says that it is loading")
        assert kinds == {"LOADING"}
        worker = Worker(queue, handler)
        # It starts while the server is still loading, and works once that is done.
        async with worker:
            await restarting
            await eventually(lambda: handler.ended == ["before"], "the job from before ran")


async def test_a_node_of_a_cluster_that_has_other_slots_is_named_so(start_server: StartServer, kind: Kind) -> None:
    """One of two nodes owns the slot of the queue, and the call goes to the other one."""
    buses = [free_port(), free_port()]
    nodes = [start_server(kind, config={"cluster-enabled": "yes", "cluster-port": bus}) for bus in buses]
    clients: list[Any] = [redis.Redis.from_url(node.url) for node in nodes]
    slot = clients[0].execute_command("CLUSTER", "KEYSLOT", "orders")
    clients[0].execute_command("CLUSTER", "ADDSLOTSRANGE", slot, slot)
    clients[1].execute_command("CLUSTER", "ADDSLOTSRANGE", 0, slot - 1, slot + 1, 16383)
    clients[1].execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, buses[0])
    try:
        wait_until(lambda: is_ok(clients[1]), "the nodes know each other")
        async with Queue("orders", nodes[1].url) as queue:
            with pytest.raises(ServerRefused, match="is a node of a cluster and does not own the slot") as caught:
                await queue.add(1)
        assert caught.value.kind == "MOVED"
    finally:
        for client in clients:
            client.close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def is_ok(client: Any) -> bool:
    return str(client.cluster("info")["cluster_state"]) == "ok"
