"""Ways to reach a server: URLs and clients of the user; and the errors when it cannot be reached."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
import valkey
import valkey.asyncio
import valkey.asyncio.sentinel
import valkey.sentinel

from groupmq import ConfigurationError, ConnectionLost, Job, Queue, ServerRefused, Worker
from groupmq.client.connection import call_pool
from groupmq.client.connection import connections as connection
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.cluster_client import nodes_of
from tests.support.meta import numbers
from tests.support.servers import Server
from tests.support.waiting import eventually

SECRET = "s3cr3t-password"


class Raw:
    """A serializer for bytes, which need not be text in any encoding."""

    def encode(self, value: Any, /) -> bytes:
        return bytes(value)

    def decode(self, raw: bytes, /) -> Any:
        return raw


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make calls raise at once instead of waiting for a server to come back."""
    monkeypatch.setattr(connection.Connection.call, "__defaults__", (0.0, None, None))


@pytest.fixture
def nobody() -> str:
    """An address at which no server listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


async def works(queue: Queue, data: Any = "x") -> None:
    """Check that the whole life of a job works: it is added, run and read."""
    seen: list[Any] = []

    async def handle(job: Job) -> Any:
        seen.append(job.data)
        return job.data

    job = await queue.add(data, group_id="ö\n")
    await Worker(queue, handle, blocking_timeout=0.1).run(burst=True)
    found = await queue.require_job(job.id)
    assert (seen, found.state, found.data, found.return_value) == ([data], "completed", data, data)


@pytest.mark.one_server("an address of one server")
@pytest.mark.parametrize("scheme", ["redis", "valkey", "unix"])
async def test_a_url_of_each_scheme_reaches_the_server(server: Server, scheme: str) -> None:
    url = server.unix_url if scheme == "unix" else server.url.replace("redis://", f"{scheme}://")
    async with Queue("q", url) as queue:
        await works(queue)


@pytest.mark.one_server("a cluster has one database")
async def test_a_url_may_name_a_database(server: Server, client: Any) -> None:
    async with Queue("q", server.url.replace("/0", "/3")) as queue:
        await works(queue)
    async with Queue("q", f"{server.unix_url}?db=4") as queue:
        await works(queue)
    assert client.dbsize() == 0


async def test_an_embedded_server_is_a_server() -> None:
    async with Queue("q", "embedded://") as queue:
        await works(queue)


async def test_the_environment_names_the_server(server: Server, monkeypatch: pytest.MonkeyPatch, nobody: str) -> None:
    monkeypatch.delenv("GROUPMQ_URL", raising=False)
    monkeypatch.setenv("REDIS_URL", server.url)
    async with Queue("q") as queue:
        await works(queue)
    monkeypatch.setenv("REDIS_URL", f"redis://{nobody}")
    monkeypatch.setenv("GROUPMQ_URL", server.url)
    async with Queue("q") as queue:
        await works(queue)


async def test_without_any_word_the_server_is_the_local_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROUPMQ_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    assert "redis://127.0.0.1:6379" in repr(Queue("q"))


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{SECRET}@example.org",
        f"amqp://user:{SECRET}@example.org",
        f"user:{SECRET}@example.org:6379",
        "localhost:6379",
        "localhost",
        f"redis://user:{SECRET}@example.org:port",
        f"redis://user:{SECRET}@example.org:99999999",
        f"redis://user:{SECRET}@example.org?db=first",
        f"redis://user:{SECRET}/slash@example.org",
        f"redis://user:{SECRET}#hash@example.org",
        f"redis+cluster://user:{SECRET}@example.org/first",
        f"redis+cluster://user:{SECRET}@",
        f"redis+sentinel://user:{SECRET}@h1:26379,h2:26379",
        f"redis+sentinel://h1:26379,h2:port/mymaster?sentinel_password={SECRET}",
        f"redis+sentinel://h1:26379,,h2/mymaster?sentinel_password={SECRET}",
        f"redis+sentinel://h1/mymaster/first?sentinel_password={SECRET}",
        f"redis+sentinel://h1/mymaster?sentinel_password={SECRET}&colour=red",
        f"redis+elsewhere://user:{SECRET}@h1/mymaster",
        "embedded://host/dir",
        "embedded:///",
    ],
)
def test_a_url_that_leads_nowhere_is_refused_at_once_and_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^redis: ") as caught:
        Queue("q", url)
    assert SECRET not in str(caught.value)


@pytest.mark.one_server("a client of one server is handed in")
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decode", [True, False])
async def test_a_client_of_the_users_serves_whatever_its_settings_and_stays_open(
    server: Server, protocol: int, decode: bool
) -> None:
    client: Any = redis.asyncio.Redis.from_url(server.url, protocol=protocol, decode_responses=decode)
    async with Queue("q", client, serializer=Raw()) as queue:
        await works(queue, b"\xff\x00|||\xc0")
        await queue.add_many({"data": b"\xfe", "job_id": str(i), "delay": 60} for i in range(3))
        assert await queue.get_delayed_jobs() == ["0", "1", "2"]
        assert await queue.get_unique_groups() == []
        assert (await queue.repair()).clean
    assert await client.ping()
    await client.aclose()


@pytest.mark.one_server("a client of one server is handed in")
async def test_a_client_over_a_unix_socket_serves(server: Server) -> None:
    client: Any = redis.asyncio.Redis(unix_socket_path=str(server.socket_path), db=2)
    async with Queue("q", client) as queue:
        await works(queue)
    await client.aclose()


@pytest.mark.one_server("a client of one server is handed in")
async def test_a_valkey_client_serves(server: Server) -> None:
    client: Any = valkey.asyncio.Valkey.from_url(server.url)
    async with Queue("q", client) as queue:
        job = await queue.add({"x": 1}, group_id="g")
        assert (await queue.require_job(job.id)).data == {"x": 1}
    assert await client.ping()
    await client.aclose()


@pytest.mark.one_server("a client of one server is handed in")
async def test_many_queues_may_share_one_client(server: Server) -> None:
    client: Any = redis.asyncio.Redis.from_url(server.url)
    async with Queue("one", client) as one, Queue("two", client) as two:
        await one.add(1)
        await one.close()
        await two.add(2)
        assert (await two.get_job_counts()).total == 1
    await client.aclose()


@pytest.mark.parametrize("library", [redis, valkey], ids=["redis-py", "valkey-py"])
def test_a_client_of_sentinel_that_reads_from_replicas_is_refused_at_once(library: Any) -> None:
    addresses = [("127.0.0.1", 1)]
    with pytest.raises(ConfigurationError, match=r"^redis: .*give a client from Sentinel.master_for"):
        Queue("q", library.asyncio.sentinel.Sentinel(addresses).slave_for("primary"))
    with pytest.raises(ConfigurationError, match=r"^redis: .*give a client from Sentinel.master_for"):
        SyncQueue("q", library.sentinel.Sentinel(addresses).slave_for("primary"))


@pytest.mark.one_server("a client of one server is handed in")
async def test_a_blocking_client_is_refused_at_once(server: Server) -> None:
    client = redis.Redis.from_url(server.url)
    with pytest.raises(ConfigurationError, match=r"^redis: expected a URL or a redis.asyncio.Redis client, got "):
        Queue("q", client)
    client.close()


@pytest.mark.usefixtures("impatient")
async def test_a_refused_connection_says_where_and_never_the_password(nobody: str) -> None:
    async with Queue("q", f"redis://user:{SECRET}@{nobody}/5") as queue:
        with pytest.raises(ConnectionLost) as caught:
            await queue.add(1)
        message = str(caught.value)
        assert message.startswith(f"the server at redis://{nobody}/5 cannot be reached: ")
        assert SECRET not in message
        assert SECRET not in repr(queue)
        assert isinstance(caught.value, ConnectionError)
        with pytest.raises(ConnectionLost):
            await Worker(queue, print).start()


@pytest.mark.usefixtures("impatient")
async def test_a_socket_that_is_not_there_says_where(tmp_path: Any) -> None:
    async with Queue("q", f"unix://{tmp_path}/none.sock") as queue:
        with pytest.raises(ConnectionLost, match=f"the server at unix://{tmp_path}/none.sock cannot be reached"):
            await queue.get_job_counts()


@pytest.mark.usefixtures("impatient")
async def test_a_wrong_password_is_reported_as_such_and_not_shown() -> None:
    guarded = Server.start("valkey", config={"requirepass": "right"})
    try:
        host = guarded.url.removeprefix("redis://")
        for url in (f"redis://:{SECRET}@{host}", f"redis://user:{SECRET}@{host}"):
            async with Queue("q", url) as queue:
                with pytest.raises(ServerRefused, match="credentials") as caught:
                    await queue.add(1)
                assert SECRET not in str(caught.value)
        async with Queue("q", guarded.url) as queue:
            with pytest.raises(ServerRefused, match="credentials"):
                await queue.add(1)
        async with Queue("q", f"redis://:right@{host}") as queue:
            await works(queue)
    finally:
        guarded.stop()


async def test_a_closed_queue_leaves_no_connection(server: Server, client: Any) -> None:
    before = len(client.client_list())
    queue = Queue("q", server.url)
    await queue.add(1)
    assert len(client.client_list()) > before
    await queue.close()
    await queue.close()
    await eventually(lambda: len(client.client_list()) == before, "its connections are closed")


def paused_calls(client: Any) -> list[dict[str, str]]:
    """Connections whose call the server holds back while writes are paused."""
    return [one for one in client.client_list() if one["cmd"] == "fcall" and "b" in one["flags"]]


async def test_a_queue_that_is_closed_while_a_call_is_under_way_leaves_no_connection(
    server: Server, client: Any
) -> None:
    before = len(client.client_list())
    queue = Queue("q", server.url)
    await queue.add(1)
    client.client_pause(10_000, all=False)  # a call that writes still waits for its reply when the queue is closed
    pausing = asyncio.create_task(queue.pause_group("g"))
    await eventually(lambda: paused_calls(client), "the server has the call and holds it back")
    assert not pausing.done()
    await queue.close()
    client.client_unpause()
    await asyncio.gather(pausing, return_exceptions=True)
    await eventually(lambda: len(client.client_list()) == before, "its connections are closed")


async def test_closing_finishes_what_was_added(make_queue: MakeQueue) -> None:
    queue = make_queue("q")
    adds = [asyncio.ensure_future(queue.add(i)) for i in range(10)]
    await asyncio.sleep(0)
    await queue.close()
    assert len([add.result() for add in adds]) == 10
    assert (await make_queue("q").get_job_counts()).waiting == 10


async def test_any_number_of_calls_at_once_wait_for_each_other(queue: Queue, client: Any) -> None:
    jobs = await queue.add_many({"data": n} for n in range(400))
    assert await asyncio.gather(*(job.get_state() for job in jobs)) == ["waiting"] * 400
    assert len(client.client_list()) < 100
    assert await asyncio.gather(*(job.cancel() for job in jobs)) == [True] * 400


async def test_a_connection_that_was_closed_while_it_was_idle_is_replaced_and_nothing_sent_twice(
    server: Server, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_pool, "_TRUSTED", 0.0)
    async with Queue("q", server.url) as queue:
        await queue.add(1)
        client.client_kill_filter(_type="normal", skipme=True)
        ours = len(nodes_of(client))
        await eventually(lambda: len(client.client_list(_type="normal")) == ours, "no connection of the queue is left")
        client.config_resetstat()
        await queue.add(2)
        assert client.info("commandstats")["cmdstat_fcall"]["calls"] == 1
        assert "resent" not in numbers(client.hget(Keys("groupmq", "q").meta, "numbers"))


async def test_a_connection_that_was_idle_for_long_is_looked_at_and_used_again(
    server: Server, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_pool, "_TRUSTED", 0.0)
    async with Queue("q", server.url) as queue:
        await queue.add(1)
        opened = client.info("stats")["total_connections_received"]
        for n in range(5):
            await queue.add(n)
        assert client.info("stats")["total_connections_received"] == opened
