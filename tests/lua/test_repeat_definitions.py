"""Definitions of repeating jobs: updated and never doubled, listed, removed."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core import record
from groupmq.core.errors import ConfigurationError
from groupmq.core.schedule import Cron, Every
from tests.lua.engine import HOUR, SECOND, T0, Engine
from tests.lua.ticking import remove, repeating, ticks_run, watch

# Updates


def test_the_same_definition_again_keeps_the_grid_and_the_count(engine: Engine) -> None:
    engine.repeat(Every(5), data="old")
    watch(engine, 12 * SECOND)
    job = engine.repeat(Every(5), data="new", priority=9)
    assert job.order_ms == T0 + 15_000
    [found] = repeating(engine)
    assert (found.count, found.data) == (2, "new")
    engine.pass_time(3 * SECOND)
    engine.tick()
    stored = record.unpack(engine.take_one().record)
    assert (stored.data, stored.priority, stored.order_ms) == (b'"new"', 9, T0 + 15_000)


def test_immediately_does_not_run_again_when_the_definition_is_added_again(engine: Engine) -> None:
    """Every process of a service defines its repeats when it starts."""
    for _ in range(3):
        engine.repeat(Every(5, immediately=True))
        engine.pass_time(SECOND)
    assert ticks_run(engine) == [0]


def test_a_tick_that_is_due_is_not_lost_by_an_update(engine: Engine) -> None:
    engine.repeat(Every(5))
    engine.pass_time(5 * SECOND)
    engine.repeat(Every(5), data="new")
    engine.tick()
    assert ticks_run(engine) == [5000]


def test_another_timing_under_the_same_key_begins_a_new_grid(engine: Engine) -> None:
    engine.repeat(Every(60, key="k"))
    engine.pass_time(7 * SECOND)
    engine.repeat(Every(5, key="k"))
    assert len(repeating(engine)) == 1
    assert watch(engine, 10 * SECOND) == [12 * SECOND, 17 * SECOND]


@pytest.mark.parametrize("second", [Every(60, key="k", start=T0 / 1000 - 7200), Cron("* * * * *", key="k", start=1)])
def test_another_timing_with_the_same_start_ticks_when_it_says_not_when_the_old_one_would(
    engine: Engine, second: Any
) -> None:
    first = {"Every": Every(3600, key="k", start=T0 / 1000 - 7200), "Cron": Cron("0 0 1 1 *", key="k", start=1)}
    engine.repeat(first[type(second).__name__])
    job = engine.repeat(second)
    assert job.order_ms is not None
    assert job.order_ms <= T0 + 60 * SECOND


def test_an_update_can_lower_the_limit_but_not_below_what_ran(engine: Engine) -> None:
    engine.repeat(Every(5, limit=10))
    watch(engine, 10 * SECOND)
    with pytest.raises(ConfigurationError, match=r"^repeat: expected a repeat that still ticks"):
        engine.repeat(Every(5, limit=2))
    engine.repeat(Every(5, limit=3))
    assert watch(engine, 60 * SECOND) == [15_000]


def test_two_processes_that_define_at_once_make_one_repeat(engine: Engine) -> None:
    add, every = engine.operations._add_repeating, Every(5, immediately=True)
    both = [add(name, every, None, group_id="g") for name in ("one", "two")]
    calls = [steps.send(None) for steps in both]
    reads = [engine.call(engine.at_now(call)) for call in calls]
    defined = [steps.send(read) for steps, read in zip(both, reads, strict=True)]
    answers = [engine.call(engine.at_now(call)) for call in defined]
    assert answers == [True, False]
    again = both[1].send(False)
    define = both[1].send(engine.call(engine.at_now(again)))
    assert engine.call(engine.at_now(define)) is True
    assert [job.data for job in repeating(engine)] == ["two"]
    assert ticks_run(engine) == [0]


# Names


def test_repeats_are_distinguished_by_group_and_key(engine: Engine) -> None:
    for group in ("g", "h", None):
        engine.repeat(Every(5), group=group)
        engine.repeat(Every(5, key="k"), group=group)
        engine.repeat(Cron("0 9 * * *"), group=group)
        engine.repeat(Cron("0 9 * * *", tz="Europe/Stockholm"), group=group)
    assert len(repeating(engine)) == 12


def test_a_group_and_a_key_cannot_be_mistaken_for_another_pair(engine: Engine) -> None:
    engine.repeat(Every(5, key="b\0c"), group="a")
    engine.repeat(Every(5, key="c"), group="a\0b")
    assert len(repeating(engine)) == 2


@pytest.mark.parametrize("group", ["g", None])
def test_a_repeat_is_removed_by_what_it_is_or_by_its_key(engine: Engine, group: str | None) -> None:
    for schedule, name in (
        (Every(5), Every(5.0, limit=9)),
        (Every(5, key="k"), "k"),
        (Cron("0 9 * * *"), Cron("0  9 * * *")),
    ):
        engine.repeat(schedule, group=group)
        assert not remove(engine, "other", name)
        assert remove(engine, group, name)
        assert not remove(engine, group, name)
        assert repeating(engine) == []


def test_what_a_repeat_has_added_stays_when_it_is_removed(engine: Engine) -> None:
    engine.repeat(Every(5))
    engine.pass_time(5 * SECOND)
    engine.tick()
    remove(engine, "g", Every(5))
    assert ticks_run(engine) == [5000]
    assert watch(engine, 30 * SECOND) == []


def test_removed_and_added_again_it_begins_anew(engine: Engine) -> None:
    engine.repeat(Every(5))
    watch(engine, 7 * SECOND)
    remove(engine, "g", Every(5))
    engine.repeat(Every(5))
    assert repeating(engine)[0].count == 0
    assert watch(engine, 5 * SECOND) == [12 * SECOND]


def test_the_list_says_what_when_and_how_often(engine: Engine) -> None:
    engine.repeat(Cron("0 * * * *", limit=9, end=(T0 + 20 * HOUR) / 1000), group=None, data={"a": 1})
    engine.repeat(Every(5, key="soon"))
    watch(engine, 5 * SECOND)
    soon, later = repeating(engine)
    assert (soon.key, soon.group_id, soon.schedule, soon.count, soon.limit) == ("soon", "g", "every 5 s", 1, None)
    assert soon.last_run is not None
    assert (soon.last_run.timestamp(), soon.next_run.timestamp()) == (T0 / 1000 + 5, T0 / 1000 + 10)
    assert (later.key, later.group_id, later.schedule) == (later.schedule, None, "cron 0 * * * * (UTC)")
    assert (later.data, later.count, later.limit, later.last_run) == ({"a": 1}, 0, 9, None)
    assert later.end is not None
    assert later.end.timestamp() == T0 / 1000 + 20 * 3600
