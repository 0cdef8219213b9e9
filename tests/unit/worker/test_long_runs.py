"""Runs that take long are reported as begun, once; short ones are not."""

from __future__ import annotations

import asyncio

import pytest

from groupmq.worker import long_runs
from groupmq.worker.long_runs import LongRuns
from groupmq.worker.stopping import StoppableRun


class Harness:
    def __init__(self) -> None:
        self.runs: list[StoppableRun] = []
        self.reported: list[StoppableRun] = []
        self.heard = asyncio.Event()
        self.long_runs = LongRuns(lambda: tuple(self.runs), self._report)

    def _report(self, run: StoppableRun) -> None:
        self.reported.append(run)
        self.heard.set()

    def start(self) -> StoppableRun:
        run = StoppableRun()
        run.started, run.begun = asyncio.get_running_loop().time(), True
        self.runs.append(run)
        if not self.long_runs.are_watched:
            self.long_runs.watch()
        return run

    async def hears(self) -> None:
        async with asyncio.timeout(10):
            await self.heard.wait()
        self.heard.clear()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_runs, "LONG", 0.02)


async def test_each_is_reported_once_when_it_has_lasted_for_long() -> None:
    harness = Harness()
    first = harness.start()
    await harness.hears()
    assert harness.reported == [first]
    second = harness.start()
    await harness.hears()
    assert harness.reported == [first, second]


async def test_one_that_has_ended_or_was_reported_otherwise_is_not_reported() -> None:
    harness = Harness()
    ended, confirmed, unbegun = harness.start(), harness.start(), harness.start()
    harness.runs.remove(ended)
    confirmed.confirmed, unbegun.begun = True, False
    last = harness.start()
    await harness.hears()
    assert harness.reported == [last]


async def test_one_that_began_later_is_looked_at_again() -> None:
    harness = Harness()
    harness.start()
    later = harness.start()
    later.started += 0.05
    await harness.hears()
    assert later not in harness.reported
    await harness.hears()
    assert harness.reported[1:] == [later]


async def test_nothing_is_reported_after_the_end() -> None:
    harness = Harness()
    harness.start()
    harness.long_runs.close()
    await asyncio.sleep(0.05)
    assert harness.reported == []
