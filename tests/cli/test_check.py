"""`groupmq check`: its findings, and the cost of making them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
import redis

from groupmq import Finding
from groupmq.core import findings
from groupmq.core.findings import FAIL, OK, WARN
from groupmq.core.views import HeldGroup, JobCounts
from groupmq.sync import Queue
from tests.cli.blocking import blocked
from tests.cli.operating import Command
from tests.support.fleet import Fleet
from tests.support.waiting import wait_until

NOTHING = JobCounts(0, 0, 0, 0, 0, 0, 0)
WAITING = JobCounts(0, 3, 0, 0, 0, 3, 1)
DELAYED = JobCounts(0, 0, 2, 0, 0, 2, 1)
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
HELD = HeldGroup("g", "running", "j", 2, NOON, NOON, 3, 301.0)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (findings.version({"redis_version": "7.0.0"}), OK),
        (findings.version({"redis_version": "6.2.14"}), FAIL),
        (findings.version({"redis_version": "7.2.4", "valkey_version": "8.0.1"}), OK),
        (findings.version({"redis_version": "10.1.0"}), OK),
        (findings.version({}), FAIL),
        (findings.role({"role": "master"}), OK),
        (findings.role({"role": "slave"}), FAIL),
        (findings.persistence({"aof_enabled": "1"}, ""), OK),
        (findings.persistence({"aof_enabled": "1", "aof_last_write_status": "err"}, ""), FAIL),
        (findings.persistence({"rdb_last_bgsave_status": "err"}, "60 1"), FAIL),
        (findings.persistence({}, "3600 1"), WARN),
        (findings.persistence({}, ""), WARN),
        (findings.persistence({}, None), WARN),
        (findings.eviction({"maxmemory_policy": "noeviction"}), OK),
        (findings.eviction({"maxmemory_policy": "allkeys-lru"}), WARN),
        (findings.memory({"used_memory": "500", "maxmemory": "1000"}), OK),
        (findings.memory({"used_memory": "850", "maxmemory": "1000"}), WARN),
        (findings.memory({"used_memory": "990", "maxmemory": "1000"}), FAIL),
        (findings.memory({"used_memory": "990", "maxmemory": "0", "total_system_memory": "1000000"}), OK),
        (findings.memory({"used_memory": "990"}), OK),
        (findings.clock(0.2), OK),
        (findings.clock(-90), WARN),
        (findings.workers(2, WAITING, paused=False), OK),
        (findings.workers(0, WAITING, paused=False), FAIL),
        (findings.workers(0, WAITING, paused=True), WARN),
        (findings.workers(0, DELAYED, paused=False), WARN),
        (findings.workers(0, NOTHING, paused=False), WARN),
        (findings.paused_queue(paused=True), WARN),
        (findings.oldest(None, 300), OK),
        (findings.oldest(10, 300), OK),
        (findings.oldest(301, 300), FAIL),
        (findings.held("orders", None, 300), OK),
        (findings.held("orders", replace(HELD, wait=299), 300), OK),
        (findings.held("orders", HELD, 300), FAIL),
        (findings.held("orders", replace(HELD, reason="window", job_id=None, attempt=None), 300), FAIL),
        (findings.paused_group("orders", replace(HELD, reason="paused", job_id=None, attempt=None), 300), WARN),
        (findings.paused_group("orders", replace(HELD, reason="paused", job_id=None, attempt=None, wait=9), 300), OK),
        (findings.held("orders", replace(HELD, reason="blocked"), 300), FAIL),
    ],
)
def test_judgements(found: Finding, status: str) -> None:
    assert found.status == status
    assert found.detail
    assert status == OK or found.hint or found.name == "workers"


def test_a_queue_that_is_worked_on_passes(command: Command, orders: Queue, url: str) -> None:
    with Fleet(url, "orders") as fleet:
        fleet.start()
        wait_until(lambda: orders.get_workers(), "the worker is registered")
        answer = command.program("check", "--json")
        assert answer.code == 0, answer.out
        assert answer.json["ok"] is True
        statuses = {one["name"]: one["status"] for one in answer.json["checks"]}
        assert statuses["workers"] == statuses["scripts"] == statuses["version"] == OK
        assert statuses["persistence"] == WARN
        assert command("check", "--strict").code == 1


def test_a_job_that_waits_too_long_fails_the_check(command: Command, orders: Queue) -> None:
    orders.add(1, group_id="g")
    orders.pause()
    assert command("check").code == 0
    wait_until(lambda: (orders.get_metrics().oldest_wait or 0) > 0.02, "the job has waited")
    answer = command("check", "--max-wait", "10ms")
    assert answer.code == 1
    assert "more than 10 ms" in answer.out


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("running", "job 'j' runs, attempt 2"),
        ("backoff", "job 'j' failed, attempt 2, and is tried again at 2024-02-29 12:00:00 UTC"),
        ("paused", "paused by an operator"),
        ("window", "an ordering window has not passed until 2024-02-29 12:00:00 UTC"),
        ("rate", "the group's rate limit until 2024-02-29 12:00:00 UTC"),
        ("rate_limited", "a handler raised RateLimited; the group rests until 2024-02-29 12:00:00 UTC"),
    ],
)
def test_what_holds_a_group_is_said_with_its_end(reason: str, words: str) -> None:
    assert replace(HELD, reason=reason).explanation == words


@pytest.mark.parametrize("how", ["a running job", "a back-off"])
def test_a_customer_who_is_blocked_for_ten_minutes_fails_the_check(command: Command, orders: Queue, how: str) -> None:
    blocked(orders, "customer:7", minutes=10, backs_off=how == "a back-off")
    answer = command("check", "--json")
    assert answer.code == 1
    found = {one["name"]: one for one in answer.json["checks"]}
    assert found["oldest waiting"]["status"] == OK, "no job that could start is waiting"
    assert found["longest held"]["status"] == FAIL
    assert "group 'customer:7', " in found["longest held"]["detail"]
    assert "10 min" in found["longest held"]["detail"]
    assert ("job 'stuck' failed, attempt 1" if how == "a back-off" else "job 'stuck' runs, attempt 1") in answer.out
    assert command("check", "--max-wait", "20m").code == 1, "no worker is registered"
    stats = command("queue", "stats", "orders", "--json").json
    assert stats["longest_held"]["group_id"] == "customer:7"
    assert "longest held" in command("queue", "stats", "orders").out


def test_a_group_that_was_paused_before_does_not_hide_a_customer_who_is_blocked(
    command: Command, orders: Queue
) -> None:
    blocked(orders, "vacation", minutes=60, prefix="old-")
    blocked(orders, "customer:7", minutes=10)
    orders.pause_group("vacation")
    found = {one["name"]: one for one in command("check", "--json").json["checks"]}
    assert found["longest held"]["status"] == FAIL
    assert "group 'customer:7', " in found["longest held"]["detail"]
    assert found["longest paused"]["status"] == WARN
    assert found["longest paused"]["hint"] == "groupmq queue resume --queue orders --group vacation"
    stats = command("queue", "stats", "orders", "--json").json
    assert stats["longest_held"]["group_id"] == "vacation"
    assert stats["longest_held_unpaused"]["group_id"] == "customer:7"
    assert "'customer:7' for 10 min" in command("queue", "stats", "orders").out


def test_a_pause_alone_is_no_failure_of_the_check(command: Command, orders: Queue) -> None:
    blocked(orders, "vacation", minutes=60)
    orders.pause_group("vacation")
    found = {one["name"]: one["status"] for one in command("check", "--json").json["checks"]}
    assert (found["longest held"], found["longest paused"]) == (OK, WARN)


def test_the_server_alone_is_checked_without_a_queue(url: str) -> None:
    names = [one["name"] for one in Command(url, queue="")("check", "--json").json["checks"]]
    assert names == ["server", "version", "role", "persistence", "eviction", "memory", "scripts", "functions", "clock"]


def test_an_eviction_policy_is_warned_of(command: Command, orders: Queue, client: redis.Redis) -> None:
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert "maxmemory-policy noeviction" in Command(command.env["GROUPMQ_URL"], "")("check").out
    finally:
        client.config_set("maxmemory-policy", "noeviction")
