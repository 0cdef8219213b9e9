"""`check` and `get_server_info`: findings and facts about a queue and its server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Finding, GroupMQError, Queue, ServerInfo, ServerRefused, Worker
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.clusters import ON_CLUSTER
from tests.support.servers import Server
from tests.support.waiting import eventually

ON_CLUSTER_TOO = ["topology"] if ON_CLUSTER else []
SERVER = ["version", "role", *ON_CLUSTER_TOO, "persistence", "eviction", "memory", "scripts", "functions", "clock"]
QUEUE = ["queue", "settings", "paused", "workers", "oldest waiting", "longest held", "blocked groups", "retention"]


def statuses(found: list[Finding]) -> dict[str, str]:
    return {one.name: one.status for one in found}


async def test_everything_is_looked_at(queue: Queue, url: str) -> None:
    found = await queue.check()
    assert [one.name for one in found] == SERVER + QUEUE
    with SyncQueue(queue.name, url) as same:
        assert statuses(same.check()) == statuses(found)


async def test_check_and_server_info_show_neither_the_address_nor_a_secret(
    make_queue: MakeQueue, server: Server, client: Any
) -> None:
    client.execute_command("ACL", "SETUSER", "op", "on", ">s3cr3t", "~*", "&*", "+@all")
    try:
        queue = make_queue("orders", redis=server.url_of("op", "s3cr3t"))
        await queue.add(1)
        found, info = await queue.check(), asdict(await queue.get_server_info())
        await queue.close()
    finally:
        client.execute_command("ACL", "DELUSER", "op")
    assert "s3cr3t" not in f"{found} {info}"
    # Only a cluster's findings may name addresses, since they must say which primary was checked.
    told = f"{[one for one in found if one.name not in ON_CLUSTER_TOO]} {info}"
    for address in ("127.0.0.1", str(server.port), "redis://"):
        assert address not in told


async def test_a_job_that_waits_longer_than_it_may_fails_the_check(queue: Queue) -> None:
    await queue.add(1, group_id="g")

    async def waited() -> bool:
        return ((await queue.get_metrics(0)).oldest_startable_wait or 0) > 0.01

    await eventually(waited, "the job has waited")
    assert statuses(await queue.check(oldest=0.01))["oldest waiting"] == "fail"
    found = statuses(await queue.check())
    assert (found["oldest waiting"], found["workers"]) == ("ok", "fail")
    with pytest.raises(ConfigurationError, match=r"^oldest: expected"):
        await queue.check(oldest=-1)


async def test_failures_that_retention_drops_are_warned_of(make_queue: MakeQueue) -> None:
    async def fails(_job: Any) -> None:
        raise FailJob("on purpose")

    queue = make_queue("orders", keep_failed=3)
    await queue.add_many({"data": n} for n in range(5))
    await Worker(queue, fails).run(burst=True)
    [found] = [one for one in await queue.check() if one.name == "retention"]
    assert (found.status, found.detail) == ("warn", "2 failed jobs dropped in the last hour")
    assert "keep_failed" in found.hint


async def test_a_group_that_waits_for_a_decision_is_warned_of_and_then_fails_the_check(make_queue: MakeQueue) -> None:
    queue = make_queue("orders", on_failed="hold")
    await queue.add(1, group_id="user:1", job_id="charge")
    await queue.fail("charge", "declined")

    async def blocked_for_a_while() -> bool:
        return ((await queue.get_metrics(0)).longest_blocked or 0) > 0.01

    await eventually(blocked_for_a_while, "the group has been blocked for some milliseconds")
    [found] = [one for one in await queue.check() if one.name == "blocked groups"]
    assert (found.status, found.detail.split(" for ")[0]) == ("warn", "1 group; 'user:1'")
    assert "by job 'charge'" in found.detail
    assert found.hint.endswith(f"groupmq job skip --queue {queue.name} charge")
    assert statuses(await queue.check(oldest=0.01))["blocked groups"] == "fail"
    await queue.skip("charge")
    assert statuses(await queue.check(oldest=0.01))["blocked groups"] == "ok"
    assert (await queue.get_metrics(0)).longest_blocked is None


@pytest.mark.one_server("compares with the figures of one server")
async def test_the_server_describes_itself(queue: Queue, server: Server, client: Any) -> None:
    stored: Any = client.info()
    info = await queue.get_server_info()
    version = stored.get("valkey_version") or stored["redis_version"]
    assert info == ServerInfo(
        kind="Valkey" if server.kind == "valkey" else "Redis",
        version=version,
        role="primary",
        used_memory=info.used_memory,
        maxmemory=0,
        eviction_policy="noeviction",
        persistence="none",
        uptime=info.uptime,
        connected_clients=info.connected_clients,
    )
    assert info.used_memory > 100_000
    assert stored["uptime_in_seconds"] <= info.uptime
    assert info.connected_clients >= 2
    for name, value, expected in (
        ("save", "60 1", "snapshots"),
        ("appendonly", "yes", "append-only file"),
    ):
        before = client.config_get(name)[name]
        client.config_set(name, value)
        assert (await queue.get_server_info()).persistence == expected
        client.config_set(name, before)


async def test_a_user_without_config_does_not_know_how_the_server_persists(server: Server, client: Any) -> None:
    client.execute_command("ACL", "SETUSER", "managed", "on", "nopass", "~*", "&*", "+@all", "-config", "-save")
    client.execute_command("ACL", "SETUSER", "poor", "on", "nopass", "~*", "&*", "+@all", "-info")
    try:
        with SyncQueue("orders", server.url_of("managed")) as queue:
            assert queue.get_server_info().persistence == "unknown"
            assert statuses(queue.check())["persistence"] == "warn"
        poor = SyncQueue("orders", server.url_of("poor"))
        with poor, pytest.raises(ServerRefused, match="denies this user"):
            poor.get_server_info()
    finally:
        client.execute_command("ACL", "DELUSER", "managed", "poor")


async def test_a_closed_queue_is_not_asked(url: str) -> None:
    queue = Queue("orders", url)
    await queue.close()
    with SyncQueue("orders", url) as blocking:
        pass
    for call in (queue.get_server_info, queue.check):
        with pytest.raises(GroupMQError, match="is closed"):
            await call()
    for ask in (blocking.get_server_info, blocking.check):
        with pytest.raises(GroupMQError, match="is closed"):
            ask()
