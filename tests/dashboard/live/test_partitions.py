"""The dashboard shows a queue with partitions as one queue."""

from __future__ import annotations

import pytest

from groupmq import Queue
from groupmq.dashboard.live.reader import lies_ahead
from groupmq.dashboard.pages import PAGES
from tests.conftest import MakeQueue
from tests.dashboard.visitor import Site


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("orders", partitions=4)


async def test_every_page_of_it(queue: Queue, site: Site) -> None:
    await queue.add_many({"data": {"n": i}, "group_id": f"g{i}"} for i in range(12))
    (row,) = (await site.json("queues"))["queues"]
    assert (row["name"], row["counts"]["waiting"]) == ("orders", 12)
    for name in PAGES:
        if name not in ("queues", "group", "job", "task", "suggest"):
            assert await site.page(name, queue="orders")


async def test_its_settings_and_its_blocked_groups(queue: Queue, site: Site) -> None:
    for i in range(6):
        await queue.add(1, group_id=f"g{i}", job_id=f"j{i}", on_failed="hold")
        await queue.fail(f"j{i}")
    page = await site.json("settings", queue="orders")
    assert {one["name"]: one["value"] for one in page["settings"]}["partitions"] == "4"
    (finding,) = [one for one in page["findings"] if one["name"] == "blocked groups"]
    assert finding["status"] == "warn"
    row = (await site.json("queue", queue="orders"))["queue"]
    assert row["blocked"] == 6
    await site.act("skip", job="j3")
    assert len(await queue.get_blocked_groups()) == 5


def test_a_position_of_another_number_of_partitions_is_none() -> None:
    assert lies_ahead("5-0/1/0", "5-0/1/0~5-0/1/0")
    assert lies_ahead("5-0/1/0~6-0/1/0", "5-0/1/0~5-0/1/0")
    assert not lies_ahead("5-0/1/0~4-0/1/0", "5-0/1/0~5-0/1/0")
