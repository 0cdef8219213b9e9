"""The checker finds planted violations: runs without a reason, wrong fences, stale outcomes, wrong attempts."""

from __future__ import annotations

from tests.chaos.book import Book, sound


def stalled(book: Book) -> Book:
    """Job c: its first worker is killed, its second run completes it."""
    book.add("c", 4.0)
    book.event("active", 5.0, "c", attempt=1, worker="w1")
    book.start("c", 5.0, 4.0)
    book.event("stalled", 8.2, "c", attempt=1, final=False)
    book.run("c", 8.3, 4.0, attempt=2, pid=101, actor="two", worker="w2")
    return book


# S3


def test_a_second_run_after_a_kill_is_explained_by_it() -> None:
    book = stalled(sound())
    book.fault("kill", 5.5)
    verdict = book.verdict()
    assert verdict.findings == []
    assert verdict.notes.duplicates == {"stalled after kill": 1}


def test_a_second_run_that_no_fault_explains_is_seen() -> None:
    book = stalled(sound())
    book.fault("kill", 5.5, of=999, target="somebody else")
    assert "S3" in book.rules()


def twice_in_a_first_attempt(*, killed: float) -> Book:
    """Job c stalls in its first attempt, is retried by an operator, and stalls in its first attempt again."""
    book = sound()
    book.note("ready", 0.2, q="orders", worker="w2", name="w2", pid=101, actor="two")
    book.add("c", 4.0, max_attempts=1)
    book.event("active", 5.0, "c", attempt=1, worker="w1")
    book.fault("kill", killed)
    book.event("stalled", 8.2, "c", attempt=1, final=True)
    book.event("failed", 8.2, "c", attempt=1)
    book.act("retry", 29.9, 30.1, job="c")
    book.event("added", 30.0, "c")
    book.event("active", 40.0, "c", attempt=1, worker="w2")
    book.fault("kill", 40.5, of=101, target="two")
    book.event("stalled", 43.2, "c", attempt=1, final=True)
    book.event("failed", 43.2, "c", attempt=1)
    return book


def test_each_of_two_stalls_of_a_first_attempt_has_a_cause_of_its_own() -> None:
    assert twice_in_a_first_attempt(killed=5.5).findings() == []
    (finding,) = twice_in_a_first_attempt(killed=60.0).findings()
    assert finding.rule == "S3"
    assert "expired 8.200 s into the run" in finding.text


def test_a_process_that_was_given_no_time_explains_a_second_run() -> None:
    for seconds, rules in ((0.4, {"S3"}), (1.2, set[str]())):
        book = stalled(sound())
        book.note("starved", 6.0 + seconds, since=6.0)
        assert book.rules() == rules
        book = stalled(sound())
        book.note("starved", 6.0 + seconds, since=6.0, actor="server", pid=1)
        assert book.rules() == rules


def test_a_fault_long_before_explains_nothing() -> None:
    book = stalled(sound())
    book.fault("hang", 0.2, 0.4)
    assert "S3" in book.rules()


def test_a_run_after_its_job_completed_is_seen() -> None:
    book = sound()
    book.start("b", 4.0, 1.1)
    assert "S3" in book.rules()


def test_a_retry_needs_no_fault() -> None:
    book = sound()
    book.add("c", 4.0)
    book.run("c", 5.0, 4.0, outcome="retrying")
    book.run("c", 6.0, 4.0, attempt=2)
    verdict = book.verdict()
    assert verdict.findings == []
    assert not verdict.notes.duplicates


def test_a_lease_that_expired_without_a_fault_is_seen_though_nobody_ran() -> None:
    book = sound()
    book.add("c", 40.0)
    book.event("active", 41.0, "c", attempt=1, worker="w1")
    book.event("stalled", 44.2, "c", attempt=1, final=False)
    book.run("c", 45.0, 40.0, attempt=2)
    assert book.rules() == {"S3"}


# S5


def test_one_fence_for_two_runs_is_seen() -> None:
    book = sound()
    book.add("c", 4.0)
    start = book.run("c", 5.0, 4.0)
    book.start("c", 5.5, 4.0, fence=start["fence"], pid=101)
    assert "S5" in book.rules()


