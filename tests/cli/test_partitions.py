"""The commands on a queue with partitions, and the one that changes their number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groupmq.sync import Queue
from tests.cli.conftest import finish
from tests.cli.operating import Command

GROUPS = [f"user:{i}" for i in range(8)]


@pytest.fixture
def orders(url: str) -> Iterator[Queue]:
    with Queue("orders", url, partitions=4) as queue:
        yield queue


def test_commands_see_one_queue(orders: Queue, command: Command, url: str) -> None:
    orders.add_many({"data": {"n": i}, "group_id": g} for i in range(3) for g in GROUPS)
    assert [row["queue"] for row in command("queue", "list", "--json").json] == ["orders"]
    assert command("queue", "stats", "--json").json["counts"]["waiting"] == 24
    assert command("job", "list", "--state", "waiting", "--json", "--limit", "100").code == 0
    assert command("queue", "groups", "--json").code == 0
    added = command("job", "add", "--payload", "{}", "--group", "user:1", "--id", "mine", "--json")
    assert added.code == 0
    assert command("job", "status", "mine", "--json").json["group_id"] == "user:1"
    assert command("queue", "pause").code == 0
    assert orders.is_paused()
    assert command("queue", "resume").code == 0
    finish(url)
    for words in (["queue", "stats"], ["queue", "failures"], ["repeat", "list"], ["queue", "repair"], ["check"]):
        answer = command(*words)
        assert answer.code == 0, answer
    assert command("queue", "purge", "--yes", "--json").code == 0


def test_settings_are_shown_and_changed_but_for_the_number_of_partitions(orders: Queue, command: Command) -> None:
    orders.add_many({"data": 1, "group_id": g} for g in GROUPS)
    assert command("queue", "settings", "orders", "--json").json["settings"]["partitions"] == 4
    done = command("queue", "settings", "orders", "--set", "max_attempts=7", "--set", "on_failed=hold", "--json")
    assert done.json["changed"] == ["max_attempts", "on_failed"]
    assert orders.add(1, group_id="user:1").max_attempts == 7
    assert orders.get_settings().on_failed == "hold"
    refused = command("queue", "settings", "orders", "--set", "partitions=8")
    assert refused.code == 2
    assert "groupmq queue repartition" in refused.err
    refused = command("queue", "settings", "orders", "--set", "exclusive=yes")
    assert refused.code != 0
    assert "cannot be combined with partitions=4" in refused.err


def test_blocked_groups_of_all_partitions_are_shown(orders: Queue, command: Command) -> None:
    for g in GROUPS:
        for i in range(2):
            orders.add(i, group_id=g, job_id=f"{g}-{i}", on_failed="hold")
        orders.fail(f"{g}-0", "declined")
    listed = command("queue", "groups", "orders", "--blocked", "--json").json
    assert sorted(one["id"] for one in listed) == GROUPS
    assert "8 blocked" in command("queue", "stats", "orders").out
    (found,) = [one for one in command("check", "orders", "--json").json["checks"] if one["name"] == "blocked groups"]
    assert found["status"] == "warn"
    assert command("job", "skip", "user:3-0").code == 0
    assert command("queue", "stats", "orders", "--json").json["groups"]["blocked"] == 7


def test_repartition_is_refused_done_and_reported(orders: Queue, command: Command) -> None:
    orders.add_many({"data": i, "group_id": g} for i in range(3) for g in GROUPS)
    refused = command("queue", "repartition", "orders", "--to", "8")
    assert refused.code == 1
    assert "is not paused" in refused.err
    assert command("queue", "pause").code == 0
    done = command("queue", "repartition", "orders", "--to", "8", "--json")
    assert done.json == {"queue": "orders", "partitions": 8, "jobs": 24}
    assert command("queue", "repartition", "--to", "1").out == "24 jobs in 1 partition; restart the queue's processes\n"
    assert command("queue", "repartition", "nobody", "--to", "2").code == 1
    assert command("queue", "repartition", "orders", "--to", "0").code == 2
    assert command("queue", "resume").code == 0
    assert command("queue", "stats", "--json").json["counts"]["waiting"] == 24
