"""The queues of a server: which are listed, which are not, and what happens when the list cannot be written."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
import valkey
import valkey.asyncio

from groupmq import ConfigurationError, ConnectionLost, Queue, QueueInfo, ServerRefused, Worker
from groupmq.client import registry
from groupmq.client.connection import endpoint, registry_entry
from groupmq.protocol.keys import Keys, registry_key
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.by_hand import ClientByHand
from tests.support.servers import Server
from tests.support.waiting import eventually
from tests.support.workers import Recorder

LIST = registry_key("groupmq")
WEIRD = ["a b", "ö", "x:active", "queues", "\n", "\x00", "*", "[a-z]", "0", "%7B", "a" * 4000, "日本語"]


@pytest.fixture(autouse=True)
def nothing_told_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_entry, "_warned", set())


async def names(url: Any, **how: Any) -> list[str]:
    return [info.name for info in await Queue.list(url, **how)]


async def test_a_queue_is_listed_once_it_is_opened(make_queue: MakeQueue, url: str) -> None:
    assert await Queue.list(url) == []
    await make_queue("orders").add(1)
    assert (await make_queue("mails").get_job_counts()).total == 0
    made_only = make_queue("never used")
    assert await Queue.list(url) == [QueueInfo("mails", "groupmq"), QueueInfo("orders", "groupmq")]
    assert made_only.name not in await names(url)


async def test_weird_names_are_listed_as_they_are(make_queue: MakeQueue, url: str) -> None:
    for name in WEIRD:
        await make_queue(name).add(1)
    assert await names(url) == sorted(WEIRD)
    for name in WEIRD:
        queue = await Queue.open(name, url)
        assert (await queue.get_job_counts()).waiting == 1
        await queue.close()


async def test_queues_of_two_prefixes_are_listed_apart(make_queue: MakeQueue, url: str) -> None:
    await make_queue("a").add(1)
    await make_queue("b", prefix="other").add(1)
    await make_queue("a", prefix="groupmq:queues").add(1)
    assert await names(url) == ["a"]
    assert await Queue.list(url, prefix="other") == [QueueInfo("b", "other")]
    assert await names(url, prefix="groupmq:queues") == ["a"]
    assert await names(url, prefix="nobody's") == []
    with pytest.raises(ConfigurationError, match="prefix: expected a name without braces"):
        await Queue.list(url, prefix="{x}")


async def test_an_obliterated_queue_is_no_longer_listed_and_one_made_again_is(make_queue: MakeQueue, url: str) -> None:
    queue = make_queue("orders")
    await queue.add(1)
    await make_queue("other").add(1)
    await queue.obliterate()
    assert await names(url) == ["other"]
    await queue.add(2)
    assert await names(url) == ["orders", "other"]
    with SyncQueue.open("orders", url) as same:
        same.obliterate()
    assert await names(url) == ["other"]


async def test_the_last_queue_leaves_no_key(make_queue: MakeQueue, url: str, client: redis.Redis) -> None:
    queue = make_queue("orders")
    await queue.add(1)
    await queue.obliterate()
    assert client.keys() == []


async def test_after_a_flush_a_worker_that_goes_on_lists_its_queue_again(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    queue, recorder = make_queue("orders"), Recorder()
    async with Worker(queue, recorder, blocking_timeout=0.1, heartbeat=0.05):
        await queue.add(1)
        await recorder.has_run(1)
        client.flushall()

        async def listed() -> bool:
            return await names(url) == ["orders"]

        await eventually(listed, "the worker, which gets no job, has listed its queue")


async def test_a_queue_that_is_gone_is_struck_out_by_the_next_list(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    await make_queue("orders").add(1)
    client.sadd(LIST, *(f"gone {n}" for n in range(250)))
    assert await names(url) == ["orders"]
    assert client.smembers(LIST) == {b"orders"}


async def test_what_is_not_the_name_of_a_queue_is_left_alone(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    await make_queue("orders").add(1)
    strangers = [b"\xff\xfe", b"{tag}", b"", b"x" * 5000]
    client.sadd(LIST, *strangers)
    assert await names(url) == ["orders"]
    assert client.scard(LIST) == 5


@pytest.mark.one_server("counts commands; in a cluster each queue is asked for where it is")
async def test_thousands_of_queues_are_listed_a_page_at_a_time(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    await make_queue("orders").add(1)
    [(_, stored)] = [(key, client.hgetall(key)) for key in client.keys("*meta")]
    with client.pipeline(transaction=False) as pipe:
        for n in range(2500):
            pipe.hset(Keys("groupmq", f"q{n:04}").meta, mapping={b"schema": stored[b"schema"], b"config": b"{}"})
            pipe.sadd(LIST, f"q{n:04}")
        pipe.execute()
    client.config_resetstat()
    assert await names(url) == ["orders", *(f"q{n:04}" for n in range(2500))]
    calls = {name: stat["calls"] for name, stat in client.info("commandstats").items()}
    assert calls["cmdstat_sscan"] <= 12
    assert calls["cmdstat_exists"] == 26
    assert "cmdstat_scan" not in calls
    assert "cmdstat_keys" not in calls


async def test_a_queue_made_again_while_it_is_struck_out_stays_listed(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    client.sadd(LIST, "orders")
    client_by_hand = ClientByHand(make_queue("orders")._connection.session)
    steps = registry.strike(client_by_hand, "groupmq", "orders")
    assert steps.send(None) == ("SREM", LIST, "orders")
    await make_queue("orders").add(1)
    removed = client.srem(LIST, "orders")  # the SREM arrives after the queue was made again
    assert steps.send(removed) == ("EXISTS", Keys("groupmq", "orders").meta)
    assert steps.send(client.exists(Keys("groupmq", "orders").meta)) == ("SADD", LIST, "orders")
    with pytest.raises(StopIteration) as ended:
        steps.send(client.sadd(LIST, "orders"))
    assert ended.value.value is False
    assert await names(url) == ["orders"]


@pytest.mark.one_server("a client of one server is handed in")
@pytest.mark.parametrize("decodes", [True, False])
@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("library", [redis, valkey])
async def test_any_client_of_the_users_lists_and_opens(
    make_queue: MakeQueue, url: str, library: Any, protocol: int, decodes: bool
) -> None:
    await make_queue("orders").add(1)
    how: dict[str, Any] = {"decode_responses": decodes, "protocol": protocol}
    theirs = (
        library.asyncio.Redis.from_url(url, **how) if library is redis else valkey.asyncio.Valkey.from_url(url, **how)
    )
    assert await names(theirs) == ["orders"]
    queue = await Queue.open("orders", theirs)
    assert (await queue.get_server_info()).connected_clients > 0
    assert {one.status for one in await queue.check()} >= {"ok"}
    await queue.close()
    assert await theirs.ping(), "a client that the user passed in must not be closed"
    await theirs.aclose()
    blocking = library.Redis.from_url(url, **how) if library is redis else valkey.Valkey.from_url(url, **how)
    assert [info.name for info in SyncQueue.list(blocking)] == ["orders"]
    with SyncQueue.open("orders", blocking) as same:
        assert same.get_server_info().kind in ("Redis", "Valkey")
        assert same.check()[0].status == "ok"
    blocking.close()


async def test_a_key_of_another_kind_stops_nobody_and_is_logged_once(
    url: str, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    client.set(LIST, "of another program")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            async with Queue("orders", url) as queue:
                await queue.add(1)
                await Worker(queue, Recorder()).run(burst=True)
    [told] = [record.getMessage() for record in caplog.records]
    assert told.startswith(
        "queue orders works, but Queue.list() will not show it: its name cannot be written to the key "
    )
    assert client.get(LIST) == b"of another program"
    with pytest.raises(
        ConfigurationError, match=r"'groupmq:queues' at .* is not a list of queues: another program wrote it"
    ):
        await Queue.list(url)
    async with Queue("orders", url) as queue:
        await queue.obliterate()


@pytest.fixture
def limited(server: Server, client: Any) -> Any:
    """The URL of a user who may use the keys of one queue only."""
    client.execute_command(
        "ACL", "SETUSER", "limited", "on", ">secret", "~groupmq:{orders}:*", "&*", "+@all", "-@dangerous"
    )
    yield server.url_of("limited", "secret")
    client.execute_command("ACL", "DELUSER", "limited")


async def test_a_user_who_may_not_write_the_list_works_without_it(
    limited: str, url: str, caplog: pytest.LogCaptureFixture, client: redis.Redis
) -> None:
    recorder = Recorder()
    with caplog.at_level(logging.WARNING):
        async with Queue("orders", limited) as queue, Worker(queue, recorder, blocking_timeout=0.1):
            await queue.add(1, group_id="g")
            await recorder.has_run(1)
            await eventually(queue.get_completed_count, "the job is done")
            assert (await queue.get_job_counts()).completed == 1
    [told] = [record.getMessage() for record in caplog.records]
    assert "denies this user a command or key" in told
    assert "secret" not in told
    with pytest.raises(ServerRefused, match="denies this user"):
        await Queue.list(limited)
    assert await names(url) == []
    with SyncQueue("orders", limited) as same:
        same.obliterate()
    assert not client.exists(Keys("groupmq", "orders").meta)


@pytest.mark.parametrize("partitions", [1, 3])
async def test_the_rights_that_the_docs_name_are_enough_to_be_listed(
    server: Server, client: Any, caplog: pytest.LogCaptureFixture, partitions: int
) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "deploy.md").read_text("utf-8")
    [rule] = [line for line in guide.splitlines() if line.startswith("ACL SETUSER orders ")]
    client.execute_command(*rule.split())
    recorder = Recorder()
    try:
        theirs = server.url_of("orders", "secret")
        with caplog.at_level(logging.WARNING):
            queue = Queue("orders", theirs, partitions=partitions)
            async with queue, Worker(queue, recorder, blocking_timeout=0.1):
                await queue.add(1, group_id="g")
                await recorder.has_run(1)
                assert await names(theirs) == ["orders"]
        assert caplog.records == []
    finally:
        client.execute_command("ACL", "DELUSER", "orders")


async def test_a_user_sees_only_the_queues_it_may_read(make_queue: MakeQueue, server: Server, client: Any) -> None:
    for name in ("mine", "theirs"):
        await make_queue(name).add(1)
    client.sadd(LIST, "gone")
    client.execute_command(
        "ACL", "SETUSER", "some", "on", "nopass", f"~{LIST}", "~groupmq:{mine}:*", "+@read", "+ping", "+cluster|slots"
    )
    try:
        assert await names(server.url_of("some")) == ["mine"]
        assert client.smembers(LIST) == {b"mine", b"theirs", b"gone"}
    finally:
        client.execute_command("ACL", "DELUSER", "some")


async def test_a_queue_that_could_not_be_listed_for_now_is_listed_later(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    queue = make_queue("orders")
    entry = queue._connection.session.entry
    client.config_set("maxmemory", 1)
    try:
        await queue._connection.enter()
    finally:
        client.config_set("maxmemory", 0)
    assert 0 < entry.due < float("inf")
    await queue.add(1)  # opens the queue, and lists it
    assert await names(url) == ["orders"]
    client.delete(LIST)
    entry.due = 0.0
    await queue.get_job_counts()
    assert await names(url) == ["orders"]
    assert entry.due == float("inf")


async def test_a_server_that_is_away_raises_connection_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "PATIENCE", 0.0)
    with pytest.raises(ConnectionLost):
        await Queue.list("redis://127.0.0.1:1")


def test_a_queue_opened_by_many_processes_is_listed_once(url: str, client: redis.Redis) -> None:
    program = "import sys; from groupmq.sync import Queue; q = Queue('orders', sys.argv[1]); q.add(1); q.close()"
    path = {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    children = [subprocess.Popen([sys.executable, "-c", program, url], env=os.environ | path) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4
    assert SyncQueue.list(url) == [QueueInfo("orders", "groupmq")]
    assert client.smembers(LIST) == {b"orders"}


async def test_listing_writes_nothing_on_a_server_where_all_is_well(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    await make_queue("orders").add(1)
    before = client.info("persistence")["rdb_changes_since_last_save"]
    assert await names(url) == ["orders"]
    opened = await Queue.open("orders", url)
    await opened.get_settings()
    await opened.get_marks()
    await opened.check()
    await opened.close()
    assert client.info("persistence")["rdb_changes_since_last_save"] == before


async def test_a_replica_lists_the_queues_and_leaves_the_list_as_it_is(
    make_queue: MakeQueue, server: Server, client: redis.Redis
) -> None:
    await make_queue("orders").add(1)
    client.sadd(LIST, "gone")
    replica = Server.start(server.kind, config={"replicaof": f"127.0.0.1 {server.port}"})
    try:
        with redis.Redis.from_url(replica.url) as second:
            await eventually(lambda: second.scard(LIST) == 2, "the replica has the data of its primary")
        assert await names(replica.url) == ["orders"]
        opened = await Queue.open("orders", replica.url)
        assert (await opened.get_server_info()).role == "replica"
        assert {one.name: one.status for one in await opened.check()}["role"] == "fail"
        await opened.close()
        assert client.smembers(LIST) == {b"orders", b"gone"}
    finally:
        replica.stop()
