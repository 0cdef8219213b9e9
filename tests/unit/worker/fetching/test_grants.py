"""Which granted jobs may start: each once, and none that was taken back while the event loop was blocked."""

from __future__ import annotations

from groupmq.protocol.commands import FRESH, Advanced, Granted, Taken
from groupmq.worker.fetching.grants import Grants


def job(fence: int) -> Taken:
    return Taken(f"job-{fence}", fence, FRESH, b"")


def answer(*fences: int, rows: tuple[int, ...] = ()) -> Advanced:
    return Advanced(0, 0, [], [], [], [job(fence) for fence in fences], rows=rows, again=True)


def test_a_job_that_came_as_a_grant_is_left_out_of_the_answer_that_repeats_it() -> None:
    grants = Grants()
    assert grants.takes(5)
    assert grants.received == 5
    assert grants.new_rows(answer(5)) == ([], [])


def test_a_grant_that_comes_after_the_answer_that_repeats_it_is_dropped() -> None:
    grants = Grants()
    assert grants.new_rows(answer(5)) == ([job(5)], [1])
    assert not grants.takes(5)
    assert grants.received == 0, "the server has forgotten it, and could take it for a later grant"


def test_jobs_of_an_answer_stay_in_their_rows() -> None:
    grants = Grants()
    grants.takes(2)
    assert grants.new_rows(answer(1, 2, 3, 4, rows=(3, 1))) == ([job(1), job(3), job(4)], [2, 1])


def test_nothing_starts_from_the_moment_at_which_the_heartbeat_refuses_grants() -> None:
    grants = Grants()
    grants.takes(5)
    assert grants.refuse(blocked=False) is None
    assert grants.refuse(blocked=True) == 5
    assert not grants.takes(6)
    assert grants.refuse(blocked=False) == 5, "grants must be refused until the server has answered"
    grants.refused(7)
    assert grants.refuse(blocked=False) is None
    assert not grants.takes(6), "the server has taken this job back"
    assert not grants.takes(7)
    assert grants.takes(8)


def test_an_answer_brings_a_job_also_while_grants_are_refused() -> None:
    """The server repeats a grant only if it has not taken the job back."""
    grants = Grants()
    grants.refuse(blocked=True)
    assert grants.new_rows(answer(6)) == ([job(6)], [1])


def test_the_end_of_a_lease_is_counted_from_a_call_that_was_sent_before_it_was_granted() -> None:
    grants = Grants()
    grants.set_clock(100.0, 1_000_000)  # the server executed the call at some time after 100.0
    granted = Granted(1_002_500, 30_000, job(1))
    assert grants.lease_end(granted) == 100.0 + 2.5 + 30.0 - 0.001
