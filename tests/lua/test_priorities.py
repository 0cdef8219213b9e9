"""Priorities are exact at any time: all jobs of priority 0 before any of 1, and each priority in order of arrival.

The usual score of a single sorted set, `priority * 1e12 + milliseconds`, is not exact: the clock has outgrown 1e12.
"""

from __future__ import annotations

import random

import pytest

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine

YEAR_2100 = 4_102_444_800_000
SHARED = ["exclusive", "shared"]


def make(make_engine: MakeEngine, kind: str) -> Engine:
    return make_engine(exclusive=kind == "exclusive")


def add_all(engine: Engine, jobs: list[tuple[int, int]], group: str | None = None) -> None:
    """Add jobs, each given as (priority, arrival), in one millisecond."""
    drafts = [draft(engine.options, None, group_id=group, job_id=f"{p}-{i}", priority=p) for p, i in jobs]
    for at in range(0, len(drafts), commands.CHUNK):
        engine.call(commands.add(drafts[at : at + commands.CHUNK], engine.now))


def names(jobs: list[tuple[int, int]]) -> list[str]:
    return [f"{p}-{i}" for p, i in jobs]


@pytest.mark.parametrize(
    "jobs",
    [
        [(0, 9, T0), (0, 10, T0)],  # one millisecond: the member decides, and "0-10" is before "0-9"
        [(1, 0, T0), (0, 1, YEAR_2100)],  # the clock has grown by more than one level of priority
        [(0, 0, T0), (0, 1, T0 - SECOND)],  # the clock stepped back
    ],
)
def test_the_classic_score_is_wrong_where_ours_is_right(engine: Engine, jobs: list[tuple[int, int, int]]) -> None:
    scores = {f"{p}-{i}": p * 1e12 + at for p, i, at in jobs}
    classic = [name for name, _ in sorted(scores.items(), key=lambda one: (one[1], one[0]))]
    right = names(sorted((p, i) for p, i, _ in jobs))
    assert classic != right
    for p, i, at in jobs:
        engine.now = at
        add_all(engine, [(p, i)])
    assert engine.run_all() == right


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("group", [None, "g"])
def test_twelve_thousand_adds_in_one_millisecond_start_by_priority_then_arrival(
    make_engine: MakeEngine, kind: str, group: str | None
) -> None:
    engine = make(make_engine, kind)
    source = random.Random(5)
    jobs = [(source.choice([0, 1, 2, 1022, 1023]), i) for i in range(12_000)]
    add_all(engine, jobs, group)
    if group:
        engine.limit(group, 1000)
    started: list[str] = []
    while answer := engine.advance(take=1000, turn_size=1000, epoch=0).jobs:
        started += [job.id for job in answer]
        engine.complete(*answer)
    assert started == names(sorted(jobs))


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("start", [0, 1, 10**12 - 1, 10**12, T0, YEAR_2100])
def test_priorities_are_exact_for_any_clock(make_engine: MakeEngine, kind: str, start: int) -> None:
    engine = make(make_engine, kind)
    jobs = []
    for i in range(60):
        engine.now = start + i * 37
        jobs.append(((i * 7) % 5, i))
        add_all(engine, jobs[-1:])
    assert engine.run_all() == names(sorted(jobs))


@pytest.mark.parametrize("kind", SHARED)
def test_an_urgent_job_of_a_later_century_still_goes_before_a_lazy_one_of_now(
    make_engine: MakeEngine, kind: str
) -> None:
    engine = make(make_engine, kind)
    add_all(engine, [(1, 0)])
    engine.now = YEAR_2100
    add_all(engine, [(0, 1)])
    assert engine.run_all() == ["0-1", "1-0"]


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("group", [None, "g"])
def test_a_clock_that_steps_back_moves_nobody(make_engine: MakeEngine, kind: str, group: str | None) -> None:
    engine = make(make_engine, kind)
    jobs = []
    for i, step in enumerate((0, -1, SECOND, -(10**9), 5, -T0, 10**12, 0)):
        engine.now = max(0, T0 + step)
        jobs += [(0, 2 * i), (1, 2 * i + 1)]
        add_all(engine, jobs[-2:], group)
    assert engine.run_all() == names(sorted(jobs))


def test_across_groups_the_most_urgent_head_goes_first_then_the_first_to_arrive(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    source = random.Random(6)
    jobs = [(source.randrange(4), i) for i in range(200)]
    for job in jobs:
        add_all(engine, [job], f"group-{job[1]}")
    assert engine.run_all() == names(sorted(jobs))
