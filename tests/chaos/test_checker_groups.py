"""The checker finds planted violations: overlaps, second workers in an exclusive queue, jobs out of order."""

from __future__ import annotations

from typing import Any

from tests.chaos.book import EPOCH, Book, sound


def beside(book: Book, second: float) -> Book:
    """Job c runs from 5 to 6; job d of the same group starts at `second`."""
    book.add("c", 4.0)
    book.add("d", 4.1)
    book.run("c", 5.0, 4.0, took=1.0)
    book.run("d", second, 4.1, pid=101, actor="two", worker="w2")
    return book


# S4


def test_two_jobs_of_a_group_at_once_are_seen() -> None:
    found = beside(sound(), 5.5).findings()
    assert [finding.rule for finding in found] == ["S4", "S8"]  # the first had not ended: the second overtook it too
    assert any("'g'" in finding.text and "5.501 s into the run" in finding.text for finding in found)


def test_one_after_the_other_is_no_overlap() -> None:
    assert beside(sound(), 6.1).findings() == []


def test_a_raised_limit_allows_two_and_not_three() -> None:
    book = sound()
    book.act("set_group_concurrency", 3.5, 3.6, group="g", limit=2)
    assert beside(book, 5.5).findings() == []
    book.add("e", 4.2)
    book.run("e", 5.55, 4.2, pid=102)
    assert book.rules() == {"S4"}


def test_a_limit_that_was_taken_back_counts_no_more() -> None:
    book = sound()
    book.act("set_group_concurrency", 3.5, 3.6, group="g", limit=2)
    book.act("set_group_concurrency", 3.7, 3.8, group="g", limit=None)
    assert beside(book, 5.5).rules() == {"S4"}


def test_a_handler_that_ran_on_after_its_lease_is_no_overlap() -> None:
    book = sound()
    book.add("c", 4.0)
    book.fault("freeze", 5.1, 9.0)
    book.event("active", 5.0, "c", attempt=1)
    zombie = book.start("c", 5.0, 4.0)
    book.event("stalled", 8.2, "c", attempt=1, final=False)
    book.run("c", 8.3, 4.0, attempt=2, took=2.0, pid=101, actor="two")
    book.end(zombie, 9.1)
    book.note("lost", 9.2, q="orders", job="c", fence=zombie["fence"])
    verdict = book.verdict()
    assert verdict.findings == []
    assert verdict.notes.zombies == 1


def test_a_lease_cannot_be_lost_before_it_is_over() -> None:
    book = sound()
    book.add("c", 4.0)
    book.fault("freeze", 5.1, 9.0)
    book.event("active", 5.0, "c", attempt=1)
    zombie = book.start("c", 5.0, 4.0)
    book.event("stalled", 6.2, "c", attempt=1, final=False)
    book.run("c", 6.3, 4.0, attempt=2, took=2.0, pid=101, actor="two")
    book.end(zombie, 9.1)
    assert "S4" in book.rules()


def test_a_second_worker_in_an_exclusive_queue_is_seen() -> None:
    book = sound("solo")
    book.add("c", 4.0, group="h")
    book.add("d", 4.1, group="i")
    book.run("c", 5.0, 4.0, group="h", took=1.0)
    book.run("d", 5.5, 4.1, group="i", pid=101, actor="two", worker="w2")
    assert book.rules() == {"S4"}


def test_several_jobs_of_one_worker_in_an_exclusive_queue_are_right() -> None:
    book = sound("solo")
    book.add("c", 4.0, group="h")
    book.add("d", 4.1, group="i")
    book.run("c", 5.0, 4.0, group="h", took=1.0)
    book.run("d", 5.5, 4.1, group="i")
    assert book.findings() == []


# S7


def test_a_job_that_overtakes_another_is_seen() -> None:
    book = Book()
    book.add("a", 1.0)
    book.add("b", 1.1)
    book.run("b", 2.0, 1.1)
    book.run("a", 3.0, 1.0)
    (finding,) = book.findings()
    assert finding.rule == "S7"
    assert "'b'" in finding.text
    assert "before 'a'" in finding.text


def test_priority_and_order_count_before_arrival() -> None:
    book = Book()
    book.add("a", 1.0, priority=1)
    book.add("b", 1.1, priority=0)
    book.add("c", 1.2, priority=1, order_ms=-5)
    book.run("b", 2.0, 1.1)
    book.run("c", 3.0, 1.2, priority=1, order=-5)
    book.run("a", 4.0, 1.0, priority=1)
    assert book.findings() == []


