"""The checker finds planted violations: starts while a breaker is open, snoozes cut short, ids reused too early."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.book import Book


def shaky(*outcomes: str, then: float, **more: Any) -> Book:
    """A job with these outcomes, a second apart from second 2 on; its next attempt is granted at `then`."""
    book = Book("shaky")
    book.add("a", 1.0)
    for n, outcome in enumerate(outcomes):
        book.run("a", 2.0 + n, 1.0, outcome=outcome, attempt=n + 1)
    book.run("a", then, 1.0, attempt=len(outcomes) + 1, **more)
    return book


@pytest.mark.parametrize(("then", "rules"), [(4.2, {"S9"}), (4.49, {"S9"}), (4.6, set[str]())])
def test_a_start_while_a_breaker_is_open_is_seen(then: float, rules: set[str]) -> None:
    """The third failure in a row is published at 4.11."""
    book = shaky("retrying", "retrying", "retrying", then=then)
    assert book.rules() == rules
    assert book.verdict().notes.rests == 1


def test_two_failures_open_no_breaker() -> None:
    assert shaky("retrying", "retrying", then=3.2).findings() == []


def test_a_breaker_stays_open_when_its_probe_fails() -> None:
    assert shaky("retrying", "retrying", "retrying", "retrying", then=5.2).rules() == {"S9"}


def test_a_completed_job_closes_a_breaker() -> None:
    book = Book("shaky")
    for n, job in enumerate("abcd"):
        book.add(job, 1.0 + n / 10)
        book.run(job, 2.0 + n, 1.0 + n / 10, outcome="completed" if job == "b" else "failed")
    book.add("e", 1.9)
    book.run("e", 5.2, 1.9)
    assert book.findings() == []


def test_failures_that_lie_far_apart_open_no_breaker() -> None:
    book = Book("shaky")
    book.add("a", 1.0)
    for n in range(3):
        book.run("a", 2.0 + 5 * n, 1.0, outcome="retrying", attempt=n + 1)
    book.run("a", 12.2, 1.0, attempt=4)
    assert book.findings() == []


def test_a_run_that_was_cancelled_is_no_failure() -> None:
    book = Book("shaky")
    book.add("a", 1.0)
    book.act("cancel", 4.01, 4.05, job="a")
    for n in range(3):
        book.run("a", 2.0 + n, 1.0, outcome="retrying" if n < 2 else "failed", attempt=n + 1)
    book.add("b", 1.5)
    book.run("b", 4.2, 1.5)
    assert book.findings() == []


def test_another_group_does_not_rest() -> None:
    book = shaky("retrying", "retrying", "retrying", then=5.0)
    book.add("other", 1.5, group="h")
    book.run("other", 4.2, 1.5, group="h")
    assert book.findings() == []


def snoozed(again: float) -> Book:
    """A job that asks at 2.1 to be called half a second later."""
    book = Book()
    book.add("a", 1.0, do="snooze", snooze=0.5)
    book.end(book.start("a", 2.0, 1.0), 2.1, "snoozed")
    book.run("a", again, 1.0)
    return book


def test_a_snoozed_job_that_wakes_early_is_seen() -> None:
    assert snoozed(2.4).rules() == {"S9"}
    assert snoozed(2.61).findings() == []


def test_a_worker_that_exits_cleanly_has_reported_its_snooze() -> None:
    book = snoozed(2.4)
    book.note("closing", 50.0)
    book.note("exit", 51.0, of=100, code=0)
    assert book.rules() == {"S9"}


def test_a_snoozed_job_that_an_operator_promotes_may_wake_early() -> None:
    book = snoozed(2.4)
    book.act("promote", 2.3, 2.35, job="a")
    assert book.findings() == []


def test_a_snooze_that_never_reached_the_server_is_none() -> None:
    book = Book()
    book.add("a", 1.0, do="snooze", snooze=5.0)
    start = book.start("a", 2.0, 1.0)
    book.end(start, 2.1, "snoozed")
    book.fault("kill", 2.1)
    book.event("stalled", 5.0, "a", attempt=1)
    book.run("a", 5.1, 1.0, attempt=2)
    assert "S9" not in book.rules()


@pytest.mark.parametrize(("again", "rules"), [(5.0, {"S11"}), (9.0, set[str]())])
def test_an_id_that_is_used_again_while_it_is_taken_is_seen(again: float, rules: set[str]) -> None:
    """Its job ended at 2.11 and was cleaned away, and the id stays taken for six seconds."""
    book = Book()
    book.add("a", 1.0, unique_for=6.0)
    book.run("a", 2.0, 1.0)
    book.act("clean", 3.0, 3.1, state="completed")
    book.add("a", again, uid="another", unique_for=6.0)
    book.run("a", again + 1, again, uid="another")
    assert book.rules() == rules


def test_the_id_of_a_removed_job_is_free() -> None:
    book = Book()
    book.add("a", 1.0, unique_for=6.0)
    book.run("a", 2.0, 1.0)
    book.act("remove", 2.9, 3.1, job="a")
    book.event("removed", 3.0, "a")
    book.add("a", 4.0, uid="another", unique_for=6.0)
    book.run("a", 5.0, 4.0, uid="another")
    assert book.findings() == []
