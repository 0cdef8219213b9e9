"""Upkeep of a queue, driven by hand: due work, purges, retention by age and repairs."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.client.duties.due_work import DueWork
from groupmq.client.duties.retention import AgeRetention
from groupmq.core.queue_options import QueueOptions
from groupmq.core.retention import Retention
from groupmq.core.views import DutyReport, ExpiredJob, StalledJob
from groupmq.protocol.commands import (
    DONE,
    LEFT,
    Due,
    Expired,
    Mended,
    Policy,
    Stalled,
)
from tests.support.by_hand import asked
from tests.unit.client.queue.test_methods import OPERATIONS, OPTIONS, arguments, play


def due_work() -> Any:
    return DueWork(asked, lambda: Policy(3, -1, {})).run_once()


def test_what_is_due_is_done_however_much_it_is() -> None:
    answers = (
        Due(500, 3, [], [], 0),
        Due(2, 0, [Stalled("x", "g", False)], [], 0),
        Due(1, 0, [], [Expired("y", None, False)], 70),
    )
    report, calls = play(due_work(), *answers)
    assert report == DutyReport(
        508,
        0.07,
        promoted=503,
        unparked=3,
        stalled=(StalledJob("x", "g", final=False),),
        expired=(ExpiredJob("y", None, blocks=False),),
    )
    assert len(calls) == 3


def test_what_has_expired_is_deleted_however_much_it_is() -> None:
    report, calls = play(due_work(), Due(0, 0, [], [], 70, more_expired=1), Due(0, 0, [], [], 60))
    assert report == DutyReport(0, 0.06)
    assert len(calls) == 2


def test_what_is_due_ends_even_if_the_server_says_now_for_ever() -> None:
    """The rest is left to another duty. Otherwise this one would call again and again without a pause."""
    assert play(due_work(), Due(0, 0, [], [], 0))[0] == DutyReport(0, None)


def test_a_purge_ends_although_something_listed_cannot_be_removed() -> None:
    answers = [["ghost", "b"], [LEFT, DONE], ["ghost"], [LEFT], ["ghost"], [LEFT]]
    removed, calls = play(OPERATIONS.purge(["delayed"]), *answers)
    assert removed == 1
    assert [call.script for call in calls] == ["list", "remove"] * 3


def test_retention_by_age_touches_only_what_has_an_age() -> None:
    report, calls = play(AgeRetention(asked, lambda: OPTIONS).run_once(), 1000, 5, 0)
    assert report == DutyReport(1005, removed=1005)
    assert {arguments(call)["kind"] for call in calls} == {"completed"}


@pytest.mark.parametrize("nothing", [Retention(count=0, age=60), Retention(age=0)])
def test_a_process_that_keeps_nothing_cleans_nothing_that_others_keep_by_age(nothing: Retention) -> None:
    assert nothing.kept == 0
    options = QueueOptions(name="q", keep_completed=nothing, keep_failed=nothing)
    with pytest.raises(StopIteration) as stop:
        AgeRetention(asked, lambda: options).run_once().send(None)
    assert stop.value.value == DutyReport(called=False), "the duty must not call the server"


def test_a_repair_goes_through_every_structure_and_names_what_it_found() -> None:
    def page(*damage: tuple[str, str]) -> Mended:
        return Mended("0", 1, list(damage), [])

    answers: list[Any] = [page()] * 14 + [page(("job in no place", "j"))] + [("0", ["g"])]
    answers += (
        [Mended("0", 9, [], ["lost"])]
        + [page(), page(), page(("member that is no job of its group", "m"))]
        + [page(), page()]  # counts of delayed jobs by group, and their comparison
        + [page()] * 13
    )
    report, calls = play(OPERATIONS.repair(), *answers)
    assert report.mended == {"job in no place": ["j"], "member that is no job of its group": ["m"]}
    assert (report.total, report.clean, bool(report), report.jobs, report.groups) == (2, False, True, 1, 1)
    assert [arguments(call).get("group") for call in calls if arguments(call).get("structure") == "group"] == [
        "",
        "g",
        "lost",
    ]
