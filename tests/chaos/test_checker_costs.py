"""The checker finds planted violations: groups that are passed over, polling, simultaneous reconnects, slow calls."""

from __future__ import annotations

import pytest

from tests.chaos.book import Book

# L4


def passed_over(others: int, until: float = 60.0, priority: int = 0) -> Book:
    """A job waits in its group from second 1 on, while this many jobs of another group arrive and run."""
    book = Book()
    book.add("a", 1.0, group="patient", priority=priority)
    for n in range(others):
        at = 2.0 + n * (until - 3.0) / others
        book.add(f"b{n}", at, group="pushy")
        book.run(f"b{n}", at + 0.001, at, took=0.001, group="pushy")
    book.run("a", until, 1.0, group="patient", priority=priority)
    return book


def test_a_group_that_is_passed_over_is_seen() -> None:
    assert passed_over(200).rules() == {"L4"}


def test_a_job_that_waits_while_few_are_started_is_not_passed_over() -> None:
    book = passed_over(30)
    assert book.findings() == []
    assert book.verdict().notes.longest_ready == pytest.approx(59.0)


def test_a_job_may_be_with_a_dead_worker_for_a_while() -> None:
    assert passed_over(200, until=9.0).findings() == []


def test_a_less_urgent_job_waits() -> None:
    assert passed_over(200, priority=5).findings() == []


def test_a_group_that_is_paused_is_not_passed_over() -> None:
    book = passed_over(200)
    book.act("pause_group", 1.2, 1.3, group="patient")
    book.act("resume_group", 59.0, 59.1, group="patient")
    assert book.findings() == []


def test_a_group_that_works_is_not_passed_over() -> None:
    """Its jobs take long: each waits for the previous one of its group, not for other groups."""
    book = Book()
    for n in range(3):
        book.add(f"a{n}", 1.0 + n / 1000, group="slow")
    for n in range(3):
        book.run(f"a{n}", 2.0 + n * 20, 1.0 + n / 1000, took=19.9, group="slow")
    for n in range(300):
        at = 2.0 + n / 6
        book.add(f"b{n}", at, group="pushy")
        book.run(f"b{n}", at + 0.02, at, took=0.1, group="pushy")
    assert book.findings() == []


def test_a_job_that_is_granted_by_the_call_that_ends_the_one_before_it_is_not_passed_over() -> None:
    book = Book()
    book.add("a0", 1.0, group="slow")
    book.add("a1", 1.1, group="slow")
    book.run("a0", 2.0, 1.0, took=57.99, group="slow")
    book.run("a1", 60.0, 1.1, group="slow")
    for n in range(300):
        at = 2.0 + n / 6
        book.add(f"b{n}", at, group="pushy")
        book.run(f"b{n}", at + 0.02, at, took=0.1, group="pushy")
    assert book.findings() == []


# L6


def idle(book: Book, **calls: int) -> Book:
    book.note("idle", 101.5, workers=10, seconds=4.0, block=1.0, beat=1.0, calls=calls)
    return book


def test_idle_workers_that_block_are_fine() -> None:
    assert idle(Book(), bzpopmin=150, fcall=140).findings() == []


@pytest.mark.parametrize("what", ["bzpopmin", "fcall"])
def test_idle_workers_that_poll_are_seen(what: str) -> None:
    [finding] = idle(Book(), **{what: 500}).findings()
    assert finding.rule == "L6"
    assert f"500 {what}" in finding.text


def test_a_process_that_hammers_a_dead_line_is_seen() -> None:
    book = Book()
    book.fault("cut", 10.0, 12.0, target="few")
    for n in range(400):
        book.note("try", 10.0 + n / 200, actor="few")
        book.note("try", 10.0 + n / 200, actor="other")
    [finding] = book.findings()
    assert finding.rule == "L6"
    assert "few tried to connect" in finding.text


def test_a_producer_may_try_once_for_each_of_its_adds() -> None:
    book = Book()
    book.fault("cut", 9.9, 11.0, target="producer-a")
    for n in range(400):
        book.note("try", 10.0 + n / 400, actor="producer-a")
    assert book.findings() == []


def come_back(*times: float) -> Book:
    book = Book()
    book.add("a", 20.0)
    book.run("a", 21.0, 20.0)
    book.fault("restart", 10.0, 12.0, target="server", of=None)
    for n, t in enumerate(times):
        book.note("try", 10.5, actor=f"p{n}")
        book.note("try", t, actor=f"p{n}")
    return book


def test_processes_that_come_back_all_at_once_are_seen() -> None:
    assert come_back(12.5, 12.51, 12.52, 12.5).rules() == {"L6"}


def test_processes_that_come_back_one_by_one_are_fine() -> None:
    assert come_back(12.5, 12.51, 12.52, 12.9).findings() == []


# L7


def test_a_slow_call_is_seen() -> None:
    book = Book()
    book.note("served", 20.0, since=19.0, waited=0.001, slow=[("add", 9000), ("advance", 5500)])
    [finding] = book.findings()
    assert finding.rule == "L7"
    assert "add took the server 9.0 ms" in finding.text
    assert book.verdict().notes.slow_calls == 2


def test_a_call_of_a_server_that_waited_for_a_processor_is_not_slow() -> None:
    book = Book()
    book.note("served", 20.0, since=19.0, waited=0.010, slow=[("add", 14_000)])
    assert book.findings() == []


def test_a_call_of_a_server_that_was_stopped_is_not_slow() -> None:
    book = Book()
    book.fault("stop", 19.5, 19.9, target="server", of=None)
    book.note("served", 20.0, since=19.0, waited=0.0, slow=[("add", 400_000)])
    assert book.findings() == []
