"""Finished jobs: each call keeps the newest by number, `clean` removes them by age, and nothing of them remains."""

from __future__ import annotations

from itertools import pairwise

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine


def finished(engine: Engine, kind: str) -> list[str]:
    return engine.call(commands.list_jobs(kind, 0, 1000, newest=True))


def finish(engine: Engine, kind: str, *job_ids: str) -> None:
    engine.add(*job_ids, group=None)
    outcomes = [
        commands.completed(t.id, t.fence, b"1") if kind == "completed" else commands.failed(t.id, t.fence, "x", "")
        for t in engine.take(len(job_ids))
    ]
    engine.advance(*outcomes)


@pytest.mark.parametrize("kind", ["completed", "failed"])
def test_the_newest_are_kept_and_the_bound_holds_at_every_moment(make_engine: MakeEngine, kind: str) -> None:
    engine = make_engine(kept=3)
    for i in range(10):
        finish(engine, kind, f"j{i}")
        assert engine.counts()[kind] == min(i + 1, 3)
    assert finished(engine, kind) == ["j9", "j8", "j7"]
    assert engine.state("j6") is None


@pytest.mark.parametrize("kind", ["completed", "failed"])
@pytest.mark.parametrize("kept", [0, 1, 4, 5, 6])
def test_a_batch_larger_than_the_bound_keeps_its_newest(make_engine: MakeEngine, kind: str, kept: int) -> None:
    engine = make_engine(kept=kept)
    finish(engine, kind, "old1", "old2")
    finish(engine, kind, *(f"j{i}" for i in range(5)))
    expected = ["j4", "j3", "j2", "j1", "j0", "old2", "old1"][:kept]
    assert finished(engine, kind) == expected
    found = engine.look()
    assert set(found.jobs) == set(found.state) == set(expected)
    assert set(found.results) == (set(expected) if kind == "completed" else set())


@pytest.mark.parametrize("kind", ["completed", "failed"])
def test_kept_none_leaves_nothing_of_a_job(make_engine: MakeEngine, kind: str) -> None:
    engine = make_engine(kept=0)
    engine.add("a", "b")
    engine.retry_run(engine.take_one(), 0)
    for _ in range(2):
        taken = engine.take_one()
        if kind == "completed":
            engine.complete(taken, result=b"1")
        else:
            engine.fail_run(taken)
    found = engine.look()
    assert not any((found.jobs, found.state, found.results, found.completed, found.failed, found.groups))
    assert engine.counter("completed" if kind == "completed" else "failed") == 2


@pytest.mark.parametrize("kind", ["completed", "failed"])
def test_without_a_bound_all_are_kept(engine: Engine, kind: str) -> None:
    engine.policy = Policy(3, -1, {"completed": -1, "failed": -1})
    finish(engine, kind, *(f"j{i}" for i in range(150)))
    assert engine.counts()[kind] == 150


def test_a_bound_that_was_lowered_is_reached_in_bounded_steps(engine: Engine) -> None:
    engine.policy = Policy(3, -1, {"completed": -1, "failed": -1})
    for at in range(0, 2500, 500):
        finish(engine, "completed", *(f"j{i}" for i in range(at, at + 500)))
    engine.policy = Policy(3, -1, {"completed": 10, "failed": 10})
    sizes = []
    for i in range(50):
        finish(engine, "completed", f"last{i}")
        sizes.append(engine.counts()["completed"])
    assert sizes[-1] == 10
    assert all(size >= 10 for size in sizes)
    assert max(before - after for before, after in pairwise(sizes)) <= 60
    assert finished(engine, "completed")[:2] == ["last49", "last48"]


@pytest.mark.parametrize("kind", ["completed", "failed"])
def test_a_process_that_keeps_nothing_forgets_its_own_jobs_and_nothing_that_others_keep(
    engine: Engine, kind: str
) -> None:
    finish(engine, kind, "kept1", "kept2")
    engine.policy = Policy(3, -1, {"completed": 0, "failed": 0})
    finish(engine, kind, "forgotten")
    assert finished(engine, kind) == ["kept2", "kept1"]
    assert engine.state("forgotten") is None
    assert set(engine.look().jobs) == {"kept1", "kept2"}


@pytest.mark.parametrize("how", ["stalled", "by hand"])
def test_jobs_that_fail_otherwise_are_bound_too(make_engine: MakeEngine, how: str) -> None:
    engine = make_engine(kept=2)
    for i in range(5):
        engine.add(f"j{i}", max_attempts=1)
        if how == "stalled":
            engine.take_one()
            engine.stall()
        else:
            engine.fail(f"j{i}")
    assert finished(engine, "failed") == ["j4", "j3"]


@pytest.mark.parametrize("kind", ["completed", "failed"])
def test_the_old_are_forgotten_by_age(engine: Engine, kind: str) -> None:
    for i in range(5):
        engine.now = T0 + i * SECOND
        finish(engine, kind, f"j{i}")
    assert engine.call(commands.clean(kind, 3 * SECOND, 100, engine.now)) == 2
    assert finished(engine, kind) == ["j4", "j3", "j2"]


@pytest.mark.parametrize("kind", ["completed", "failed"])
def test_no_age_is_any_age_even_of_this_very_moment(engine: Engine, kind: str) -> None:
    finish(engine, kind, *(f"j{i}" for i in range(20)))
    assert engine.call(commands.clean(kind, 0, 100, engine.now)) == 20
    assert engine.counts()[kind] == 0


def test_cleaning_takes_the_oldest_first_and_no_more_than_it_may(engine: Engine) -> None:
    finish(engine, "completed", *(f"j{i}" for i in range(10)))
    engine.pass_time(SECOND)
    assert engine.call(commands.clean("completed", 0, 4, engine.now)) == 4
    assert finished(engine, "completed") == [f"j{i}" for i in (9, 8, 7, 6, 5, 4)]


def test_the_log_of_failures_is_bounded(engine: Engine) -> None:
    engine.add("a", max_attempts=2000)
    for at in range(1100):
        engine.retry_run(engine.take_one(), 0, reason=str(at))
    failures = engine.call(commands.stats(5000)).failures
    assert len(failures) == 1000
    assert [entry[2] for entry in failures[:2]] == ["1099", "1098"]


def test_a_finished_jobs_id_is_free_after_it_was_trimmed(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=1)
    finish(engine, "failed", "a")
    finish(engine, "failed", "b")
    assert engine.add("a").duplicates == []
    assert engine.run_all() == ["a"]
