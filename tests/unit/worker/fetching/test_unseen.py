"""Answers that a blocked event loop has not seen: the jobs of each are either started or given back, never both."""

from __future__ import annotations

from groupmq.worker.fetching.unseen import UnseenAnswers, UnseenCall


def test_jobs_of_an_answer_start_if_no_beat_has_named_the_call() -> None:
    unseen = UnseenAnswers()
    unseen.sent("w:0", 1)
    assert unseen.any()
    assert unseen.seen("w:0") == "start"
    assert not unseen.any()
    assert unseen.ask() is None


def test_jobs_that_the_server_has_taken_back_are_dropped() -> None:
    unseen = UnseenAnswers()
    unseen.sent("w:0", 7)
    assert unseen.ask() == UnseenCall("w:0", 7)
    unseen.answered(UnseenCall("w:0", 7), carried_out=True)
    assert unseen.seen("w:0") == "drop"


def test_jobs_are_given_back_while_it_is_not_known_whether_the_server_has_taken_them_back() -> None:
    unseen = UnseenAnswers()
    unseen.sent("w:0", 7)
    assert unseen.ask() is not None
    assert unseen.seen("w:0") == "give back"


def test_jobs_start_if_the_call_was_carried_out_after_the_beat_that_named_it() -> None:
    unseen = UnseenAnswers()
    unseen.sent("w:0", 7)
    assert unseen.ask() is not None
    unseen.answered(UnseenCall("w:0", 7), carried_out=False)
    assert unseen.seen("w:0") == "start"


def test_each_requester_is_named_until_its_jobs_are_back() -> None:
    unseen = UnseenAnswers()
    unseen.sent("w:0", 1)
    unseen.sent("w:1", 1)
    first = unseen.ask()
    assert first == unseen.ask()  # the heartbeat may have been lost
    assert first is not None
    unseen.answered(first, carried_out=True)
    second = unseen.ask()
    assert second is not None
    assert second != first
    unseen.answered(second, carried_out=True)
    assert unseen.ask() is None


def test_what_was_decided_about_a_call_does_not_hold_for_the_next_of_its_requester() -> None:
    unseen = UnseenAnswers()
    unseen.sent("w:0", 1)
    named = unseen.ask()
    assert named is not None
    assert unseen.seen("w:0") == "give back"
    unseen.sent("w:0", 2)
    unseen.answered(named, carried_out=True)
    assert unseen.seen("w:0") == "start"
