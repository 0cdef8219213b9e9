"""Fetching and reporting: the only part of a worker that talks to the server about jobs.

Two lanes, each with at most one `advance` call under way, so that the server works while Python runs handlers. A lane
reports every outcome of the jobs it has brought and asks for as many as there is room for, in one trip; where handlers
are short, for some of a group together (pace.py). When an answer falls short, nothing is ready: the worker then sleeps
until the marker appears, something becomes due, or a run ends.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from groupmq import commands
from groupmq.commands import Advanced, Policy, Stalled, Taken
from groupmq.connection import Connection, WakeConnection
from groupmq.errors import GroupMQError
from groupmq.faults import is_passing
from groupmq.tasks import end_tasks
from groupmq.worker.outcome import Report

LANES = 2
_LARGE, _APART, _LATER = 50, 0.0005, 0.001
"""Jobs of a large call, the least seconds between two of them, and when one that comes too soon is tried again.

The server runs all calls that it finds waiting before it sends the first answer: of two large ones that arrive together
both answers come when both are done, the worker has nothing to do until then, the server has nothing while the worker
runs all those jobs, and so it stays, because their reports arrive together as well.
"""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 20.0


class Host(Protocol):
    """What the fetcher needs of the worker around it."""

    def room(self) -> int: ...
    def plan(self, room: int, in_hand: int, expected: int, *, reports: bool) -> tuple[int, int]: ...
    def take_on(self, taken: list[Taken], rows: Sequence[int], now: int, lane: Lane) -> None: ...
    def accepted(self, reports: Sequence[Report], now: int) -> None: ...
    def refused(self, report: Report) -> None: ...
    def stalled(self, stalled: Stalled) -> None: ...
    def reached(self) -> None: ...
    def unreached(self, error: BaseException) -> None: ...
    def tick(self, wait_ms: int) -> None: ...
    def dry(self) -> None: ...
    def at_rest(self) -> None: ...


class Lane:
    """A sequence of numbered requests; the server remembers the last, so it can be sent again."""

    __slots__ = ("asked", "hints", "in_hand", "name", "reports", "request", "row", "sent", "task", "urgent")

    def __init__(self, name: str) -> None:
        self.name = name
        self.reports: list[Report] = []
        """To be sent."""
        self.urgent = False
        """There are some that cannot wait for the end of their row."""
        self.sent: list[Report] = []
        """Under way."""
        self.request = 0
        self.asked = 0
        self.row = 1
        self.in_hand = 0
        """Rows that it has brought and that have not ended."""
        self.hints = 0
        self.task: asyncio.Task[None] | None = None


class Fetcher:
    """Keeps a worker supplied, and its outcomes reported."""

    def __init__(
        self,
        host: Host,
        connection: Connection,
        wake: Callable[[], WakeConnection],
        *,
        worker: str,
        concurrency: int,
        lease_ms: int,
        policy: Policy,
        longest_sleep: float,
        atomic: bool,
        batch: int | None = None,
    ) -> None:
        """`batch`: jobs per turn, of an exclusive queue."""
        self._host = host
        self._connection = connection
        self._make_wake = wake
        self._worker = worker
        self._lease_ms = lease_ms
        self._policy = policy
        # Not longer than a lease: then whatever is granted while we sleep is seen before it can expire.
        self._longest_sleep = min(longest_sleep, lease_ms / 1000)
        self._atomic = atomic
        self._batch = batch
        self._epoch = 0
        # One lane for an exclusive queue: the order of answers tells whether our turn has ended.
        self.lanes = [Lane(f"{worker}:{n}") for n in range(LANES if concurrency > 1 and batch is None else 1)]
        self._share = -(-concurrency // len(self.lanes))
        self._hints = 0
        self._taking = True
        self._closed = False
        self._ask = True
        self._flowing = False
        self._scheduled = False
        self._unsent = 0
        self._large_sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._hungry = asyncio.Event()
        self._waker: asyncio.Task[None] | None = None
        self.advances = 0

    # Driving

    def start(self) -> None:
        self._waker = asyncio.get_running_loop().create_task(self._watch_marker())
        self.poke()

    def report(self, report: Report, lane: Lane) -> None:
        """Send an outcome with the next trip of the lane."""
        lane.reports.append(report)
        lane.urgent = True
        self._schedule()

    def report_later(self, report: Report, lane: Lane) -> None:
        """The same for one that can wait until there is another."""
        lane.reports.append(report)

    def held(self) -> list[tuple[str, int]]:
        """Leases of ended runs whose outcome has not arrived yet, (id, token): the loop may hang, or the server."""
        # In this order: meanwhile the loop may move some from the first to the second.
        reports = [report for lane in self.lanes for report in (*lane.reports, *lane.sent)]
        return [(report.job.id, report.job.fence) for report in reports if report.event != "begun"]

    def poke(self) -> None:
        """There may be work: ask. An answer to a question that was asked before does not count."""
        self._ask = True
        self._hints += 1
        self._schedule()

    def stop_taking(self) -> None:
        """From this moment on nothing new is taken; outcomes still go out."""
        self._taking = False
        self._hungry.clear()
        self._schedule()

    async def flushed(self) -> None:
        """Wait until every outcome is reported and no call is under way."""
        while self._has_reports or self.busy:
            self._idle.clear()
            self._schedule()
            await self._idle.wait()

    async def stop_watching(self) -> None:
        """Leave the marker to others. A hint that was on its way to us is lost: whoever leaves must wake somebody."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await end_tasks([self._waker])

    async def close(self) -> None:
        await self.stop_watching()
        await end_tasks([lane.task for lane in self.lanes])

    @property
    def busy(self) -> bool:
        return any(lane.task is not None for lane in self.lanes)

    @property
    def idle(self) -> bool:
        """Nothing to report, nothing under way, and the last answer said nothing is ready."""
        return not self._has_reports and not self.busy and not self._ask

    @property
    def _has_reports(self) -> bool:
        return any(lane.reports for lane in self.lanes)

    def _schedule(self) -> None:
        # Once per tick, after every handler that ends in it: their outcomes leave together.
        if not self._scheduled and not self._closed:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._scheduled = False
        for lane in self.lanes:
            if lane.task is not None:
                continue
            take, row = self._wanted(lane)
            if not take and not lane.urgent:
                continue
            large = max(len(lane.reports), take * row) >= _LARGE
            if large and self._too_soon():
                asyncio.get_running_loop().call_later(_LATER, self._schedule)
                continue
            reports = lane.sent = lane.reports[: commands.CHUNK]
            lane.reports = lane.reports[commands.CHUNK :]
            lane.urgent = bool(lane.reports)
            if reports and take and not self._atomic:
                take, self._ask = 0, True
            lane.asked, lane.row, lane.hints = take, row, self._hints
            lane.request += 1
            self._unsent += 1
            self._large_sent = math.inf if large else self._large_sent  # until it is
            lane.task = asyncio.get_running_loop().create_task(self._advance(lane, large))
            if take and not self._flowing:
                # One question is enough to learn whether there is anything.
                self._ask = False
        if not self.busy and not self._has_reports:
            self._idle.set()

    def _too_soon(self) -> bool:
        """A large call must keep apart from another. (The loop's own time may be as coarse as a millisecond.)"""
        return self.busy and time.monotonic() - self._large_sent < _APART

    def _wanted(self, mine: Lane) -> tuple[int, int]:
        """How many jobs to ask for now, and how many may come together for each. The one place that decides it."""
        asked = sum(lane.asked for lane in self.lanes)
        room = self._host.room() - asked
        if not self._taking or room <= 0 or not (self._ask or mine.reports):
            return 0, 1
        room = min(room, self._share if self._flowing else room, commands.CHUNK)
        if self._batch is not None:
            return room, 1
        expected = sum(lane.asked * (lane.row - 1) for lane in self.lanes)
        return self._host.plan(room, mine.in_hand, expected, reports=mine.urgent)

    def _has_use_for_hints(self) -> bool:
        return self._taking and self._host.room() > sum(lane.asked for lane in self.lanes)

    # Calling

    async def _advance(self, lane: Lane, large: bool) -> None:
        self._unsent -= 1
        reports = lane.sent
        call = commands.advance(
            worker=self._worker,
            lane=lane.name,
            request=lane.request,
            outcomes=[report.outcome for report in reports],
            take=lane.asked,
            lease_ms=self._lease_ms,
            policy=self._policy,
            row=lane.row,
            batch=self._batch,
            epoch=None if self._batch is None else self._epoch,
        )
        if large:
            self._large_sent = time.monotonic()
        try:
            answer = await self._persist(call)
            # What another lane has to send goes first: the server works on it while we look at what we got.
            self._pump()
            if self._unsent:
                await asyncio.sleep(0)
        finally:
            asked, lane.asked, lane.task, lane.sent = lane.asked, 0, None, []
        self.advances += 1
        reported = bool(reports)
        self._host.reached()
        if 0 in answer.accepted:
            for report, status in zip(reports, answer.accepted, strict=True):
                if status == 0:
                    self._host.refused(report)
            reports = [report for report, status in zip(reports, answer.accepted, strict=True) if status == 1]
        self._host.accepted(reports, answer.now)
        for stalled in answer.stalled:
            self._host.stalled(stalled)
        if answer.jobs:
            self._host.take_on(answer.jobs, answer.rows, answer.now, lane)
        # A turn that has ended: queue up again, whatever hint came meanwhile; others wait.
        handed_over = answer.epoch == 0 and self._epoch > 0
        self._epoch = answer.epoch
        self._learn(asked, answer, hinted=self._hints != lane.hints and not handed_over, reported=reported)
        if answer.tick_ms >= 0:
            self._host.tick(answer.tick_ms)
        self._pump()
        if self.idle:
            # Said once the last call is back: one that only reported teaches nothing about what is ready.
            self._host.at_rest()

    def _learn(self, asked: int, answer: Advanced, *, hinted: bool, reported: bool) -> None:
        """What an answer says about whether to ask again, and when."""
        if not asked:
            if reported and self._taking:
                # That may have made work ready after another lane had asked for it, in vain.
                self._ask = True
                self._hints += 1
            return
        self._flowing = len(answer.rows or answer.jobs) == asked
        if self._flowing or answer.wait_ms == 0 or hinted:
            self._ask = True
            return
        self._ask = False
        self._sleep(answer.wait_ms / 1000 if answer.wait_ms > 0 else self._longest_sleep)
        if self._taking and self._host.room() > 0:
            self._hungry.set()
        self._host.dry()

    def _sleep(self, duration: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        duration = min(duration, self._longest_sleep)
        self._timer = asyncio.get_running_loop().call_later(duration, self.poke)

    async def _persist(self, call: commands.Call[Advanced]) -> Advanced:
        """Make the call whatever it takes. The same request sent again is answered the same."""
        pause = 0.0
        while True:
            try:
                return await self._connection.call(call, patience=0.0)
            except Exception as error:
                # Of whatever kind: a worker that stopped asking would be dead without a word.
                self._host.unreached(error)
                if not is_passing(error):
                    pause = max(pause, _FIRST_PAUSE)
            await asyncio.sleep(pause * (0.75 + 0.5 * random.random()))  # noqa: S311
            pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)

    # Waiting

    async def _watch_marker(self) -> None:
        """Block on the marker while there is room and nothing is ready. Never returns but by cancellation."""
        wake = self._make_wake()
        pause = 0.0
        try:
            while not self._closed:
                await self._hungry.wait()
                try:
                    popped = await wake.wait()
                    if popped and not self._has_use_for_hints():
                        # Busy or closing by now: the hint is somebody else's.
                        self._hungry.clear()
                        await wake.pass_on()
                        continue
                    pause = 0.0
                    self._host.reached()
                except GroupMQError as error:
                    self._host.unreached(error)
                    pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE) if pause else 0.1
                    await asyncio.sleep(pause * (0.75 + 0.5 * random.random()))  # noqa: S311
                # Popped, or the block ran out: a marker may have been lost with whoever popped it, so look either way.
                self._hungry.clear()
                self.poke()
        finally:
            await wake.close()
