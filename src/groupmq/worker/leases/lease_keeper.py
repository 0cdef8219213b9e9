"""The leases of a worker as its heartbeat thread sees them: what to renew, and how to act on the server's answers.

The thread must not depend on the event loop, which a handler may block. So it acts alone where that matters: it gives
prefetched jobs back when an operator or another worker asks for them, or when the loop is blocked, and then it also
reports what the loop has left unreported. Everything else is passed on to the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from groupmq.core.worker_options import WorkerOptions
from groupmq.protocol.commands import CHUNK, Beat
from groupmq.worker.dispatcher import Dispatcher
from groupmq.worker.fetching.fetcher import Fetcher
from groupmq.worker.fetching.grants import Grants
from groupmq.worker.fetching.unseen import UnseenAnswers, UnseenCall
from groupmq.worker.health import presence
from groupmq.worker.leases.loop_watch import LoopWatch
from groupmq.worker.live_settings import LiveSettings
from groupmq.worker.running.execution import JobExecutor
from groupmq.worker.running.outcome import OutcomePolicy, RunReport


class LeaseKeeper:
    """The listener of the heartbeat. Called from its thread, except for `start`."""

    def __init__(
        self,
        *,
        options: WorkerOptions,
        live: LiveSettings,
        executor: JobExecutor,
        fetcher: Fetcher,
        dispatcher: Dispatcher,
        grants: Grants,
        unseen: UnseenAnswers,
        policy: OutcomePolicy,
        loop_watch: LoopWatch,
        on_tick: Callable[[int], None],
    ) -> None:
        """`on_tick`: as in Fetcher; called in the event loop."""
        self._options = options
        self._live = live
        self._executor = executor
        self._fetcher = fetcher
        self._dispatcher = dispatcher
        self._grants = grants
        self._unseen = unseen
        self._policy = policy
        self._loop_watch = loop_watch
        self._on_tick = on_tick
        self._outcomes: list[RunReport] = []
        """To be reported with the next beat."""
        self._handed_out = self._maybe_recorded = 0
        """How many of these an unanswered beat has carried; how many of this beat's reports an earlier one carried."""
        self._stops = False
        """Whether the answer to the last beat named runs to stop."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def in_loop(self, call: Callable[..., Any], *args: Any) -> None:
        """Have the event loop call this as soon as it can."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    def presence(self) -> str:
        self._loop_watch.ask()
        return presence(
            self._options, [job.id for job, _ in self._executor.running_tasks()], self._loop_watch.blocked_for
        )

    def leases(self) -> list[tuple[str, int]]:
        """Every lease to renew, (id, fence).

        Runs that have ended are renewed until their outcome has arrived, unless the loop has been blocked for as long
        as a lease lasts: the outcomes it was about to send may never be sent, and must not hold a group for ever.
        """
        found = self._executor.leases()
        if self._loop_watch.blocked_for < self._live.now().lease_ms / 1000:
            found += self._fetcher.leases()
        given_up = self._executor.given_up()
        return [pair for pair in found if pair[1] not in given_up] if given_up else found

    def refuses(self) -> int | None:
        return self._grants.refuse(blocked=self._loop_watch.blocked_for > 0)

    def unseen(self) -> UnseenCall | None:
        return self._unseen.ask() if self._loop_watch.blocked_for > 0 else None

    def outcomes(self) -> list[RunReport]:
        if self._loop_watch.blocked_for:
            self._outcomes += [self._policy.released(job) for job, _ in self._executor.withdraw_all()]
            self._outcomes += self._fetcher.take_unsent()
        reports = self._outcomes[:CHUNK]
        self._maybe_recorded, self._handed_out = self._handed_out, len(reports)
        return reports

    def delivered(self, reports: Sequence[RunReport], accepted: Sequence[int]) -> None:
        del self._outcomes[: len(reports)]
        answers = list(zip(reports, accepted, strict=True))
        recorded = [report for report, status in answers if status == 1]
        if recorded:
            self.in_loop(self._recorded, recorded)
        # If the answer of an earlier beat was lost, a report that is refused now may have been recorded then.
        for report, status in answers[self._maybe_recorded :]:
            if status == 0 and report.kind != "released":
                self.in_loop(self._dispatcher.refused, report)
        self._handed_out = 0

    def _recorded(self, reports: Sequence[RunReport]) -> None:
        """Called in the event loop: the heartbeat has reported these instead of the loop."""
        self._dispatcher.accepted(reports, int(time.time() * 1000))
        self._fetcher.poke()

    def received(self, beat: Beat, leases: Sequence[tuple[str, int]], unseen: UnseenCall | None) -> bool:
        if unseen is not None:
            self._unseen.answered(unseen, carried_out=beat.taken_back)
        lost = set(beat.lost)
        for job_id, fence in leases if lost else ():
            if job_id in lost:
                self.in_loop(self._executor.lease_lost, fence)
        if beat.cancelled or beat.ended or self._stops:
            self._stops = bool(beat.cancelled or beat.ended)
            self._executor.request_stop(beat.cancelled)
            self.in_loop(self._executor.cancel, beat.cancelled, beat.ended)
        if beat.void:
            self._grants.refused(beat.void)
        if beat.tick_ms >= 0:
            self.in_loop(self._on_tick, beat.tick_ms)
        # Once the unseen call of one requester was dealt with, there may be one of the other.
        return self._give_back(beat.recalled, beat.wanted) or beat.taken_back

    def _give_back(self, recalled: Sequence[int], reserved: int) -> bool:
        """Give these jobs back unless they have begun, and report those that have; True if there were any.

        Jobs that are still on their way here go back when they arrive, or are asked for again with the next beat.
        `reserved`: another worker is idle and wants what was reserved under fences up to this one.
        """
        back = self._executor.withdraw(recalled)
        if reserved:
            back += self._executor.withdraw_reserved(reserved)
        self._outcomes += [self._policy.released(job) for job, _ in back]
        wanted = set(recalled)
        begun = self._executor.running(wanted)
        begun += [report.job for report in self._fetcher.unreported() if report.job.fence in wanted]
        self._outcomes += [self._policy.begun(job) for job in begun]
        return bool(back or begun)
