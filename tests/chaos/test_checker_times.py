"""The checker finds planted violations: early starts, exceeded rates, ticks, starts after removals and in pauses."""

from __future__ import annotations

import pytest

from tests.chaos.book import EPOCH, Book, sound

# S9


def test_a_delayed_job_that_starts_early_is_seen() -> None:
    book = Book()
    book.add("a", 1.0, delay=2.0)
    book.run("a", 2.9, 1.0, order=EPOCH + 3000)
    assert book.rules() == {"S9"}


def test_a_job_that_was_promoted_is_not_early() -> None:
    book = Book()
    book.add("a", 1.0, delay=2.0)
    book.act("promote", 2.0, 2.1, job="a")
    book.run("a", 2.9, 1.0, order=EPOCH + 3000)
    assert book.findings() == []


def test_a_job_that_was_promoted_in_the_millisecond_of_its_start_is_not_early() -> None:
    """The server reports whole milliseconds, the operator's clock fractions of them."""
    book = Book()
    book.add("a", 1.0, delay=2.0)
    book.act("promote", 2.9004, 2.91, job="a")
    book.run("a", 2.9, 1.0, order=EPOCH + 3000)
    assert book.findings() == []


def test_a_delayed_job_that_failed_and_was_retried_by_an_operator_is_not_early() -> None:
    book = Book()
    book.add("a", 1.0, delay=2.0)
    book.act("fail", 1.4, 1.6, job="a")
    book.event("failed", 1.5, "a", attempt=0, reason="by the operator")
    book.act("retry", 1.9, 2.1, job="a")
    book.event("added", 2.0, "a")
    book.run("a", 2.5, 1.0, order=EPOCH + 3000)
    assert book.findings() == []


def test_a_back_off_that_is_cut_short_is_seen() -> None:
    book = Book()
    book.add("a", 1.0)
    book.run("a", 2.0, 1.0, outcome="retrying")
    book.lines[-1]["delay"] = 2.0
    book.run("a", 3.0, 1.0, attempt=2)
    assert book.rules() == {"S9"}


def test_a_start_inside_the_window_is_seen() -> None:
    book = Book("window")
    book.add("a", 1.0, order_ms=EPOCH + 1000)
    book.run("a", 1.15, 1.0, order=EPOCH + 1000)
    assert book.rules() == {"S9"}


def test_one_start_too_many_for_the_rate_is_seen() -> None:
    for n, rules in ((25, set[str]()), (26, {"S9"})):
        book = Book("metered")
        for i in range(n):
            book.add(f"j{i}", 1.0 + i / 1000, group=f"g{i}")
        for i in range(n):
            book.run(f"j{i}", 2.0 + i / 100, 1.0 + i / 1000, group=f"g{i}")
        assert book.rules() == rules, n


def test_a_start_after_the_ttl_is_seen() -> None:
    for start, rules in ((1.9, set[str]()), (2.1, {"S9"})):
        book = Book()
        book.add("a", 1.0, ttl=1.0)
        book.run("a", start, 1.0)
        assert book.rules() == rules, start


# S13


def test_a_start_after_a_removal_is_seen() -> None:
    book = sound()
    book.add("c", 4.0)
    book.act("remove", 4.4, 4.6, job="c")
    book.event("removed", 4.5, "c")
    book.start("c", 5.0, 4.0)
    assert "S13" in book.rules()


@pytest.mark.parametrize(("begins", "rules"), [(4.45, set[str]()), (4.65, {"S13"})])
@pytest.mark.parametrize(("what", "event"), [("remove", "removed"), ("cancel", "removed"), ("fail", "failed")])
def test_a_job_that_begins_after_an_operator_has_ended_it_is_seen(
    what: str, event: str, begins: float, rules: set[str]
) -> None:
    """It was granted before: the answer that brought it was on its way."""
    book = sound()
    book.add("c", 4.0)
    start = book.start("c", 4.3, 4.0)
    start["t"] = begins
    book.act(what, 4.4, 4.6, job="c")
    book.event(event, 4.5, "c")
    book.end(start, 4.7, "cancelled")
    assert {rule for rule in book.rules() if rule == "S13"} == rules


