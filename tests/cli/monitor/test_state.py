"""How surveys and keys change the state of the monitor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupmq.cli.monitor.keyboard import KeyAction
from groupmq.cli.monitor.state import (
    Effect,
    Inspect,
    MonitorRow,
    Quit,
    RetryFailed,
    State,
    Switch,
    press,
    seen,
    shown,
    with_notice,
)
from tests.cli.monitor.samples import EMPTY, look, run, state


def after(before: State, *actions: KeyAction) -> State:
    for action in actions:
        before, effect = press(before, action)
        assert effect is None, (action, effect)
    return before


def effect(before: State, *actions: KeyAction) -> Effect | None:
    *first, last = actions
    return press(after(before, *first), last)[1]


def job(job_id: str = "bad-1", state: str = "failed") -> Any:
    class Found:
        id = job_id

    Found.state = state  # type: ignore[attr-defined]
    return Found()


DOWN, UP, OPEN, YES, NO = KeyAction.DOWN, KeyAction.UP, KeyAction.OPEN, KeyAction.YES, KeyAction.NO


def test_the_selection_walks_over_what_runs_and_what_failed() -> None:
    start = state()
    assert start.selected is None
    walk = [start := after(start, DOWN) for _ in range(7)]
    ids = [one.selected and one.selected.job_id for one in walk]
    assert ids == ["job-1", "job-2", "job-3", "bad-1", "bad-2", "bad-3", "bad-3"]
    assert after(start, UP, UP).selected == MonitorRow("failure", "bad-1")
    assert after(start, KeyAction.FIRST).selected == MonitorRow("run", "job-1")
    assert after(state(), KeyAction.LAST).selected == MonitorRow("failure", "bad-3")
    assert after(start, KeyAction.BACK).selected is None


def test_the_selection_stays_with_its_job_wherever_it_moves() -> None:
    chosen = after(state(), DOWN, DOWN)
    moved = seen(chosen, look(40, runs=(run("new-1"), run("new-2"), run("job-2"))))
    assert moved.selected == MonitorRow("run", "job-2")


def test_when_its_job_is_gone_the_selection_keeps_its_position() -> None:
    chosen = after(state(), DOWN, DOWN)
    assert seen(chosen, look(40, runs=(run("job-1"), run("job-9")))).selected == MonitorRow("run", "job-9")
    assert seen(after(state(), KeyAction.LAST), look(40, failures=())).selected == MonitorRow("run", "job-3")
    assert seen(chosen, EMPTY).selected is None


def test_a_job_that_runs_and_has_failed_before_is_two_rows() -> None:
    twice = seen(state(), look(40, runs=(run("bad-1"),)))
    assert after(twice, DOWN).selected == MonitorRow("run", "bad-1")
    assert after(twice, DOWN, DOWN).selected == MonitorRow("failure", "bad-1")


def test_pausing_asks_first() -> None:
    asked = after(state(), KeyAction.PAUSE)
    assert asked.question is not None
    assert "Pause orders?" in asked.question.text
    assert press(asked, YES) == (replace(asked, question=None), Switch(paused=True))
    assert effect(seen(state(), look(40, paused=True)), KeyAction.PAUSE, YES) == Switch(paused=False)


@pytest.mark.parametrize("action", [action for action in KeyAction if action is not YES])
def test_whatever_is_no_yes_is_a_no(action: KeyAction) -> None:
    asked = after(state(), KeyAction.PAUSE)
    assert press(asked, action) == (replace(asked, question=None), None)


def test_a_failed_job_is_retried_after_a_yes() -> None:
    chosen = after(state(), *[DOWN] * 4)
    assert effect(chosen, KeyAction.RETRY, YES) == RetryFailed("bad-1")
    assert after(chosen, KeyAction.RETRY, NO).question is None


@pytest.mark.parametrize(("steps", "why"), [(1, "active"), (5, "waiting"), (6, "gone"), (0, "no job is selected")])
def test_what_has_not_failed_is_not_retried(steps: int, why: str) -> None:
    refused = after(state(), *[DOWN] * steps, KeyAction.RETRY)
    assert refused.question is None
    assert why in (refused.message or "")


def test_enter_inspects_the_selected_job() -> None:
    opened, wanted = press(after(state(), DOWN), OPEN)
    assert (opened.page, opened.job_id, wanted) == ("job", "job-1", Inspect("job-1"))
    assert "no job is selected" in (after(state(), OPEN).message or "")


def test_the_page_of_a_job_scrolls_and_leads_back() -> None:
    opened = shown(press(after(state(), *[DOWN] * 4), OPEN)[0], "bad-1", job())
    assert after(opened, DOWN, DOWN, UP).scroll == 1
    assert after(opened, KeyAction.PAGE_DOWN, KeyAction.FIRST).scroll == 0
    assert effect(opened, KeyAction.RETRY, YES) == RetryFailed("bad-1")
    for key in (KeyAction.BACK, KeyAction.QUIT, OPEN):
        back = after(opened, key)
        assert (back.page, back.job_id, back.job, back.selected) == (
            "queue",
            None,
            None,
            MonitorRow("failure", "bad-1"),
        )


def test_a_job_that_comes_too_late_is_not_shown() -> None:
    assert shown(state(), "bad-1", job()) == state()


def test_a_job_that_is_removed_while_it_is_inspected_is_reported() -> None:
    opened, _ = press(after(state(), DOWN), OPEN)
    assert "is gone" in (shown(opened, "job-1", None).message or "")
    gone = shown(shown(opened, "job-1", job("job-1")), "job-1", None)
    assert gone.job is not None
    assert "this is how it was" in (gone.message or "")
    assert after(opened, KeyAction.RETRY).question is None


def test_help_comes_and_goes() -> None:
    asked = after(state(), KeyAction.HELP)
    assert asked.page == "help"
    assert after(asked, KeyAction.HELP).page == after(asked, KeyAction.QUIT).page == "queue"


def test_only_from_the_queue_quit_is_the_end() -> None:
    assert effect(state(), KeyAction.QUIT) == Quit()
    assert effect(after(state(), KeyAction.HELP), KeyAction.QUIT) is None


def test_an_empty_queue_has_nothing_to_select() -> None:
    empty = seen(State("orders", "somewhere"), EMPTY)
    assert after(empty, DOWN, UP, KeyAction.LAST, KeyAction.RETRY).selected is None
    before = State("orders", "somewhere")
    assert after(before, KeyAction.PAUSE, KeyAction.RETRY, DOWN).question is None


def test_what_was_said_goes_with_the_next_key_or_after_a_while() -> None:
    said = with_notice(state(), "orders is paused")
    assert seen(said, look(35)).message == "orders is paused"
    assert seen(said, look(45)).message is None
    assert after(said, DOWN).message is None


def test_trouble_is_over_with_the_next_look() -> None:
    assert seen(replace(state(), trouble="cannot reach it"), look(40)).trouble is None
