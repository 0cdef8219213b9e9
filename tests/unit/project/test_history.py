"""The history checker finds each broken promise, and a sound history with kills passes."""

from __future__ import annotations

import pytest

from tests.support.history import History, Line


def run(
    job: str,
    fence: int,
    start: float,
    end: float | None = None,
    *,
    group: str | None = "g",
    pid: int = 1,
    attempt: int = 1,
    told: str = "completed",
) -> list[Line]:
    """The lines of one run; without an end it was cut short."""
    about = {"job": job, "group": group, "fence": fence, "pid": pid, "attempt": attempt}
    lines: list[Line] = [{"kind": "start", "t": start, **about}]
    if end is not None:
        how = "returned" if told in ("completed", "lease-lost") else "raised"
        lines.append({"kind": "end", "t": end, "how": how, **about})
        if told:
            lines.append({"kind": told, "t": end, **about})
    return lines


def kill(pid: int, t: float) -> Line:
    return {"kind": "kill", "pid": pid, "t": t}


def broken(history: History, *added: str) -> str:
    with pytest.raises(AssertionError, match="broken promises") as caught:
        history.check(added)
    return str(caught.value)


def test_an_honest_history_with_a_kill_a_retry_and_a_lost_lease_passes() -> None:
    lines = [
        *run("a", 1, 0.0, pid=1),
        kill(1, 0.5),
        *run("a", 2, 1.0, 1.1, pid=2, attempt=2),
        *run("b", 3, 1.2, 1.3, pid=2, told="retrying"),
        *run("b", 4, 1.4, 1.5, pid=2, attempt=2),
        *run("c", 5, 1.6, 9.0, pid=2, told="lease-lost"),
        *run("c", 6, 3.0, 3.1, pid=3, attempt=2),
        *run("alone", 7, 1.0, 1.4, group=None),
    ]
    history = History.of(lines)
    history.check(["a", "b", "c", "alone"])
    assert history.gaps() == []


def test_a_job_that_never_ended_is_lost() -> None:
    assert "b was added and never ran" in broken(History.of(run("a", 1, 0.0, 0.1)), "a", "b")
    assert "a was added and never ran" in broken(History.of(run("a", 1, 0.0)), "a")


def test_a_job_that_nobody_added_is_unexpected() -> None:
    history = History.of(run("a", 1, 0.0, 0.1))
    assert "never added" in broken(history)
    history.check([], maybe=["a"])


@pytest.mark.parametrize("killed", [False, True])
def test_a_second_run_after_a_recorded_completion_is_a_duplicate_even_if_its_worker_died(killed: bool) -> None:
    lines = [*run("a", 1, 0.0, 0.1), *run("a", 2, 1.0, 1.1, pid=2)]
    if killed:
        lines.append(kill(1, 0.5))
    assert "runs again" in broken(History.of(lines), "a")


def test_a_second_run_that_no_death_and_no_lost_lease_explains_is_a_duplicate() -> None:
    lines = [*run("a", 1, 0.0, 0.1, told=""), *run("a", 2, 1.0, 1.1)]
    assert "runs again" in broken(History.of(lines), "a")


def test_a_later_job_that_was_granted_first_is_an_inversion_whatever_the_clock_says() -> None:
    lines = [*run("b", 1, 2.0, 2.1), *run("a", 2, 0.0, 0.1)]
    assert "was granted after" in broken(History.of(lines), "a", "b")
    other_group = [*run("b", 1, 0.0, 0.1, group="h"), *run("a", 2, 1.0, 1.1)]
    History.of(other_group).check(["a", "b"])


def test_runs_of_a_group_that_were_under_way_at_once_overlap() -> None:
    lines = [*run("a", 1, 0.0, 1.0), *run("b", 2, 0.5, 0.6, pid=2)]
    assert "started while" in broken(History.of(lines), "a", "b")
    History.of(lines).check(["a", "b"], limit=2)
    ungrouped = [*run("a", 1, 0.0, 1.0, group=None), *run("b", 2, 0.5, 0.6, group=None)]
    History.of(ungrouped).check(["a", "b"])


def test_a_killed_run_ends_with_its_process() -> None:
    lines = [*run("a", 1, 0.0, pid=1), kill(1, 0.5), *run("a", 2, 0.4, 0.7, pid=2)]
    assert "started while" in broken(History.of(lines), "a")


def test_attempts_without_their_predecessor_are_gaps() -> None:
    assert History.of(run("a", 1, 0.0, 0.1, attempt=2)).gaps()
    assert not History.of([*run("a", 1, 0.0, 0.1, told=""), *run("a", 2, 1.0, 1.1)]).gaps()
