"""One run of each duty, without a server. (What a scheduler does with ticks is in `test_scheduler.py`.)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from groupmq.client.duties import presence
from groupmq.client.duties.due_work import DueWork
from groupmq.client.duties.presence import PresenceCleanup
from groupmq.client.duties.retention import AgeRetention
from groupmq.client.duties.scheduler import Scheduler
from groupmq.core.queue_options import QueueOptions
from groupmq.core.retention import Retention
from groupmq.core.views import DutyReport, ExpiredJob, StalledJob
from groupmq.protocol.commands import REQUESTERS, Call, DefinitionsPage, Due, Expired, Policy, Stalled

POLICY = Policy(3, -1, {})


class Script:
    """Answers calls with prepared answers, in order."""

    def __init__(self, *answers: Any) -> None:
        self._answers: Iterator[Any] = iter(answers)
        self.calls: list[Call[Any]] = []

    async def __call__(self, call: Call[Any], /) -> Any:
        self.calls.append(call)
        return next(self._answers)


def options(**given: Any) -> QueueOptions:
    return QueueOptions(name="q", **given)


async def test_due_work_counts_what_it_did_and_says_when_there_is_more() -> None:
    work = DueWork(Script(Due(2, 1, [], [], 500), Due(0, 0, [], [], -1)), lambda: POLICY, expire=False)
    assert await work.run_once() == DutyReport(3, 0.5, promoted=2, woken=1)
    assert await work.run_once() == DutyReport()


async def test_due_work_names_each_job_that_stalled_or_was_past_its_ttl() -> None:
    call = Script(Due(0, 1, [Stalled("j", "g", final=False)], [Expired("e", None, blocks=False)], 250))
    report = await DueWork(call, lambda: POLICY).run_once()
    assert report.stalled == (StalledJob("j", "g", final=False),)
    assert report.expired == (ExpiredJob("e", None, blocks=False),)
    assert (report.done, report.next_in) == (3, 0.25)


async def test_a_duty_that_leaves_expired_leases_to_another_does_not_wait_for_them() -> None:
    """An expired lease is due, so the server says 0 ms, but asking again at once would change nothing."""
    call = Script(Due(0, 0, [], [], 0))
    assert await DueWork(call, lambda: POLICY, expire=False).run_once() == DutyReport()


async def test_expired_entries_are_asked_for_again_until_none_is_left() -> None:
    """With one call per run, entries that expire faster than that would pile up."""
    call = Script(
        Due(0, 1, [], [], 250, more_expired=1), Due(0, 0, [], [], 240, more_expired=1), Due(0, 0, [], [], 230)
    )
    assert await DueWork(call, lambda: POLICY).run_once() == DutyReport(1, 0.23, woken=1)
    assert len(call.calls) == 3


async def test_retention_removes_page_by_page_until_nothing_is_left() -> None:
    call = Script(1000, 7, 0)
    retention = AgeRetention(call, lambda: options(keep_failed=Retention(age=5)))
    assert await retention.run_once() == DutyReport(1007, removed=1007)
    assert [call.script for call in call.calls] == ["clean"] * 3


async def test_retention_that_has_nothing_to_remove_by_age_calls_nobody_and_says_so() -> None:
    """Otherwise its run would count as an answer of the server, and end an outage."""
    call = Script()
    assert await AgeRetention(call, lambda: options(keep_failed=Retention(100))).run_once() is None
    assert call.calls == []


async def test_dead_workers_are_deregistered_with_every_requester_that_a_worker_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence, "gone_workers", lambda stats: ["a", "b"])
    call = Script(None, 2)
    assert await PresenceCleanup(call).run_once() == DutyReport(2, gone_workers=("a", "b"))
    [_, leave] = call.calls
    assert leave.script == "leave"
    assert all(f"{worker}:{requester}".encode() in leave.args for worker in "ab" for requester in range(REQUESTERS))


async def test_nobody_is_deregistered_where_all_are_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "gone_workers", lambda stats: [])
    call = Script(None)
    assert await PresenceCleanup(call).run_once() == DutyReport()
    assert [made.script for made in call.calls] == ["stats"]


async def test_the_scheduler_remembers_when_it_ran_last() -> None:
    scheduler = Scheduler(Script(DefinitionsPage(1234, {}, -1, "0")))
    assert scheduler.last_run is None
    assert await scheduler.run_once() == DutyReport()
    assert scheduler.last_run == 1234
