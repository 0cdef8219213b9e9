"""The settings that are stored with a queue: which calls write or replace them, and calls with an outdated revision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groupmq.core.errors import ScriptError
from groupmq.core.queue_options import QueueOptions
from groupmq.core.settings import QueueSettings, StoredQueue
from groupmq.protocol import commands, functions
from tests.lua.conftest import MakeEngine
from tests.lua.engine import Engine

SEVEN = QueueOptions("q", max_attempts=7)
THREE_AT_ONCE = QueueOptions("q", group_concurrency=3)


def look(engine: Engine) -> StoredQueue:
    return engine.call(commands.look_at_queue())


def test_the_first_to_open_decides_and_nobody_after_it(engine: Engine) -> None:
    first = look(engine)
    assert (first.config, first.handling) == (engine.options.shared, engine.options.handling)
    assert engine.call(commands.open_queue(SEVEN)) == first
    assert engine.call(commands.open_queue(THREE_AT_ONCE)) == first
    assert look(engine) == first


def test_settings_are_replaced_at_once_and_the_scripts_act_on_them(engine: Engine) -> None:
    before = look(engine)
    stored = engine.call(commands.open_queue(THREE_AT_ONCE, before))
    assert stored == look(engine)
    assert (stored.config, int(stored.revision) > int(before.revision)) == (THREE_AT_ONCE.shared, True)
    engine.add("a", "b", "c", "d")
    assert len(engine.take(4)) == 3


@pytest.mark.parametrize("since", [SEVEN, THREE_AT_ONCE], ids=["handling", "config"])
def test_what_was_stored_since_it_was_read_is_not_replaced(engine: Engine, since: QueueOptions) -> None:
    read = look(engine)
    stored = engine.call(commands.open_queue(since, read))
    other = replace(engine.options, max_attempts=9, group_concurrency=9)
    assert engine.call(commands.open_queue(other, read)) == stored
    assert look(engine) == stored
    assert engine.call(commands.open_queue(other, stored)).handling == other.handling


def test_a_revision_is_never_given_twice_though_the_clock_stands_or_steps_back(engine: Engine) -> None:
    """The stored one is far ahead of the clock, as after a failover to a server whose clock is behind."""
    look(engine)
    engine.client.hset(engine.keys.meta, "revision", "9000000000000000")
    stored = engine.call(commands.open_queue(SEVEN, look(engine)))
    assert stored.revision == b"9000000000000001"


def test_a_change_of_how_jobs_are_handled_leaves_all_else(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a")
    engine.take_one()
    before = engine.client.hgetall(engine.keys.meta)
    stored = look(engine)
    engine.call(commands.open_queue(replace(engine.options, max_attempts=9), stored))
    after = engine.client.hgetall(engine.keys.meta)
    assert {name for name in after if after[name] != before.get(name)} == {b"handling", b"revision"}


def test_a_queue_of_a_release_that_stored_less_gets_the_rest_once(engine: Engine) -> None:
    look(engine)
    engine.client.hdel(engine.keys.meta, "handling", "revision")
    before = look(engine)
    assert (before.handling, before.revision) == ("", b"")
    stored = engine.call(commands.open_queue(replace(THREE_AT_ONCE, max_attempts=7)))
    assert stored.config == engine.options.shared, "the settings that the scripts act on stay"
    assert QueueSettings.of(stored).max_attempts == 7
    assert engine.call(commands.open_queue(engine.options)) == stored == look(engine)


def test_a_queue_of_another_format_is_not_touched(engine: Engine) -> None:
    read = look(engine)
    engine.client.hset(engine.keys.meta, "schema", "9")
    before = engine.client.hgetall(engine.keys.meta)
    for was in (None, read):
        assert engine.call(commands.open_queue(SEVEN, was)).schema == "9"
    assert engine.client.hgetall(engine.keys.meta) == before
    engine.client.hset(engine.keys.meta, "schema", commands.SCHEMA)


def send(engine: Engine, call: commands.Call[Any], *behind: object) -> Any:
    script = functions.load(call.script)
    return engine.client.execute_command("EVAL", script.text, 1, engine.keys.meta, call.args, call.blob, *behind)


@pytest.mark.parametrize("revision", [b"1", b"0"])
def test_a_call_by_other_settings_is_refused_before_it_does_anything(engine: Engine, revision: bytes) -> None:
    engine.add("a")
    before = engine.client.hgetall(engine.keys.meta)
    for call in (commands.switch(paused=True), commands.counts(), commands.retry("a")):
        with pytest.raises(Exception, match="GROUPMQ_SETTINGS have changed"):
            send(engine, call, revision)
    assert engine.client.hgetall(engine.keys.meta) == before


def test_a_call_by_these_settings_or_by_none_is_carried_out(engine: Engine) -> None:
    for behind in ((), (b"",), (look(engine).revision,)):
        assert send(engine, commands.switch(paused=True), *behind) == 1
        assert send(engine, commands.switch(paused=False), *behind) == 1


def test_a_client_that_is_refused_reads_the_settings_and_calls_again(engine: Engine) -> None:
    engine.add("a")
    known = engine.connection.session.known
    stored = engine.call(commands.open_queue(SEVEN, look(engine)))
    assert known.revision != stored.revision
    engine.add("b")
    assert (known.revision, known.options.max_attempts) == (stored.revision, 7)
    assert engine.call(commands.counts())[1] == 2


def test_a_call_that_took_effect_before_a_change_is_answered_as_it_was(engine: Engine) -> None:
    """Its answer was lost. Resent with the old revision it is refused; with the new revision it is recognised."""
    engine.add("a")
    call = commands.remove(["a"])
    old = look(engine).revision
    assert send(engine, call, old, "slot", 1) == [1]
    now = engine.call(commands.open_queue(SEVEN, look(engine))).revision
    with pytest.raises(Exception, match="GROUPMQ_SETTINGS"):
        send(engine, call, old, "slot", 1, "again")
    assert send(engine, call, now, "slot", 1, "again") == [1]


def test_settings_that_change_as_fast_as_they_are_read_stop_nobody(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.add("a")
    learn, attempts = engine.connection._learn, iter(range(5, 100))

    def changed_meanwhile() -> None:
        learn()
        now = look_raw()
        engine.client.hset(engine.keys.meta, "revision", int(now) + next(attempts))

    def look_raw() -> bytes:
        found: bytes = engine.client.hget(engine.keys.meta, "revision")
        return found

    engine.client.hset(engine.keys.meta, "revision", int(look_raw()) + 1)
    monkeypatch.setattr(engine.connection, "_learn", changed_meanwhile)
    try:
        engine.add("b")
    except ScriptError as error:
        pytest.fail(str(error))
    assert engine.call(commands.counts())[1] == 2
