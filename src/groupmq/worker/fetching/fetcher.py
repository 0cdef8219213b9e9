"""Fetching and reporting: the only part of a worker that calls the server about jobs.

A worker has two requesters, each with at most one `advance` call under way, so that the server works while Python runs
handlers. A call reports the outcomes of the jobs that its requester has taken, and takes as many as there is room for
(demand.py decides that). Jobs go to the dispatcher; outcomes come back to the requester that took the job.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from groupmq.client.connection.blocking_reads import WakeConnection
from groupmq.client.connection.connections import Connection
from groupmq.protocol import commands
from groupmq.protocol.commands import Advanced, Granted
from groupmq.runtime.tasks import end_tasks
from groupmq.worker.fetching.demand import LATER, TOO_SOON, Demand, EndedCall, NextCall
from groupmq.worker.fetching.fetch_listener import FetchListener
from groupmq.worker.fetching.grants import Grants
from groupmq.worker.fetching.marker_watch import MarkerWatch
from groupmq.worker.fetching.persistent_calls import PersistentCalls
from groupmq.worker.fetching.requester import Requester
from groupmq.worker.fetching.unseen import UnseenAnswers, Verdict
from groupmq.worker.live_settings import LiveSettings
from groupmq.worker.reachability import Reachability
from groupmq.worker.running.outcome import RunReport

LATE = 0.3
"""Seconds after which other workers that share slots with this one may use the slots that its call asked for."""


class FetchSetup(NamedTuple):
    """Facts about a worker that go into each of its calls.

    `turn_size`: jobs per turn, of an exclusive queue. `grants`: the key of jobs that an add grants to this worker while
    it is idle; None = it offers no slots.
    """

    worker: str
    live: LiveSettings
    turn_size: int | None = None
    grants: str | None = None


class Fetcher:
    """Keeps a worker supplied with jobs, and its outcomes reported."""

    def __init__(
        self,
        listener: FetchListener,
        demand: Demand,
        reachability: Reachability,
        connection: Connection,
        wake: Callable[[], WakeConnection] | None,
        setup: FetchSetup,
        *,
        grants: Grants,
        unseen: UnseenAnswers,
        on_tick: Callable[[int], None],
        waits_until_asked: int = 1,
    ) -> None:
        """`grants`, `unseen`: shared with the heartbeat thread. `on_tick` is called when a repeating job is due, with
        the time until then in milliseconds. `waits_until_asked`: as in MarkerWatch.
        """
        self._listener = listener
        self._demand = demand
        self._marker_watch = MarkerWatch(demand, waits_until_asked)
        self._reachability = reachability
        self._calls = PersistentCalls(connection, reachability)
        self._make_wake = wake
        self._setup = setup
        self._grants = grants
        self._unseen = unseen
        self._on_tick = on_tick
        self.requesters = [
            Requester(name, requester, self._schedule, self.poke)
            for name, requester in zip(
                commands.requester_names(setup.worker, len(demand.requesters)), demand.requesters, strict=True
            )
        ]
        self._tasks: dict[Requester, asyncio.Task[None]] = {}
        """The calls under way."""
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._watches = asyncio.Event()
        """Set while `MarkerWatch.is_on`."""
        self._waker: asyncio.Task[None] | None = None
        self.advances = 0

    # Driving

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._demand.start()
        self._calls.start()
        if self._make_wake is not None:
            self._waker = loop.create_task(self._watch_marker(self._make_wake()))
        self.poke()

    def begin_burst(self) -> None:
        """From now on, wait for no job that may become ready (`Demand.begin_burst`)."""
        self._demand.begin_burst()

    def poke(self) -> None:
        """Ask for work. Answers to calls made before this do not count as "nothing ready"."""
        self._demand.hint()
        self._schedule()

    def look_again(self) -> None:
        """A slot that is shared with other workers may be free."""
        self._schedule()

    def stop_taking(self) -> None:
        """Take nothing new from now on; outcomes are still reported."""
        self._demand.stop_taking()
        self._begin_or_end_watching()
        self._schedule()

    async def flushed(self) -> None:
        """Wait until every outcome is reported and no call is under way."""
        while self._has_reports or self.busy:
            self._idle.clear()
            self._schedule()
            await self._idle.wait()

    async def stop_watching(self) -> None:
        """Leave the marker to other workers. A hint on its way here is lost, so leaving must wake one of them."""
        self._demand.close()
        if self._timer is not None:
            self._timer.cancel()
        await end_tasks([self._waker])

    async def close(self) -> None:
        await self.stop_watching()
        await end_tasks([*self._tasks.values()])

    def goodbye(self) -> commands.Call[int]:
        """The call by which the worker deregisters."""
        names = [requester.name for requester in self.requesters]
        return commands.leave([self._setup.worker], names, self._grants.received)

    @property
    def busy(self) -> bool:
        return self._demand.busy

    @property
    def idle(self) -> bool:
        """Nothing to report, no call under way, and the last answer said that nothing is ready."""
        return not self._has_reports and self._demand.idle

    @property
    def _has_reports(self) -> bool:
        return any(requester.reports for requester in self.requesters)

    def _schedule(self) -> None:
        # Once per iteration of the loop, after every handler that ends in it: their outcomes are sent together.
        if not self._scheduled and not self._demand.is_closed:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Make every call that is wanted now."""
        self._scheduled = False
        loop, now = asyncio.get_running_loop(), time.monotonic()
        for requester in self.requesters:
            call = self._demand.next_call(requester.demand, self._listener, len(requester.reports), now)
            if call is None:
                continue
            if call == TOO_SOON:
                loop.call_later(LATER, self._schedule)
                continue
            requester.begin_call(kept=self._setup.live.now().keeps_completed)
            self._tasks[requester] = loop.create_task(self._advance(requester, call))
        if not self.busy and not self._has_reports:
            self._idle.set()

    # Calling

    async def _advance(self, requester: Requester, asks: NextCall) -> None:
        demand, listener = self._demand, self._listener
        # Leases count from here, not from the answer: the server may grant them long before the answer arrives.
        sent = time.monotonic()
        leases_end = sent + self._setup.live.now().lease_ms / 1000
        call = self._call_of(requester, asks)
        self._unseen.sent(requester.name, requester.request)
        demand.sent(time.monotonic(), large=asks.large)
        late = (
            asyncio.get_running_loop().call_later(LATE, self._is_overdue, requester) if listener.shares_slots else None
        )
        try:
            answer = await self._persist(call, requester)
            # The other requester sends first: the server works on its call while we look at this answer.
            self._pump()
            if demand.unsent:
                await asyncio.sleep(0)
        finally:
            if late is not None:
                late.cancel()
            ended, reports = demand.ended(requester.demand), requester.end_call()
            self._tasks.pop(requester, None)
            verdict = self._unseen.seen(requester.name)
        self.advances += 1
        self._pass_on_statuses(reports, answer)
        self._pass_on_jobs(requester, answer, ended, verdict, sent, leases_end)
        self._go_on(requester, answer, ended.asked)

    def _call_of(self, requester: Requester, asks: NextCall) -> commands.Call[Advanced]:
        setup = self._setup
        now = setup.live.now()
        return commands.advance(
            worker=setup.worker,
            requester=requester.name,
            request=requester.request,
            outcomes=[report.outcome for report in requester.sent],
            take=asks.take,
            lease_ms=now.lease_ms,
            policy=now.policy,
            row=asks.row,
            fill=asks.fill,
            batch_wait_ms=asks.batch_wait_ms,
            confirms=True,
            offers=asks.offer,
            received=self._grants.received,
            turn_size=setup.turn_size,
            epoch=None if setup.turn_size is None else self._demand.epoch,
        )

    def _pass_on_statuses(self, reports: list[RunReport], answer: Advanced) -> None:
        """Tell the listener which of the reported outcomes the server has recorded, and what it has ended itself."""
        listener = self._listener
        if 0 in answer.accepted:
            for report, status in zip(reports, answer.accepted, strict=True):
                if status == 0:
                    listener.refused(report)
            reports = [report for report, status in zip(reports, answer.accepted, strict=True) if status == 1]
        listener.accepted(reports, answer.now)
        listener.ended_by_time(answer.stalled, answer.expired)

    def _pass_on_jobs(
        self,
        requester: Requester,
        answer: Advanced,
        ended: EndedCall,
        verdict: Verdict,
        sent: float,
        leases_end: float,
    ) -> None:
        listener, jobs, rows = self._listener, answer.jobs, answer.rows
        if answer.again:
            jobs, rows = self._grants.new_rows(answer)
        else:
            self._grants.set_clock(sent, answer.now)
        if jobs and verdict == "give back":
            listener.give_back(jobs, answer.now, requester)
        elif jobs and verdict == "start":
            starts = listener.may_start(ended.asked) if ended.overdue else ended.asked
            listener.take_on(jobs, rows, answer.now, requester, leases_end, starts)
        listener.use_reserve(self._demand.asked, answer.wanted)

    def _go_on(self, requester: Requester, answer: Advanced, asked: int) -> None:
        """Do what follows from an answer, once its jobs are passed on."""
        listener, brought = self._listener, len(answer.rows or answer.jobs)
        after = self._demand.answered(
            requester.demand,
            asked,
            brought,
            answer.wait_ms,
            answer.epoch,
            listener.vacant(),
            reports_wait=self._has_reports,
        )
        if after.sleep is not None:
            self._sleep(after.sleep)
        if after.listen:
            self._marker_watch.begin()
            self._begin_or_end_watching()
        if after.dry:
            listener.dry()
        if answer.tick_ms >= 0:
            self._on_tick(answer.tick_ms)
        self._pump()
        listener.call_ended()
        if self.idle:
            # Only after the last answer: a call that only reported says nothing about ready jobs.
            listener.became_idle()

    def _sleep(self, duration: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(duration, self.poke)

    def _is_overdue(self, requester: Requester) -> None:
        """The server may be away. The other workers that share our slots need not wait for it."""
        if self._demand.call_overdue(requester.demand):
            self._listener.call_overdue()

    async def _persist(self, call: commands.Call[Advanced], requester: Requester) -> Advanced:
        return await self._calls.call(call, partial(self._is_overdue, requester))

    def _take_grant(self, granted: Granted) -> None:
        """Start a job that an add has granted to this worker. If there is no free slot any more, it waits for one.

        A worker that takes no more jobs does not receive it: withdrawing the offer, or leaving, releases the job.
        """
        demand, listener = self._demand, self._listener
        if not demand.takes_jobs or not self._grants.takes(granted.job.fence):
            return
        requester = next(
            (requester for requester in self.requesters if requester not in self._tasks), self.requesters[0]
        )
        leases_end, starts = self._grants.lease_end(granted), int(demand.uses_hint(listener))
        listener.take_on([granted.job], (), granted.now, requester, leases_end, starts)

    # From the heartbeat thread

    def leases(self) -> list[tuple[str, int]]:
        """Leases (id, fence) of ended runs whose outcome has not arrived: the loop is blocked, or the server away."""
        return [(report.job.id, report.job.fence) for report in self.unreported()]

    def unreported(self) -> list[RunReport]:
        """Outcomes that have not arrived at the server."""
        reports = [report for requester in self.requesters for report in requester.unanswered()]
        return [report for report in reports if report.kind not in ("begun", "released", "ended")]

    def take_unsent(self) -> list[RunReport]:
        """Take over the outcomes that a blocked event loop has not sent."""
        return [report for requester in self.requesters for report in requester.take_unsent()]

    # Waiting

    async def _watch_marker(self, wake: WakeConnection) -> None:
        """Block on the marker while there are free slots and nothing is ready. Ends by cancellation."""
        try:
            while not self._demand.is_closed:
                await self._watches.wait()
                try:
                    await self._wait_once(wake)
                except Exception as error:  # every kind of error, as in PersistentCalls
                    self._reachability.unreached(error)
                    pause = self._marker_watch.failed()
                    self._begin_or_end_watching()
                    self._pump()
                    await self._calls.pause(pause)
        finally:
            await wake.close()

    async def _wait_once(self, wake: WakeConnection) -> None:
        """Wait once, for a marker or for a granted job, and carry out the decision about what came."""
        began = time.monotonic()
        popped = await wake.wait()
        if popped is not None and popped.key == self._setup.grants:
            self._receive_grant(popped.member)
            return
        decision = self._marker_watch.timed_out() if popped is None else self._marker_watch.popped(self._listener)
        self._begin_or_end_watching()
        if decision == "pass on":
            self._schedule()
            await wake.pass_on()
            return
        self._reachability.reached(began)
        if decision == "ask":
            self._pump()

    def _receive_grant(self, raw: bytes) -> None:
        try:
            self._take_grant(commands.read_grant(raw))
        except (ValueError, struct.error):
            self._marker_watch.damaged()
            self._pump()
        else:
            self._marker_watch.granted(self._listener)
        self._begin_or_end_watching()

    def _begin_or_end_watching(self) -> None:
        if self._marker_watch.is_on:
            self._watches.set()
        else:
            self._watches.clear()
