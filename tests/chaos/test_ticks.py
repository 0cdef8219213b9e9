"""The judge of ticks: the expected ticks are written here by hand, and each kind of violation is planted once."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq import Cron, Every
from tests.chaos.tick_grid import PATTERNS, Plan, judge, plans

START = 1_800_000_000_000
END = START + 120_000
PLAN = Plan("every-0", (100, 200, 300), every=100_000)


def ran(tick: int, **other: Any) -> dict[str, Any]:
    return {"key": "every-0", "tick": tick, "attempt": 1, "fence": tick, "created": tick + 5, **other}


def findings(*lines: dict[str, Any]) -> list[str]:
    return judge([PLAN], lines).findings


def test_what_ran_as_expected_is_fine_in_any_order_of_lines() -> None:
    verdict = judge([PLAN], [ran(300), ran(100), ran(200)])
    assert (verdict.findings, verdict.jobs, verdict.late) == ([], 3, [5, 5, 5])


def test_a_run_again_is_no_second_job() -> None:
    assert not findings(ran(100), ran(200), ran(200, attempt=2, fence=250), ran(300))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([ran(100), ran(300)], "missed its tick 200"),
        ([ran(100), ran(200), ran(200, fence=201), ran(300)], "made its tick 200 2 times"),
        ([ran(100), ran(200), ran(250), ran(300)], "ran at 250, which is none of its ticks"),
        ([ran(100), ran(200, fence=301), ran(300)], "out of order"),
        ([ran(100), ran(200, created=199), ran(300)], "before its time"),
        ([ran(100), ran(200), ran(300), ran(100, key="other")], "was never defined"),
    ],
)
def test_each_violation_is_found(lines: list[dict[str, Any]], said: str) -> None:
    (finding,) = findings(*lines)
    assert said in finding


def test_there_are_as_many_ticks_as_wanted_and_no_repeat_without_any() -> None:
    found = plans(10_000, START, END)
    assert 10_000 <= sum(len(plan.ticks) for plan in found) < 10_000 + 1201
    assert len({plan.key for plan in found}) == len(found)
    assert all(plans(50, START + 31_000, START + 36_000))
    assert all(plan.ticks for plan in plans(50, START + 31_000, START + 36_000))


def test_the_library_has_the_same_ticks() -> None:
    """Both computations of the ticks agree when nothing goes wrong."""
    for plan in plans(5000, START + 250, END):
        when: dict[str, Any] = {"start": (START + 250) / 1000, "end": END / 1000}
        repeat = Every(plan.every / 1e6, **when) if plan.every else Cron(plan.pattern, tz=plan.tz, **when)
        runs = repeat.next_runs(START / 1000, len(plan.ticks) + 5)
        assert [round(run.timestamp() * 1000) for run in runs] == list(plan.ticks), plan.key


def test_every_pattern_and_zone_takes_part() -> None:
    found = plans(100_000, START, END)
    assert {plan.pattern for plan in found} == {"", *PATTERNS}
    assert len({plan.tz for plan in found}) > 2
