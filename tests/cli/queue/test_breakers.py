"""Groups whose breaker is open are shown on the command line."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from groupmq import Breaker
from groupmq import Queue as AsyncQueue
from groupmq.metrics import QueueCollector
from groupmq.sync import Queue
from tests.cli.operating import Command, golden
from tests.support.breaking import open_breakers
from tests.support.workers import one_kind

pytestmark = one_kind
GAUGES = "groupmq_breakers_open", "groupmq_longest_breaker_open_seconds"


def gauges(queue: Queue) -> list[float | None]:
    registry = CollectorRegistry()
    registry.register(QueueCollector(queue))
    return [registry.get_sample_value(name, {"queue": "orders"}) for name in GAUGES]


@pytest.fixture
def broken(url: str) -> Queue:
    """A queue with two groups whose breaker is open."""

    async def make() -> None:
        async with AsyncQueue("orders", url, breaker=Breaker(failures=1, cooldown=3600)) as queue:
            await open_breakers(queue, "shop:2", "shop:1")

    asyncio.run(make())
    return Queue("orders", url)


def test_open_breakers_are_listed_the_longest_open_first(command: Command, broken: Queue) -> None:
    golden("queue-groups-breakers.txt", command("queue", "groups", "orders", "--breakers").out)
    found = command("queue", "groups", "orders", "--breakers", "--json").json
    assert [(one["id"], one["failures"], one["waiting"]) for one in found] == [("shop:2", 1, 1), ("shop:1", 1, 1)]
    assert "1 of 2 groups" in command("queue", "groups", "orders", "--breakers", "--limit", "1").out
    for other in (("--group", "shop:1"), ("--blocked",)):
        refused = command("queue", "groups", "orders", "--breakers", *other)
        assert (refused.code, "not both" in refused.err) == (2, True)
    broken.reconfigure(breaker=None)
    assert command("queue", "groups", "orders", "--breakers").out == "no breaker is open\n"
    broken.close()


def test_stats_check_monitor_and_metrics_count_them(command: Command, broken: Queue) -> None:
    assert "2 open, the first for " in command("queue", "stats", "orders").out
    told = command("queue", "stats", "orders", "--json").json
    assert (told["breakers_open"], told["longest_breaker_open"] >= 0) == (2, True)
    assert "breakers_open" not in told["metrics"]
    (found,) = [one for one in command("check", "orders", "--json").json["checks"] if one["name"] == "open breakers"]
    assert (found["status"], "'shop:2'" in found["detail"]) == ("warn", True)
    seen = command("monitor", "-q", "orders", "--once", "--interval", "0.1", "--json").json
    assert (seen["breakers_open"], [one["id"] for one in seen["groups"]["breakers"]]) == (2, ["shop:2", "shop:1"])
    count, longest = gauges(broken)
    assert (count, longest is not None and longest > 0) == (2, True)
    broken.reconfigure(breaker=None)
    assert gauges(broken) == [0, 0]
    broken.close()
