"""The monitor reads a real queue: what it finds, what that costs, and that it changes nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import redis

from groupmq import Queue, QueueSurvey, Worker
from groupmq.cli.monitor.fetch import CALLS, FAILURES, GROUPS, QueueWatcher
from groupmq.cli.options.target import Target
from groupmq.core.errors import ConfigurationError, ConnectionLost, JobNotFound, QueueNotFound, WrongState
from groupmq.protocol import commands
from groupmq.sync import Queue as SyncQueue
from tests.cli.blocking import blocked
from tests.conftest import MakeQueue
from tests.support.servers import Server
from tests.support.waiting import eventually
from tests.support.workers import Waiting, one_kind


@pytest.fixture
def orders(make_queue: MakeQueue) -> Queue:
    return make_queue("orders")


async def fill(orders: Queue, sizes: dict[str, int]) -> None:
    await orders.add_many([{"data": n, "group_id": name} for name, size in sizes.items() for n in range(size)])


def sizes(look: QueueSurvey) -> dict[str | None, int]:
    return {group.id: group.waiting for group in look.busiest}


async def test_a_look_sees_what_the_getters_tell(orders: Queue, watcher: QueueWatcher) -> None:
    await fill(orders, {"a": 3, "b": 5})
    await orders.add(0, delay=60)
    await orders.add(0, group_id="c", job_id="bad")
    await orders.fail("bad", "no such customer")
    look = await watcher.look()
    assert look.counts == await orders.get_job_counts()
    assert look.totals.added == 10
    assert (look.totals.failed, look.last_hour.failed, look.last_hour.completed) == (1, 1, 0)
    assert sizes(look) == {"b": 5, "a": 3}
    assert not look.paused
    assert look.oldest_wait is not None
    (failure,) = look.failures
    assert (failure.id, failure.error, failure.final, failure.state) == ("bad", "no such customer", True, "failed")
    await orders.pause()
    assert (await watcher.look()).paused


async def test_a_look_sees_which_job_blocks_which_group(orders: Queue, watcher: QueueWatcher) -> None:
    await orders.add_many({"data": n, "group_id": "a", "job_id": f"a{n}", "on_failed": "hold"} for n in range(3))
    assert ((look := await watcher.look()).groups_blocked, look.blocked) == (0, ())
    await orders.fail("a0", "declined")
    look = await watcher.look()
    assert [(one.id, one.blocked_by, one.waiting) for one in look.blocked] == [("a", "a0", 2)]
    assert (look.groups_blocked, look.longest_held and look.longest_held.reason) == (1, "blocked")


async def test_a_look_sees_what_runs_and_who_works(orders: Queue, watcher: QueueWatcher) -> None:
    handler = Waiting()
    await fill(orders, {"a": 2, "b": 1})
    await orders.add(7)
    async with Worker(orders, handler, concurrency=4, name="shop-1") as at_work:
        await eventually(lambda: len(handler.running) == 3, "three jobs run")
        look = await watcher.look()
        assert sorted((run.group_id or "", run.attempt, run.worker) for run in look.runs) == [
            ("", 1, "shop-1"),
            ("a", 1, "shop-1"),
            ("b", 1, "shop-1"),
        ]
        assert all(0 <= run.running_for < 60 for run in look.runs)
        (worker,) = look.workers
        assert (worker.name, worker.concurrency) == ("shop-1", 4)
        (behind,) = look.longest_waiting
        assert (behind.id, behind.state, behind.waiting, behind.active) == ("a", "busy", 1, 1)
        assert {group.id: group.active for group in look.busiest} == {"a": 1, "b": 1, None: 1}
        await at_work.close(timeout=0)


async def test_a_look_shows_what_became_of_a_failed_job(orders: Queue, watcher: QueueWatcher) -> None:
    for name in ("again", "kept", "removed"):
        await orders.add(0, job_id=name, group_id=name)
        await orders.fail(name, "told to")
    await orders.retry("again")
    await orders.remove("removed")
    look = await watcher.look()
    assert {failure.id: failure.state for failure in look.failures} == {
        "again": "waiting",
        "kept": "failed",
        "removed": None,
    }
    await orders.fail("again", "told to, again")
    assert [one.error for one in (await watcher.look()).failures if one.id == "again"] == ["told to, again"]


async def test_the_groups_that_waited_longest_come_first(orders: Queue, watcher: QueueWatcher) -> None:
    for name in ("first", "second", "third"):
        await orders.add(0, group_id=name)
    await orders.pause_group("second")
    look = await watcher.look()
    assert [(one.id, one.state) for one in look.longest_waiting] == [
        ("first", "ready"),
        ("second", "paused"),
        ("third", "ready"),
    ]
    waited = [one.waited or 0 for one in look.longest_waiting]
    assert waited == sorted(waited, reverse=True)


async def test_a_text_that_is_cut_in_a_letter_is_read(orders: Queue, watcher: QueueWatcher) -> None:
    await orders.add(0, job_id="bad")
    await orders.fail("bad", "漢" * 5000)
    (failure,) = (await watcher.look()).failures
    assert set(failure.error) == {"漢"}


async def test_a_large_group_among_many_is_found_and_stays(orders: Queue, watcher: QueueWatcher) -> None:
    await fill(orders, {f"g{n}": 1 for n in range(3000)} | {"large": 40})
    for _ in range(100):
        found = await watcher.look()
        assert len(found.busiest) <= GROUPS
        if found.cursor == "0":
            break
    for _ in range(3):
        assert (await watcher.look()).busiest[0].id == "large"


def commands_run(client: redis.Redis) -> dict[str, int]:
    stats: Any = client.info("commandstats")
    ours = ("cmdstat_config", "cmdstat_info", "cmdstat_client", "cmdstat_hello")
    return {name: stat["calls"] for name, stat in stats.items() if not name.startswith(ours)}


@pytest.mark.parametrize("groups", [3, 5000])
async def test_a_look_costs_the_same_however_deep_the_queue(
    orders: Queue, watcher: QueueWatcher, client: redis.Redis, groups: int
) -> None:
    await orders.add_many([{"data": n, "group_id": f"g{n % groups}"} for n in range(10_000)])
    for n in range(FAILURES + 20):
        await orders.add(0, job_id=f"bad-{n}")
        await orders.fail(f"bad-{n}", "told to")
    await watcher.look()
    client.config_resetstat()
    await watcher.look()
    ran = commands_run(client)
    assert ran["cmdstat_fcall_ro"] == CALLS
    # The commands inside the scripts are bounded as well: they read one page of groups and some failures.
    assert sum(ran.values()) < 1500


async def test_what_a_worker_runs_is_counted_from_its_leases_however_old_its_last_word_is(
    orders: Queue, watcher: QueueWatcher, url: str
) -> None:
    info = {
        "name": "shop-1",
        "host": "h",
        "pid": 1,
        "concurrency": 2,
        "current_jobs": 0,
        "heartbeat": 10,
        "version": "1",
    }
    await orders._connection.call(commands.beat("w", json.dumps(info), 30_000, []))
    with SyncQueue("orders", url) as queue:
        blocked(queue, "customer:7", minutes=10)
    found = await watcher.look()
    assert [(worker.name, worker.busy) for worker in found.workers] == [("shop-1", 1)]
    assert len(found.runs) == 1
    assert found.longest_held is not None
    assert (found.longest_held.group_id, found.longest_held.reason) == ("customer:7", "running")
    assert found.oldest_wait is None


async def test_looking_changes_nothing(orders: Queue, watcher: QueueWatcher, client: redis.Redis) -> None:
    def changes() -> int:
        stats: Any = client.info("persistence")
        return int(stats["rdb_changes_since_last_save"])

    await fill(orders, {"a": 20, "b": 1})
    await orders.add(0, delay=0.001)
    await orders.add(0, job_id="bad")
    await orders.fail("bad", "told to")
    before = changes(), sorted(client.keys())
    for _ in range(3):
        await watcher.look()
    await watcher.job("bad")
    assert (changes(), sorted(client.keys())) == before


@one_kind
async def test_a_queue_that_was_deleted_is_not_made_by_looking(
    orders: Queue, watcher: QueueWatcher, client: redis.Redis
) -> None:
    await orders.add(0)
    await watcher.look()
    client.flushall()
    for asked in (watcher.look(), watcher.switch(paused=True), watcher.job("x")):
        with pytest.raises(QueueNotFound, match="'orders' does not exist"):
            await asked
    assert client.keys() == []
    await orders.add(0)
    assert (await watcher.look()).counts.waiting == 1


@one_kind
async def test_a_queue_of_another_release_is_refused(watcher: QueueWatcher, client: redis.Redis) -> None:
    client.hset("groupmq:{orders}:meta", "schema", "99")
    with pytest.raises(ConfigurationError, match="format 99"):
        await watcher.look()
    client.flushall()


async def test_what_a_key_asks_for_is_done(orders: Queue, watcher: QueueWatcher) -> None:
    await orders.add({"n": 1}, job_id="bad")
    await orders.fail("bad", "told to")
    await watcher.switch(paused=True)
    assert await orders.is_paused()
    await watcher.switch(paused=False)
    assert not await orders.is_paused()
    await watcher.retry("bad")
    job = await watcher.job("bad")
    assert job is not None
    assert (job.state, job.data) == ("waiting", {"n": 1})
    assert await watcher.job("nobody") is None
    with pytest.raises(WrongState):
        await watcher.retry("bad")
    with pytest.raises(JobNotFound):
        await watcher.retry("nobody")


async def test_a_lost_server_is_reported_at_once_and_found_when_it_comes_back() -> None:
    server = Server.start("valkey", aof=True)
    try:
        async with Queue("orders", server.url) as queue:
            await queue.add(0)
        watcher = QueueWatcher(Target(server.url, None, "groupmq", False), "orders")
        assert (await watcher.look()).counts.waiting == 1
        server.kill()
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(watcher.look(), 2)
        server.restart()
        assert (await watcher.look()).counts.waiting == 1
        await watcher.close()
    finally:
        server.stop()


async def test_a_server_that_hangs_is_out_of_reach_after_a_while(
    orders: Queue, watcher: QueueWatcher, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    await orders.add(0)
    await watcher.look()
    monkeypatch.setattr("groupmq.cli.monitor.fetch.PATIENCE", 0.05)
    server.pause()
    try:
        with pytest.raises(ConnectionLost, match="no answer"):
            await watcher.look()
    finally:
        server.resume()
    monkeypatch.undo()
    assert (await watcher.look()).counts.waiting == 1
