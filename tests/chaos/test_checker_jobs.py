"""The checker finds planted violations: lost, invented, changed and duplicated jobs."""

from __future__ import annotations

from tests.chaos.book import Book, sound


def test_a_sound_history_breaks_nothing() -> None:
    assert sound().findings() == []


# S1


def test_an_acknowledged_job_that_the_log_does_not_know_is_lost() -> None:
    book = sound()
    book.add("c", 4.0, logged=False)
    (finding,) = book.findings()
    assert finding.rule == "S1"
    assert "'c' of group 'g' was acknowledged 4.010 s into the run" in finding.text


def test_a_job_that_never_ends_is_lost() -> None:
    book = sound()
    book.add("c", 4.0)
    assert book.rules() == {"S1"}


def test_a_job_removed_by_nobody_is_lost() -> None:
    book = sound()
    book.add("c", 4.0)
    book.event("removed", 5.0, "c")
    assert book.rules() == {"S1"}


def test_a_job_removed_by_an_operator_is_not_lost() -> None:
    book = sound()
    book.add("c", 4.0)
    book.event("removed", 5.0, "c")
    book.act("remove", 4.9, 5.1, job="c")
    assert book.findings() == []


def test_a_removal_that_was_meant_for_another_job_justifies_nothing() -> None:
    book = sound()
    book.add("c", 4.0)
    book.event("removed", 5.0, "c")
    book.act("remove", 4.9, 5.1, job="b")
    assert book.rules() == {"S1"}


def test_a_job_that_failed_before_its_attempts_were_used_up_is_lost() -> None:
    book = sound()
    book.add("c", 4.0)
    book.event("active", 5.0, "c", attempt=1)
    start = book.start("c", 5.0, 4.0)
    book.end(start, 5.1, "raised")
    book.event("failed", 5.2, "c", attempt=1, fence=start["fence"], reason="told to fail")
    assert book.rules() == {"S1"}


def test_a_job_that_gave_up_or_expired_or_was_failed_by_hand_is_not_lost() -> None:
    book = sound()
    book.add("c", 4.0)
    book.run("c", 5.0, 4.0, outcome="failed")
    book.add("d", 6.0, ttl=1.0)
    book.event("failed", 7.5, "d", attempt=0, reason="expired: not started within its ttl")
    book.add("e", 8.0)
    book.event("failed", 9.0, "e", attempt=0, reason="by the operator")
    book.act("fail", 8.9, 9.1, job="e")
    assert book.findings() == []


def test_an_expiry_without_a_ttl_is_a_loss() -> None:
    book = sound()
    book.add("d", 6.0)
    book.event("failed", 7.5, "d", attempt=0, reason="expired: not started within its ttl")
    assert book.rules() == {"S1"}


def test_an_add_without_an_answer_may_have_been_made_or_not() -> None:
    book = sound()
    item = {"uid": "uid-u", "do": "work", "digest": "d", "group_id": "g"}
    book.note("adding", 4.0, q="orders", op="x", items=[item])
    assert book.findings() == []
    book.event("added", 4.1, "u")
    book.run("u", 5.0, 4.1)
    assert book.findings() == []


def test_an_expired_job_whose_add_got_no_answer_may_have_had_a_ttl() -> None:
    book = sound()
    book.note("adding", 4.0, q="orders", op="x", items=[{"uid": "uid-u", "do": "work", "digest": "d", "ttl": 1.0}])
    book.event("added", 4.1, "generated", None)
    book.event("failed", 5.5, "generated", None, attempt=0, reason="expired: not started within its ttl")
    assert book.findings() == []


# S2


def test_a_run_that_nobody_added_is_a_phantom() -> None:
    book = sound()
    book.start("ghost", 4.0, 3.9)
    assert "S2" in book.rules()


def test_a_job_that_nobody_added_is_a_phantom() -> None:
    book = sound()
    book.event("added", 4.0, "ghost")
    book.event("removed", 4.1, "ghost")
    book.act("purge", 4.0, 4.2)
    assert book.rules() == {"S2"}


def test_changed_data_group_priority_and_order_are_seen() -> None:
    for more in ({"digest": "other"}, {"group": "h"}, {"priority": 3}, {"order": 5}):
        book = sound()
        book.add("c", 4.0, order_ms=4)
        book.run("c", 5.0, 4.0, **({"order": 4} | more))
        assert "S2" in book.rules(), more


def test_updated_data_are_right_and_data_from_before_an_acknowledged_update_are_not() -> None:
    book = sound()
    book.add("c", 4.0)
    book.act("update_data", 4.1, 4.2, job="c", uid="uid-c", digest="new")
    book.run("c", 5.0, 4.0, digest="new")
    assert book.findings() == []
    book = sound()
    book.add("c", 4.0)
    book.act("update_data", 4.1, 4.2, job="c", uid="uid-c", digest="new")
    book.run("c", 5.0, 4.0)
    assert book.rules() == {"S2"}


# S11


def test_an_id_added_again_while_it_is_there_is_seen() -> None:
    book = Book()
    book.add("a", 1.0)
    book.add("a", 1.5)
    book.run("a", 2.0, 1.5)
    assert {"S1", "S11"} <= book.rules()


def test_an_id_that_is_kept_cannot_be_added_again() -> None:
    book = sound()
    book.add("a", 4.0)
    book.run("a", 5.0, 4.0)
    assert book.rules() == {"S11"}


def test_an_id_is_free_again_when_its_job_was_cleaned() -> None:
    book = sound()
    book.add("c", 4.0)
    book.run("c", 5.0, 4.0, outcome="failed")
    book.act("clean", 6.0, 6.1, state="failed", answer=1)
    book.add("c", 7.0, uid="uid-c2")
    book.run("c", 8.0, 7.0, uid="uid-c2")
    assert book.findings() == []


def test_an_id_of_a_failed_job_that_is_kept_cannot_be_added_again() -> None:
    book = sound()
    book.add("c", 4.0)
    book.run("c", 5.0, 4.0, outcome="failed")
    book.add("c", 7.0, uid="uid-c2")
    book.run("c", 8.0, 7.0, uid="uid-c2")
    assert book.rules() == {"S11"}


def test_one_add_that_made_two_jobs_is_seen() -> None:
    book = sound()
    book.event("added", 4.0, "c")
    book.run("c", 5.0, 4.0, uid="uid-a")
    assert "S11" in book.rules()


def test_a_duplicate_that_ran_all_the_same_is_seen() -> None:
    book = sound()
    answer = book.add("c", 4.0)
    book.run("c", 5.0, 4.0)
    answer["jobs"][0]["dup"] = True
    assert "S11" in book.rules()


def test_one_job_acknowledged_to_two_adds_is_seen() -> None:
    book = sound()
    book.add("a", 1.0, logged=False)
    assert book.rules() == {"S11"}


def test_a_redriven_job_is_the_same_job() -> None:
    book = sound()
    book.add("c", 4.0)
    book.run("c", 5.0, 4.0, outcome="failed")
    book.act("retry", 5.9, 6.1, job="c")
    book.event("added", 6.0, "c")
    book.run("c", 7.0, 4.0)
    assert book.findings() == []
    assert book.verdict().counts["jobs"] == 3
