"""Operations on many groups and jobs take a number of calls in proportion to them, and each call is bounded."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from groupmq.client.queue.settling import remove_all
from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.engine import T0, Engine
from tests.support.by_hand import Steps, asked

MANY_GROUPS = 30_000


def fill(engine: Engine, jobs: int, groups: int, **fields: Any) -> None:
    for first in range(0, jobs, 1000):
        drafts = [
            draft(engine.options, None, group_id=f"g{i % groups}", job_id=f"j{i}", **fields)
            for i in range(first, min(first + 1000, jobs))
        ]
        engine.call(commands.add(drafts, T0))


def counted(engine: Engine, steps: Steps[Any], most: int, times: int = 1) -> Counter[str]:
    """Execute an operation, sending each call `times` times. Returns how often each script was called.

    Fails as soon as there are more than `most` calls.
    """
    calls: Counter[str] = Counter()
    try:
        call = steps.send(None)
        while True:
            calls[call.script] += 1
            assert calls.total() <= most, f"more than {most} calls: {calls}"
            answers = [engine.call(engine.at_now(call)) for _ in range(times)]
            call = steps.send(answers[-1])
    except StopIteration:
        return calls


@pytest.mark.parametrize("times", [1, 2])
def test_a_queue_of_many_groups_is_obliterated_in_as_many_calls_as_it_takes(engine: Engine, times: int) -> None:
    """This holds even if every call is sent twice because its reply was lost."""
    fill(engine, MANY_GROUPS, MANY_GROUPS)
    counted(engine, engine.operations.obliterate(), MANY_GROUPS // 200 + 10, times)
    assert engine.client.keys(f"*{engine.options.name}*") == []


def test_purging_many_groups_takes_calls_in_proportion_to_them(engine: Engine) -> None:
    calls = []
    for groups in (1000, 4000):
        fill(engine, groups, groups)
        found = counted(engine, engine.operations.purge(["waiting"]), 100_000)
        assert engine.counts()["waiting"] == 0
        calls.append(found.total())
    few, many = calls
    # Linear growth is 4 times as many calls, quadratic growth 16 times. The pages of a scanned hash differ in size.
    assert many <= 8 * few


def test_cancelling_a_deep_group_takes_calls_in_proportion_to_its_jobs(engine: Engine) -> None:
    fill(engine, 5000, 1)
    calls = counted(engine, engine.operations.cancel_group("g0"), 5000 // commands.CHUNK + 10)
    assert engine.counts()["waiting"] == 0
    assert calls["cancel"] <= 5000 // commands.CHUNK + 2


def test_a_wrong_count_of_delayed_jobs_is_mended_however_many_there_are(engine: Engine) -> None:
    fill(engine, 3000, 1000, delay=3600)
    right = engine.client.hget(engine.key("groups"), "g7")
    engine.client.hset(engine.key("groups"), "g7", right[:4] + (9).to_bytes(4, "big") + right[8:])
    engine.client.hdel(engine.key("groups"), "g8")
    report = engine.run_now(engine.operations.repair())
    assert {"g7", "g8"} <= set(report.mended["group with wrong counts"]) | set(
        report.mended["group that was not listed"]
    )
    assert engine.client.hget(engine.key("groups"), "g7") == right
    assert engine.call(commands.look_group("g8", T0))[3] == 3
    assert engine.run_now(engine.operations.repair()).mended == {}


def test_a_count_that_changes_while_it_is_checked_is_left_alone(engine: Engine) -> None:
    fill(engine, 200, 10, delay=3600)
    steps = engine.operations.repair()
    counts = 0
    try:
        call = steps.send(None)
        while True:
            answer = engine.call(engine.at_now(call))
            if b"delayed groups" in call.args and answer.cursor == "0":
                counts += 1
                engine.add(f"new-{counts}", group="g0", delay=3600)
            call = steps.send(answer)
    except StopIteration as stop:
        report = stop.value
    assert counts == 2
    assert report.mended == {}
    assert engine.call(commands.look_group("g0", T0))[3] == 22


def test_large_jobs_are_taken_as_far_as_they_have_room(engine: Engine) -> None:
    large = "x" * 400_000
    for i in range(12):
        engine.add(f"large{i}", data=large, group=f"g{i}")
    first = engine.advance(take=10)
    assert ([job.id for job in first.jobs], first.wait_ms) == (["large0", "large1"], 0)
    assert len(engine.run_all(10)) == 10


def test_jobs_as_large_as_the_room_are_taken_one_at_a_time(engine: Engine) -> None:
    for i in range(3):
        engine.add(f"large{i}", data="x" * 1_040_000, group=f"g{i}")
    assert [len(engine.take(10)) for _ in range(4)] == [1, 1, 1, 0]


def test_data_that_becomes_large_later_counts_as_well(engine: Engine) -> None:
    for i in range(12):
        engine.add(f"j{i}", group=f"g{i}")
        engine.update(f"j{i}", bytes(400_000))
    assert len(engine.take(10)) == 2


def test_views_of_large_jobs_come_in_several_calls(engine: Engine) -> None:
    for i in range(8):
        engine.add(f"large{i}", data="x" * 400_000, group=f"g{i}")
    ids = [f"large{i}" for i in range(8)] + ["unknown"]
    assert len(engine.call(commands.get(ids))) == 2
    jobs = engine.run(engine.operations.get_jobs_by_id(ids))
    assert [job and job.id for job in jobs] == [*ids[:8], None]


def test_the_series_of_two_weeks_is_read_in_pages(engine: Engine) -> None:
    engine.add("a")
    engine.complete(engine.take_one())
    calls = counted(engine, engine.operations.get_metrics(20_160), 30)
    assert calls["series"] > 5
    metrics = engine.run_now(engine.operations.get_metrics(20_160))
    assert len(metrics.series) == 20_160
    assert [minute.completed for minute in metrics.series[-2:]] == [0, 1]
    assert (metrics.series[-1].at - metrics.series[0].at).total_seconds() == 20_159 * 60


def test_large_jobs_are_removed_and_cancelled_some_at_a_time(engine: Engine) -> None:
    """Each of them is read: hundreds of large ones in a call would keep the server busy for a long time."""
    ids = [f"j{i}" for i in range(12)]
    for job_id in ids:
        engine.add(job_id, data="x" * 400_000)
    statuses = engine.remove(*ids[:6])
    assert 0 < statuses.count(1) < 6
    assert statuses == sorted(statuses), "the jobs that did not fit into the call come last"
    assert engine.run(remove_all(asked, ids[:6])) == 6 - statuses.count(1)
    assert len(engine.call(commands.cancel(ids[6:], engine.now)).found) < 6
    assert engine.run_now(engine.operations.cancel_group("g")) > 0
    assert engine.counts()["waiting"] == 0
