"""The scheduler, driven by hand: which ticks it runs, and what it reports."""

from __future__ import annotations

import pytest

from groupmq.client.duties.scheduler import Scheduler
from groupmq.core.schedule import Every
from groupmq.core.views import DutyReport
from groupmq.protocol.commands import DefinitionsPage, Ticked
from tests.support.by_hand import asked
from tests.unit.client.queue.test_methods import arguments, play
from tests.unit.client.queue.test_repeats import T0, stored


def test_a_look_runs_what_is_due_until_nothing_is() -> None:
    rid, raw = stored(Every(5))
    now = T0 + 5001
    scheduler = Scheduler(asked, T0)
    ran, calls = play(
        scheduler.run_once(),
        DefinitionsPage(now, {rid: raw}, -1, "0"),
        Ticked(1, 4999),
        DefinitionsPage(now, {}, 4999, "0"),
    )
    assert ran == DutyReport(1, 4.999, added=1)
    assert scheduler.last_run == now
    assert arguments(calls[1])["ticks"] == [[rid, T0 + 5000, T0 + 10_000, T0 + 5000]]


def test_a_look_that_lost_the_race_for_a_tick_counts_nothing() -> None:
    rid, raw = stored(Every(5))
    now = T0 + 5001
    ran, _ = play(
        Scheduler(asked, T0).run_once(),
        DefinitionsPage(now, {rid: raw}, -1, "0"),
        Ticked(0, 1),
        DefinitionsPage(now, {}, 1, "0"),
    )
    assert ran.added == 0


@pytest.mark.parametrize(("since", "run"), [(None, []), (T0, [T0 + 5000])])
def test_only_a_scheduler_that_looked_before_takes_a_late_tick_for_late(since: int | None, run: list[int]) -> None:
    rid, raw = stored(Every(5, catch_up="none"))
    now = T0 + 5500
    _, calls = play(
        Scheduler(asked, since).run_once(),
        DefinitionsPage(now, {rid: raw}, -1, "0"),
        Ticked(0, 1),
        DefinitionsPage(now, {}, 1, "0"),
    )
    assert arguments(calls[1])["ticks"] == [[rid, T0 + 5000, T0 + 10_000, *run]]


@pytest.mark.parametrize("damage", [b"\0\0\0\x01\xc1", b"", b"\0\0\0\x05\x80"])
def test_a_definition_that_cannot_be_read_is_reported_and_the_others_run(damage: bytes) -> None:
    rid, raw = stored(Every(5))
    now = T0 + 5000
    ran, calls = play(
        Scheduler(asked, T0).run_once(),
        DefinitionsPage(now, {"bad": damage, rid: raw}, -1, "0"),
        Ticked(1, 5000),
        DefinitionsPage(now, {"bad": damage}, 5000, "0"),
    )
    assert (ran.added, len(ran.errors)) == (1, 1)
    assert ran.errors[0].startswith("repeat bad: ")
    assert [one[0] for one in arguments(calls[1])["ticks"]] == [rid]
