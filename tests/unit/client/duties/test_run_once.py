"""One run of each duty, without a server. (What a scheduler does with ticks is in `test_scheduler.py`.)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from groupmq.client.duties.due_work import DueWork
from groupmq.client.duties.promotion import Promotion
from groupmq.client.duties.recovery import Recovery
from groupmq.client.duties.retention import AgeRetention
from groupmq.client.duties.scheduler import Scheduler
from groupmq.core.queue_options import QueueOptions
from groupmq.core.retention import Retention
from groupmq.core.views import DutyReport, ExpiredJob, StalledJob
from groupmq.protocol.commands import Call, DefinitionsPage, Due, Expired, Policy, Stalled

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


def arguments(call: Call[Any]) -> dict[str, Any]:
    named: dict[str, Any] = msgspec.msgpack.decode(call.args)
    return named


async def test_due_work_counts_what_it_did_and_says_when_there_is_more() -> None:
    work = Promotion(Script(Due(2, 1, [], [], 500), Due(0, 0, [], [], -1)), lambda: POLICY)
    assert await work.run_once() == DutyReport(3, 0.5, promoted=2, unparked=1)
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
    assert await Promotion(call, lambda: POLICY).run_once() == DutyReport()


@pytest.mark.parametrize(
    ("duty", "kinds"),
    [
        (DueWork, {"promote": True, "unpark": True, "expire": True}),
        (Promotion, {"promote": True, "unpark": True, "expire": False}),
        (Recovery, {"promote": False, "unpark": True, "expire": True}),
    ],
)
async def test_promotion_and_recovery_share_one_function_of_the_server(duty: Any, kinds: dict[str, bool]) -> None:
    call = Script(Due(0, 0, [], [], -1))
    await duty(call, lambda: POLICY).run_once()
    [made] = call.calls
    assert (made.script, {name: arguments(made)[name] for name in kinds}) == ("due", kinds)


async def test_expired_entries_are_asked_for_again_until_none_is_left() -> None:
    """With one call per run, entries that expire faster than that would pile up."""
    call = Script(
        Due(0, 1, [], [], 250, more_expired=1), Due(0, 0, [], [], 240, more_expired=1), Due(0, 0, [], [], 230)
    )
    assert await DueWork(call, lambda: POLICY).run_once() == DutyReport(1, 0.23, unparked=1)
    assert len(call.calls) == 3


async def test_retention_removes_page_by_page_until_nothing_is_left() -> None:
    call = Script(1000, 7, 0)
    retention = AgeRetention(call, lambda: options(keep_failed=Retention(age=5)))
    assert await retention.run_once() == DutyReport(1007, removed=1007)
    assert [call.script for call in call.calls] == ["clean"] * 3


async def test_retention_that_has_nothing_to_remove_by_age_calls_nobody_and_says_so() -> None:
    """Otherwise its run would count as an answer of the server, and end an outage."""
    call = Script()
    assert await AgeRetention(call, lambda: options(keep_failed=Retention(100))).run_once() == DutyReport(called=False)
    assert call.calls == []


async def test_the_scheduler_remembers_when_it_ran_last() -> None:
    scheduler = Scheduler(Script(DefinitionsPage(1234, {}, -1, "0")))
    assert scheduler.last_run is None
    assert await scheduler.run_once() == DutyReport()
    assert scheduler.last_run == 1234
