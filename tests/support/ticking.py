"""Checks of repeating jobs: which ticks ran, and whether they are on the grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import redis

from groupmq import Job
from tests.support.waiting import eventually


def server_ms(client: redis.Redis) -> int:
    """The server's clock, which is the only one that decides anything."""
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


async def pass_by(client: redis.Redis, instant: int) -> None:
    """Wait until the server's clock has passed an instant, in milliseconds."""
    await eventually(lambda: server_ms(client) > instant, f"the server's clock is past {instant}", timeout=20)


class Ticker:
    """A handler that records the occurrences it runs."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    async def __call__(self, job: Job) -> None:
        self.jobs.append(job)

    @property
    def ticks(self) -> list[int]:
        return [job.order_ms for job in self.jobs]

    @property
    def data(self) -> list[Any]:
        return [job.data for job in self.jobs]

    async def has_run(self, count: int, timeout: float = 15) -> None:
        await eventually(lambda: len(self.jobs) >= count, f"{count} occurrences ran", timeout)

    def check_never_early(self) -> None:
        early = [job for job in self.jobs if job.started_at is None or job.started_at.timestamp() * 1000 < job.order_ms]
        assert not early, f"started before their tick: {early}"


def check_grid(ticks: Sequence[int], first: int, period: int) -> None:
    """Check that each tick ran once, in order, and is on the grid."""
    assert all(before < after for before, after in pairwise(ticks)), f"doubled or out of order: {ticks}"
    assert all((tick - first) % period == 0 for tick in ticks), f"off the grid of {first}: {ticks}"


def check_unbroken(ticks: Sequence[int], first: int, period: int) -> None:
    """Check that every tick from the first on ran, once and in order."""
    assert list(ticks) == [first + i * period for i in range(len(ticks))], ticks


def holes(ticks: Iterable[int], period: int) -> list[tuple[int, int]]:
    """The gaps in which ticks are missing: the last tick before and the first one after each."""
    return [(before, after) for before, after in pairwise(ticks) if after - before != period]
