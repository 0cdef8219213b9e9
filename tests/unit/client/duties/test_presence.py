"""Which workers are forgotten, by one run of the clean-up on records that a test writes by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from groupmq.client.answers.measures import REPLIES_KEPT
from groupmq.client.duties.presence import PresenceCleanup, WorkerRecords
from groupmq.core.views import DutyReport
from groupmq.protocol import commands
from groupmq.protocol.commands import Call, Stats

NOW = 1_700_000_000_000
HEARTBEAT = 10.0
LONG_AGO = 3 * HEARTBEAT + REPLIES_KEPT + 1
WORDS = ("name", "host", "pid", "concurrency", "current_jobs", "version")


class Part(WorkerRecords):
    """A partition: seconds since the last heartbeat of each worker, and the requesters whose reply it keeps."""

    def __init__(self, silent: dict[str, float], requesters: Sequence[str] = ()) -> None:
        self.silent = silent
        self.kept = list(requesters)
        self.forgotten: list[str] = []
        self.asked: list[str] = []

    async def requesters(self) -> list[str]:
        self.asked.append("requesters")
        return list(self.kept)

    async def presences(self) -> Stats:
        self.asked.append("presences")
        return stats(self.silent)

    async def forget(self, workers: Sequence[str]) -> None:
        self.forgotten += workers


def stats(silent: dict[str, float]) -> Stats:
    info = json.dumps(dict.fromkeys(WORDS, 0) | {"heartbeat": HEARTBEAT})
    workers = {worker: f"{NOW - round(age * 1000)} {info}".encode() for worker, age in silent.items()}
    unused: Any = ()
    return Stats(NOW, unused, workers, [], [], [], 0, 0, 0)


def cleanup(*parts: Part, clock: Callable[[], float] = time.monotonic) -> PresenceCleanup:
    async def records() -> Sequence[WorkerRecords]:
        return parts

    return PresenceCleanup(records, clock)


class Clock:
    """The time that the clean-up sees."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_worker_that_was_silent_for_long_is_forgotten() -> None:
    part = Part({"dead": LONG_AGO, "alive": 1.0}, ["dead:0", "alive:0"])
    assert await cleanup(part).run_once() == DutyReport(1, gone_workers=("dead",))
    assert part.forgotten == ["dead"]


async def test_nobody_is_forgotten_where_all_are_alive() -> None:
    part = Part({"alive": LONG_AGO - 2}, ["alive:0", "alive:1"])
    assert await cleanup(part).run_once() == DutyReport()
    assert part.forgotten == []


async def test_a_dead_worker_is_forgotten_in_each_partition_that_knows_it() -> None:
    first, second, third = Part({"w": LONG_AGO}, ["w:0"]), Part({}, ["w:0", "w:1"]), Part({})
    assert await cleanup(first, second, third).run_once() == DutyReport(1, gone_workers=("w",))
    assert (first.forgotten, second.forgotten, third.forgotten) == (["w"], ["w"], [])


async def test_a_worker_that_one_partition_has_heard_is_alive_in_all_of_them() -> None:
    """It has a heartbeat of its own in each partition whose jobs it has run."""
    first, second = Part({"w": LONG_AGO}, ["w:0"]), Part({"w": 1.0}, ["w:0"])
    assert await cleanup(first, second).run_once() == DutyReport()
    assert first.forgotten + second.forgotten == []


async def test_replies_are_listed_before_presences_so_that_a_worker_that_registers_meanwhile_is_found() -> None:
    part = Part({})
    await cleanup(part).run_once()
    assert part.asked == ["requesters", "presences"]


async def test_a_worker_without_a_presence_keeps_its_replies_for_as_long_as_a_silent_one() -> None:
    """It may not have sent its first heartbeat. Without its last reply, a call that it sends again would run twice."""
    part, clock = Part({}, ["new:0"]), Clock()
    duty = cleanup(part, clock=clock)
    assert await duty.run_once() == DutyReport()
    clock.now += REPLIES_KEPT - 1
    assert await duty.run_once() == DutyReport()
    clock.now += 2
    assert await duty.run_once() == DutyReport(1, gone_workers=("new",))
    assert part.forgotten == ["new"]


async def test_the_absence_of_a_worker_counts_anew_after_it_has_registered() -> None:
    part, clock = Part({}, ["w:0"]), Clock()
    duty = cleanup(part, clock=clock)
    await duty.run_once()
    part.silent = {"w": 1.0}
    clock.now += REPLIES_KEPT + 1
    assert await duty.run_once() == DutyReport()
    part.silent = {}
    assert await duty.run_once() == DutyReport()


async def test_every_requester_that_a_worker_may_have_is_forgotten_with_it() -> None:
    calls: list[Call[Any]] = []

    async def call(made: Call[Any], /) -> Any:
        calls.append(made)

    unused: Any = None
    await WorkerRecords(call, unused).forget(["a", "b"])
    [leave] = calls
    assert leave.script == "leave"
    for worker in ("a", "b"):
        for requester in commands.requester_names(worker):
            assert requester.encode() in leave.args
            assert commands.worker_of(requester) == worker
