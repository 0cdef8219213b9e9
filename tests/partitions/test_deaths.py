"""Worker processes that are killed: no job of any partition is lost, reordered or late."""

from __future__ import annotations

from tests.support.deaths import kill_workers_in_the_middle


async def test_killed_workers_lose_nothing_and_keep_the_order(url: str) -> None:
    await kill_workers_in_the_middle(url, partitions=4)
