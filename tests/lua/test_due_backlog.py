"""More delayed jobs are due than one call promotes: no job of a group starts before all its due jobs have joined it."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.engine import SECOND, T0, Engine

JOBS, GROUPS = 3000, 300
ORDERS: dict[str, Any] = {
    "priority": lambda i: {"priority": (JOBS - i) % 1000},
    "order_ms": lambda i: {"order_ms": JOBS - i},
}


def fill(engine: Engine, order: str) -> None:
    """Add jobs that become due one after the other, and must start in another order within their groups."""
    drafts = [
        draft(engine.options, None, group_id=f"g{i % GROUPS}", job_id=f"{i:04}", delay=1 + i / 1000, **ORDERS[order](i))
        for i in range(JOBS)
    ]
    for at in range(0, JOBS, 500):
        engine.call(commands.add(drafts[at : at + 500], T0))
    engine.pass_time(10 * SECOND)


def wrong_groups(started: list[str], order: str) -> list[str]:
    """Groups whose jobs did not start in the expected order."""
    wrong = []
    for group in range(GROUPS):
        mine = [int(job_id) for job_id in started if int(job_id) % GROUPS == group]
        right = sorted(mine, key=lambda i: (*ORDERS[order](i).values(), i))
        if mine != right:
            wrong.append(f"g{group}")
    return wrong


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("take", [1, 10, 100])
def test_groups_start_in_their_order_though_one_call_cannot_let_all_join(engine: Engine, order: str, take: int) -> None:
    fill(engine, order)
    started: list[str] = []
    outcomes: list[commands.Outcome] = []
    for _ in range(5 * JOBS):
        answer = engine.advance(*outcomes, take=take)
        started += [job.id for job in answer.jobs]
        outcomes = [commands.completed(job.id, job.fence, None) for job in answer.jobs]
        if not outcomes and answer.wait_ms != 0:
            break
    assert len(started) == JOBS
    assert wrong_groups(started, order) == []


@pytest.mark.parametrize("order", ORDERS)
def test_rows_are_taken_only_when_all_that_is_due_has_joined(engine: Engine, order: str) -> None:
    fill(engine, order)
    started: list[str] = []
    outcomes: list[commands.Outcome] = []
    while len(started) < JOBS:
        answer = engine.advance(*outcomes, take=20, row=5)
        started += [job.id for job in answer.jobs]
        outcomes = [commands.completed(job.id, job.fence, None) for job in answer.jobs]
        assert answer.jobs or answer.wait_ms == 0
    assert wrong_groups(started, order) == []


def test_a_group_without_delayed_jobs_does_not_wait_for_those_of_others(engine: Engine) -> None:
    engine.add("urgent", group="other")
    fill(engine, "priority")
    assert engine.take_one().id == "urgent"


def test_a_job_without_a_group_waits_for_nobody(engine: Engine) -> None:
    fill(engine, "priority")
    engine.add("alone", group=None, priority=0)
    engine.add("later", group=None, delay=1)
    taken: list[str] = []
    for _ in range(3):
        taken += [job.id for job in engine.take(100)]
    assert "alone" in taken


def test_a_job_that_waits_already_does_not_start_before_one_that_is_due_and_comes_first(engine: Engine) -> None:
    engine.add("waits", group="g0", order_ms=20)
    drafts = [draft(engine.options, None, group_id=f"h{i}", job_id=f"h{i}", delay=1) for i in range(1000)]
    engine.call(commands.add(drafts, T0))
    engine.add("comes first", group="g0", order_ms=10, delay=2)
    engine.pass_time(3 * SECOND)
    started: list[str] = []
    while len(started) < 1001:
        answer = engine.advance(take=50)
        started += [job.id for job in answer.jobs]
        assert answer.jobs or answer.wait_ms == 0
    assert "comes first" in started
    assert "waits" not in started


def test_a_scheduler_that_lets_jobs_join_leaves_nothing_out_of_order(engine: Engine) -> None:
    fill(engine, "priority")
    engine.due(promote=True, unpark=False, expire=False)
    assert [job.id for job in engine.take(10)] == []
    while engine.due().wait_ms == 0:
        pass
    assert wrong_groups(engine.run_all(20), "priority") == []


def test_the_wait_ends_with_the_last_job_that_is_due(engine: Engine) -> None:
    """A job that is not due yet keeps its group waiting only while others are due."""
    engine.add("far away", group="g0", delay=3600)
    fill(engine, "priority")
    while engine.due().wait_ms == 0:
        pass
    assert {int(job.id) % GROUPS for job in engine.take(GROUPS)} == set(range(GROUPS))
