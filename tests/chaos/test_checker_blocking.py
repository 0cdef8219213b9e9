"""The checker finds planted violations: starts in a blocked group, failures that do not block, blocks that just end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.book import Book

DECISIONS: list[tuple[str, dict[str, Any]]] = [
    ("skip", {"job": "a"}),
    ("retry_many", {}),
    ("resume_group", {"group": "g"}),
]


def stopped() -> Book:
    """Job a has failed and blocks the group of job b."""
    book = Book("strict")
    book.add("a", 1.0)
    book.add("b", 1.1)
    book.run("a", 2.0, 1.0, outcome="failed")
    failed = book.lines[-1]
    book.event("blocked", (failed["t"]), "a")
    return book


def unblocked(book: Book, t: float, what: str = "skip", **told: Any) -> None:
    book.act(what, t - 0.05, t + 0.05, **(told or {"job": "a"}))
    book.event("unblocked", t, "a")


@pytest.mark.parametrize(("what", "told"), DECISIONS)
def test_a_group_that_goes_on_after_a_decision_is_right(what: str, told: dict[str, Any]) -> None:
    book = stopped()
    book.act(what, 3.9, 4.1, **told)
    book.event("unblocked", 4.0, "a")
    book.run("b", 5.0, 1.1)
    verdict = book.verdict()
    assert (verdict.findings, verdict.notes.blocks) == ([], 1)


def test_a_start_in_a_blocked_group_is_seen() -> None:
    book = stopped()
    book.run("b", 3.0, 1.1)
    unblocked(book, 4.0)
    (finding,) = book.findings()
    assert finding.rule == "S19"
    assert "job 'a' had blocked it" in finding.text


def test_a_start_in_a_group_that_is_blocked_for_ever_is_seen() -> None:
    book = stopped()
    book.run("b", 3.0, 1.1)
    assert "S19" in book.rules()


def test_a_start_in_another_group_is_right() -> None:
    book = stopped()
    book.add("c", 1.2, group="other")
    book.run("c", 3.0, 1.2, group="other")
    unblocked(book, 4.0)
    book.run("b", 5.0, 1.1)
    assert book.findings() == []


CANCELLED: list[tuple[str, float | None, set[str]]] = [
    ("told to give up", None, {"S19"}),
    ("told to give up", 1.5, {"S19"}),  # cancelled before this run was granted
    ("told to give up", 2.05, set()),
    ("told to give up", 3.0, {"S19"}),
    ("cancelled", 2.05, set()),
]


@pytest.mark.parametrize(("reason", "cancelled", "rules"), CANCELLED)
def test_a_failure_that_blocks_nothing_is_seen_unless_a_person_cancelled_the_run(
    reason: str, cancelled: float | None, rules: set[str]
) -> None:
    book = Book("strict")
    book.add("a", 1.0)
    if cancelled is not None:
        book.act("cancel", cancelled, cancelled + 0.01, job="a")
    book.run("a", 2.0, 1.0, outcome="failed")
    book.lines[-1]["reason"] = reason
    assert book.rules() == rules


def test_a_failure_of_a_queue_that_goes_on_is_right() -> None:
    book = Book("orders")
    book.add("a", 1.0)
    book.run("a", 2.0, 1.0, outcome="failed")
    assert book.findings() == []


def test_a_block_that_ends_though_nobody_decided_is_seen() -> None:
    book = stopped()
    book.act("skip", 3.9, 4.1, job="another")
    book.event("unblocked", 4.0, "a")
    book.run("b", 5.0, 1.1)
    (finding,) = book.findings()
    assert (finding.rule, "nobody had decided" in finding.text) == ("S19", True)


def test_two_blocks_of_one_group_and_an_end_without_a_beginning_are_seen() -> None:
    book = stopped()
    book.event("blocked", 3.0, "a")
    unblocked(book, 4.0)
    unblocked(book, 4.5)
    book.run("b", 5.0, 1.1)
    assert [finding.rule for finding in book.findings()] == ["S19", "S19"]


def test_a_run_that_was_snoozed_runs_again_without_a_fault() -> None:
    for how, rules in (("snoozed", set[str]()), ("returned", {"S3"})):
        book = Book()
        book.add("a", 1.0)
        book.end(book.start("a", 2.0, 1.0), 2.1, how)
        book.run("a", 3.0, 1.0)
        assert book.rules() == rules, how
