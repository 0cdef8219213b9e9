"""The checker finds planted violations: keys, retention, repairs, liveness, incomplete histories."""

from __future__ import annotations

from tests.chaos.book import EPOCH, Book, sound

KEPT = {"orders": {"completed": 400, "failed": 0, "jobs": 1}}


def test_a_sound_look_at_the_keys_breaks_nothing() -> None:
    book = sound()
    book.note("sample", 4.0, at=EPOCH + 4000, wrong=[], kept=KEPT)
    book.note("left", 110.0, q="orders", live=[], counts={"waiting": 0}, listed={"waiting": 0}, total=0)
    book.note("repaired", 110.0, q="orders", mended=[])
    book.note("foreign", 110.0, keys=[], canaries=[])
    book.note("emptied", 110.0, keys=[])
    assert book.findings() == []


def test_one_kept_job_too_many_is_seen() -> None:
    book = sound()
    book.note("sample", 4.0, at=EPOCH + 4000, wrong=[], kept={"orders": {"completed": 401, "failed": 0, "jobs": 1}})
    assert book.rules() == {"S14"}


def test_keys_that_disagree_are_seen() -> None:
    book = sound()
    wrong = ["orders: job 'a' is in no place, not in exactly one", "orders: group 'g' is both ready and parked"]
    book.note("sample", 4.0, at=EPOCH + 4000, wrong=wrong, kept=KEPT)
    assert book.rules() == {"S15", "S16"}


def test_counts_that_differ_from_lists_are_seen() -> None:
    book = sound()
    book.note("left", 110.0, q="orders", live=[], counts={"failed": 3}, listed={"failed": 2}, total=0)
    assert book.rules() == {"S15"}


def test_a_repair_that_found_something_is_seen() -> None:
    book = sound()
    book.act("repair", 4.0, 4.1, answer=["stray member: ['a']"])
    assert book.rules() == {"S15"}
    book = sound()
    book.note("repaired", 110.0, q="orders", mended=["stray member: ['a']"])
    assert book.rules() == {"S15"}


def test_leaked_and_foreign_keys_are_seen() -> None:
    book = sound()
    book.note("emptied", 110.0, keys=["groupmq:{orders}:g:x"])
    book.note("foreign", 110.0, keys=["stranger"], canaries=["canary"])
    assert [finding.rule for finding in book.findings()] == ["S18", "S18", "S17"]


def dead(book: Book, taken_back: float) -> Book:
    book.add("c", 4.0)
    book.event("active", 5.0, "c", attempt=1, worker="w1")
    book.start("c", 5.0, 4.0)
    book.fault("kill", 5.5)
    book.note("ready", 0.2, q="orders", worker="w2", name="w2", pid=101, actor="two")
    book.event("stalled", taken_back, "c", attempt=1, final=False)
    book.run("c", taken_back + 0.1, 4.0, attempt=2, pid=101, actor="two", worker="w2")
    return book


def test_a_job_that_is_taken_back_in_time_is_measured() -> None:
    verdict = dead(sound(), 8.1).verdict()
    assert verdict.findings == []
    assert [round(seconds, 1) for seconds in verdict.notes.recoveries] == [2.6]


def test_a_job_that_is_taken_back_late_is_seen() -> None:
    assert dead(sound(), 30.0).rules() == {"L1"}


def test_a_job_that_nobody_could_take_back_is_not_late() -> None:
    book = dead(sound(), 30.0)
    book.fault("freeze", 6.0, 29.0, of=101, target="two")
    assert book.findings() == []


def ended_by_operator(at: float) -> Book:
    """The worker of job c dies at 5.5; the operator's `fail` at `at` is the last event of the job."""
    book = sound()
    book.add("c", 4.0)
    book.event("active", 5.0, "c", attempt=1, worker="w1")
    book.start("c", 5.0, 4.0)
    book.act("fail", at - 0.01, at + 0.01, job="c")
    book.event("failed", at, "c", attempt=1, reason="by the operator")
    book.fault("kill", 5.5)
    book.note("ready", 0.2, q="orders", worker="w2", name="w2", pid=101, actor="two")
    return book


def test_a_job_that_an_operator_ended_before_its_worker_died_needs_no_taking_back() -> None:
    verdict = ended_by_operator(5.2).verdict()
    assert (verdict.findings, verdict.notes.recoveries) == ([], [])


def test_a_job_whose_end_came_long_after_its_worker_died_is_late() -> None:
    assert ended_by_operator(30.0).rules() == {"L1"}


def test_a_drain_that_does_not_end_is_seen() -> None:
    book = sound()
    drained = next(line for line in book.lines if line["k"] == "drained")
    drained["answer"] = False
    book.note("left", 110.0, q="orders", live=["c waiting"], counts={}, listed={}, total=1)
    assert [finding.rule for finding in book.findings()] == ["L2", "L2"]


def test_a_worker_that_never_works_again_is_seen() -> None:
    for starts, rules in (((), {"L3"}), ((12.0, 13.0), set[str]())):
        book = sound()
        book.fault("restart", 10.0, 11.0, target="server", of=None)
        for t in starts:
            book.add(f"j{t}", t - 0.1)
            book.run(f"j{t}", t, t - 0.1)
        assert book.rules() == rules


def test_a_close_that_takes_too_long_is_seen() -> None:
    for took, rules in ((2.9, set[str]()), (3.1, {"L5"})):
        book = sound()
        book.note("closed", 50.0, took=took, within=1.5)
        assert book.rules() == rules, took
    book = sound()
    book.note("all left", 103.0, late=["few"])
    assert book.rules() == {"L5"}


def test_a_history_with_a_gap_proves_nothing() -> None:
    book = sound()
    book.note("event", 4.0, q="orders", n=1000, kind="gap", at=EPOCH + 4000)
    assert book.rules() == {"H"}


def test_a_history_without_its_end_proves_nothing() -> None:
    book = sound()
    book.without(next(line for line in book.lines if line["k"] == "heard all"))
    assert book.rules() == {"H"}


def test_a_process_that_ends_on_its_own_is_seen() -> None:
    book = sound()
    book.note("exit", 50.0, name="few", of=555, code=1)
    assert book.rules() == {"H"}