def test_a_job_that_begins_in_a_paused_queue_is_seen() -> None:
    for begins, rules in ((4.15, set[str]()), (4.3, {"S13"})):
        book = sound()
        book.add("c", 4.0)
        book.act("pause", 4.1, 4.2)
        start = book.start("c", 4.05, 4.0)
        start["t"] = begins
        book.act("resume", 6.0, 6.1)
        assert {rule for rule in book.rules() if rule == "S13"} == rules


def test_a_start_in_a_paused_queue_or_group_is_seen() -> None:
    for what, told in (("pause", {}), ("pause_group", {"group": "g"})):
        book = sound()
        book.add("c", 4.0)
        book.act(what, 4.1, 4.2, **told)
        book.run("c", 5.0, 4.0)
        book.act(what.replace("pause", "resume"), 6.0, 6.1, **told)
        assert book.rules() == {"S13"}, what


def test_a_start_while_a_pause_was_on_its_way_or_in_another_group_is_right() -> None:
    book = sound()
    book.add("c", 4.0)
    book.act("pause", 4.9, 5.2)
    book.act("pause_group", 4.1, 4.2, group="other")
    book.run("c", 5.0, 4.0)
    book.act("resume", 6.0, 6.1)
    book.act("resume_group", 6.0, 6.1, group="other")
    assert book.findings() == []


# S12


def ticking(*ticks: float, alone: bool = False, took: float = 0.1) -> Book:
    """A repeat every second from second 1 on, removed at second 17, with jobs for these ticks."""
    book = Book("ticks")
    told = {"key": "every", "start": EPOCH + 1000, "every": 1000, "alone": alone}
    book.note("repeating", 0.4, **told)
    book.note("repeats", 0.5, answer="ok", **told)
    for tick in ticks:
        job = f"repeat-x:{EPOCH + round(tick * 1000)}"
        book.event("added", tick + 0.01, job)
        book.run(job, tick + 0.1, tick + 0.01, took=took, uid="tick:every", order=EPOCH + round(tick * 1000))
    book.act("remove_repeating_job", 17.0, 17.1, key="every")
    return book


def test_every_tick_once_is_right() -> None:
    verdict = ticking(1, 2, 3, 4, 5, 6).verdict()
    assert verdict.findings == []
    assert verdict.notes.ticks == 6


def test_a_missed_tick_is_seen() -> None:
    (finding,) = ticking(1, 2, 3, 5, 6).findings()
    assert finding.rule == "S12"
    assert "4.000 s into the run" in finding.text


def test_ticks_that_are_skipped_while_the_last_occurrence_lives_are_right() -> None:
    verdict = ticking(1, 3, 5, alone=True, took=1.5).verdict()
    assert (verdict.findings, verdict.notes.ticks) == ([], 3)


def test_an_occurrence_that_is_added_while_the_one_before_it_lives_is_seen() -> None:
    book = ticking(1, 3, 5, alone=True, took=1.5)
    job = f"repeat-x:{EPOCH + 4000}"
    book.event("added", 4.01, job)
    book.run(job, 4.7, 4.01, uid="tick:every", order=EPOCH + 4000)
    (finding,) = [one for one in book.findings() if one.rule == "S12"]
    assert "was live" in finding.text


def test_an_occurrence_that_was_retried_by_an_operator_does_not_stop_the_schedule() -> None:
    book = ticking(1, alone=True)
    first, second = f"repeat-x:{EPOCH + 1000}", f"repeat-x:{EPOCH + 2000}"
    book.lines[-3]["kind"] = "failed"  # the end of the first one
    book.act("retry", 1.5, 1.6, job=first)
    book.event("added", 1.55, first)
    book.event("added", 2.01, second)
    book.run(first, 2.1, 1.01, uid="tick:every", order=EPOCH + 1000)
    book.run(second, 2.5, 2.01, uid="tick:every", order=EPOCH + 2000)
    assert "S12" not in book.rules()


def test_a_tick_off_its_grid_is_seen() -> None:
    assert "S12" in ticking(1, 2, 3, 4.02, 4, 5, 6).rules()


def test_a_tick_that_is_added_twice_is_seen() -> None:
    book = ticking(1, 2, 3, 4, 5, 6)
    job = f"repeat-x:{EPOCH + 6000}"
    book.event("added", 6.5, job)
    book.run(job, 6.6, 6.5, uid="tick:every", order=EPOCH + 6000)
    assert "S11" in book.rules()