def test_a_job_ignored_though_it_is_more_urgent_is_seen() -> None:
    book = Book()
    book.add("a", 1.0, priority=5)
    book.add("b", 1.1)
    book.run("a", 2.0, 1.0, priority=5)
    book.run("b", 3.0, 1.1)
    assert book.rules() == {"S7"}


def test_a_job_that_came_after_the_grant_is_not_overtaken() -> None:
    book = Book()
    book.add("a", 1.0, priority=5)
    book.run("a", 2.0, 1.0, priority=5)
    book.add("b", 2.05)
    book.run("b", 3.0, 2.05)
    assert book.findings() == []


def test_a_delayed_job_takes_its_place_when_it_is_due() -> None:
    book = Book()
    book.add("late", 1.0, delay=2.0, priority=0)
    book.add("b", 1.1, priority=1)
    book.run("b", 2.0, 1.1, priority=1)
    book.run("late", 3.1, 1.0, order=1_700_000_003_000)
    assert book.findings() == []
    book = Book()
    book.add("late", 1.0, delay=2.0, priority=0)
    book.add("b", 1.1, priority=1)
    book.run("b", 3.5, 1.1, priority=1)
    book.run("late", 4.0, 1.0, order=1_700_000_003_000)
    assert book.rules() == {"S7"}


# S8


def test_a_job_that_goes_to_the_tail_after_a_failure_is_seen() -> None:
    book = Book()
    book.add("a", 1.0)
    book.add("b", 1.1)
    book.run("a", 2.0, 1.0, outcome="retrying")
    book.run("b", 3.0, 1.1)
    book.run("a", 4.0, 1.0, attempt=2)
    assert book.rules() == {"S8"}


def test_a_job_that_yields_lets_others_pass() -> None:
    book = Book()
    book.add("a", 1.0, on_retry="yield")
    book.add("b", 1.1)
    book.run("a", 2.0, 1.0, outcome="retrying")
    book.run("b", 3.0, 1.1)
    book.run("a", 4.0, 1.0, attempt=2)
    assert book.findings() == []


def test_a_redriven_job_goes_back_to_its_position() -> None:
    book = Book()
    book.add("a", 1.0)
    book.add("b", 1.1)
    book.run("a", 2.0, 1.0, outcome="failed")
    book.act("retry", 2.9, 3.1, job="a")
    book.event("added", 3.0, "a")
    book.run("b", 4.0, 1.1)
    book.run("a", 5.0, 1.0)
    assert book.rules() == {"S8"}


# Batches


def batch(queue: str, *, first: float = 2.0, second: float = 2.0, **more: Any) -> Book:
    """Two jobs of one group that were granted at these times and ran one after the other."""
    book = Book(queue)
    book.add("a", 1.0)
    book.add("b", 1.1)
    one = book.start("a", first, 1.0)
    book.end(one, 2.5)
    book.event("completed", 2.9, "a", attempt=1, fence=one["fence"])
    two = book.start("b", second, 1.1, fence=(EPOCH + round(second * 1000)) * 1000 + 1, **more)
    two["t"] = 2.6
    book.end(two, 2.7)
    book.event("completed", 2.9, "b", attempt=1, fence=two["fence"])
    return book


def test_jobs_of_one_batch_are_granted_together_in_a_queue_of_batches_and_nowhere_else() -> None:
    assert batch("bulk").findings() == []
    assert batch("orders").rules() == {"S7"}


def test_a_second_grant_of_a_group_whose_batch_has_not_ended_is_seen() -> None:
    assert batch("bulk", second=2.4).rules() == {"S8"}
    assert batch("bulk", worker="w2").rules() & {"S7", "S8"}


def test_jobs_of_one_batch_do_not_run_at_once() -> None:
    book = batch("bulk")
    book.lines[-2]["t"] = 2.7
    next(line for line in book.lines if line["k"] == "end" and line["job"] == "a")["t"] = 2.65
    assert "S4" in book.rules()


def test_a_run_that_an_operator_stopped_with_its_batch_has_a_reason() -> None:
    for what, rules in (("remove", set[str]()), ("promote", {"S3"})):
        book = Book("bulk")
        book.add("a", 1.0)
        book.end(book.start("a", 2.0, 1.0), 2.2, "cancelled")
        book.act(what, 2.1, 2.2, job="another")
        book.run("a", 3.0, 1.0)
        assert book.rules() == rules, what
