"""Functions of queues with partitions: entries that tell where a job is, and partitions that are made of others."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core.queue_options import QueueOptions
from groupmq.core.settings import StoredQueue
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import Engine
from tests.support.meta import decode


def test_an_entry_that_was_written_again_stays(engine: Engine) -> None:
    key = engine.keys.elsewhere
    engine.client.hset(key, mapping={"gone": "5 1", "back": "5 2", "other": "6 1"})
    assert engine.call(commands.strike(["gone", "back", "never"], ["5 1", "5 1", "5 1"])) == 1
    assert engine.client.hgetall(key) == {b"back": b"5 2", b"other": b"6 1"}


def of_queue(revision: str, **options: Any) -> StoredQueue:
    made = QueueOptions("q", **options)
    return StoredQueue(commands.PARTITIONED, made.shared, made.handling, revision.encode())


def look(engine: Engine) -> StoredQueue:
    return engine.call(commands.look_at_queue())


def test_a_new_partition_has_a_revision_that_nobody_knows(engine: Engine) -> None:
    """So all calls to it are refused until its creator has asked the queue whether it still has this partition."""
    look(engine)
    engine.client.flushall()
    queue = of_queue("5", group_concurrency=2)
    made = engine.call(commands.open_partition("q", queue))
    assert made == look(engine) == StoredQueue(commands.SCHEMA, queue.config, queue.handling, b"0")
    assert engine.call(commands.open_partition("q", of_queue("6"))) == made
    confirmed = engine.call(commands.open_partition("q", queue, made))
    assert confirmed == look(engine) == queue._replace(schema=commands.SCHEMA)
    engine.add("a", "b", "c")
    assert len(engine.take(3)) == 2


@pytest.mark.parametrize("options", [{"max_attempts": 9}, {"group_concurrency": 3}], ids=["handling", "config"])
def test_a_partition_gets_the_settings_of_its_queue_if_it_is_as_it_was_read(
    engine: Engine, options: dict[str, Any]
) -> None:
    read, queue = look(engine), of_queue("7", **options)
    updated = engine.call(commands.open_partition("q", queue, read))
    assert updated == look(engine) == queue._replace(schema=commands.SCHEMA)
    # Other processes read the partition before that, and come late with older or newer settings.
    for revision in ("6", "8"):
        assert engine.call(commands.open_partition("q", of_queue(revision), read)) == updated
        assert look(engine) == updated
    # The queue lost its last change in a failover: its settings count, even if their revision is smaller.
    back = of_queue("3")
    assert engine.call(commands.open_partition("q", back, updated)) == back._replace(schema=commands.SCHEMA)


@pytest.mark.parametrize("schema", [None, commands.MOVING])
def test_a_partition_that_is_gone_or_being_moved_gets_nothing(engine: Engine, schema: str | None) -> None:
    """Its jobs are elsewhere. If it were created here, no worker would take the jobs that are added to it."""
    read = look(engine)
    if schema is None:
        engine.client.flushall()
    else:
        engine.client.hset(engine.keys.meta, "schema", schema)
    before = engine.client.hgetall(engine.keys.meta)
    assert engine.call(commands.open_partition("q", of_queue("9"), read)).schema == schema
    assert engine.client.hgetall(engine.keys.meta) == before


def numbers(engine: Engine) -> Any:
    return engine.client.hget(engine.keys.meta, "numbers")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_numbers_go_on_from_the_highest(make_engine: MakeEngine, order: tuple[int, int]) -> None:
    """Otherwise an arrival or a fence would be given twice."""
    small, large, made = make_engine(), make_engine(), make_engine()
    small.add("a", "b", "c")
    small.call(commands.switch(paused=True))
    large.add(*(f"job {i}" for i in range(9)))
    large.advance(take=1)
    both = [numbers((small, large)[i]) for i in order]
    made.call(commands.absorb(both, "made", StoredQueue(commands.PARTITIONED)))
    found, highest = decode({"numbers": numbers(made)}), decode({"numbers": numbers(large)})
    for name in ("seq", "stamp", "order"):
        assert found[name] == highest[name]
    assert found["paused"] == "1"


def test_a_partition_made_of_others_has_the_settings_of_the_queue(make_engine: MakeEngine) -> None:
    """A partition that missed the last change must not bring back its older settings."""
    old, made = make_engine(group_concurrency=5, fairness="round-robin"), make_engine(fairness="round-robin")
    look(old)
    queue = of_queue("12", group_concurrency=2)
    made.call(commands.absorb([numbers(old)], "q", queue))
    assert look(made) == queue._replace(schema=commands.SCHEMA)
    assert not made.client.hexists(made.keys.meta, "rules")
    assert decode({"numbers": numbers(made)})["limit"] == "2"
    made.call(commands.absorb([numbers(old)], "q", of_queue("13", fairness="round-robin")))
    assert made.client.hexists(made.keys.meta, "rules")