def test_a_fence_smaller_than_that_of_an_earlier_grant_is_seen() -> None:
    book = sound()
    book.add("c", 4.0, group="h")
    start = book.run("c", 5.0, 4.0, group="h")
    book.add("d", 5.2, group="i")
    book.run("d", 6.0, 5.2, group="i", fence=start["fence"] + 5_000_000_000, at=start["at"] - 300)
    assert "S5" in book.rules()


# S6


def test_a_stale_completion_that_was_accepted_is_seen() -> None:
    book = sound()
    book.add("c", 4.0)
    book.event("active", 5.0, "c", attempt=1)
    first = book.start("c", 5.0, 4.0)
    book.fault("freeze", 5.1, 9.0)
    book.event("stalled", 8.2, "c", attempt=1, final=False)
    book.event("active", 8.3, "c", attempt=2)
    second = book.start("c", 8.3, 4.0, attempt=2, pid=101)
    book.end(first, 9.1)
    book.event("completed", 9.2, "c", attempt=1, fence=first["fence"])
    book.end(second, 9.3)
    found = [str(finding) for finding in book.findings()]
    assert any(text.startswith("S6") and "was accepted 9.200 s into the run, after" in text for text in found)


def test_two_outcomes_of_one_run_are_seen() -> None:
    book = sound()
    start = next(line for line in book.lines if line["k"] == "start" and line["job"] == "b")
    book.event("completed", 3.5, "b", attempt=1, fence=start["fence"])
    assert {"S6", "S10"} <= book.rules()


def test_a_completion_that_no_handler_made_is_seen() -> None:
    book = sound()
    book.add("c", 4.0)
    book.event("completed", 5.0, "c", attempt=1, fence=12345)
    assert book.rules() == {"S6"}


def test_a_completion_of_a_handler_that_raised_is_seen() -> None:
    book = sound()
    book.add("c", 4.0)
    book.event("active", 5.0, "c", attempt=1)
    start = book.start("c", 5.0, 4.0)
    book.end(start, 5.1, "raised")
    book.event("completed", 5.2, "c", attempt=1, fence=start["fence"])
    assert book.rules() == {"S6"}


def test_a_run_that_lost_its_lease_without_a_notice_is_found() -> None:
    book = stalled(sound())
    book.fault("freeze", 5.5, 8.5)
    book.end(next(line for line in book.lines if line["k"] == "start" and line["job"] == "c"), 20.0)
    book.note("exit", 90.0, name="one", of=100, code=0)
    assert "S6" in book.rules()


def test_a_loser_whose_outcome_was_accepted_is_seen() -> None:
    book = sound()
    start = next(line for line in book.lines if line["k"] == "start" and line["job"] == "b")
    book.note("lost", 3.2, q="orders", job="b", fence=start["fence"])
    assert book.rules() == {"S6"}


def test_a_worker_that_was_silent_for_long_may_get_a_wrong_answer() -> None:
    book = sound()
    start = next(line for line in book.lines if line["k"] == "start" and line["job"] == "b")
    book.fault("freeze", 3.15, 71.0)
    book.note("lost", 71.2, q="orders", job="b", fence=start["fence"])
    verdict = book.verdict()
    assert verdict.findings == []
    assert verdict.notes.misinformed == 1


# S10


def test_an_attempt_that_is_left_out_is_seen() -> None:
    book = sound()
    book.add("c", 4.0)
    book.run("c", 5.0, 4.0, outcome="retrying")
    book.run("c", 6.0, 4.0, attempt=3)
    assert "S10" in book.rules()


def test_an_attempt_that_is_used_twice_is_seen() -> None:
    book = sound()
    book.add("c", 4.0)
    book.run("c", 5.0, 4.0, outcome="retrying")
    book.run("c", 6.0, 4.0, attempt=1)
    assert "S10" in book.rules()


def test_an_attempt_beyond_the_limit_is_seen() -> None:
    book = sound()
    book.add("c", 4.0, max_attempts=1)
    book.run("c", 5.0, 4.0, outcome="retrying", max=1)
    book.run("c", 6.0, 4.0, attempt=2, max=1)
    assert "S10" in book.rules()
