"""lib/kept_replies.lua: a call that is resent gets the same answer and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from groupmq.core.drafts import draft
from groupmq.core.errors import ServerRefused
from groupmq.core.schedule import Every
from groupmq.protocol import commands, functions
from groupmq.protocol.commands import Call
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine
from tests.support.resending import Before, Unanswered

PERIOD = 30 * SECOND


def unanswered(engine: Engine, call: Call[Any]) -> Unanswered[Any]:
    engine.counts()  # opens the queue
    return Unanswered(engine.connection, engine.client, call)


def added(engine: Engine, *job_ids: str, **fields: Any) -> Call[Any]:
    return commands.add([draft(engine.options, None, job_id=job_id, **fields) for job_id in job_ids], engine.now)


def failed(engine: Engine) -> None:
    engine.add("a")
    engine.fail_run(engine.take_one())


def running(engine: Engine) -> Call[Any]:
    engine.add("a")
    taken = engine.take_one()
    return commands.report_progress(taken.id, taken.fence, "1", engine.now)


def logging(engine: Engine) -> Call[Any]:
    engine.add("a")
    taken = engine.take_one()
    return commands.append_log(taken.id, taken.fence, "a line", engine.now)


def dead(engine: Engine) -> Call[Any]:
    engine.add("a")
    taken = engine.take_one()
    return commands.take_back("w", [(taken.id, taken.fence)], engine.policy, engine.now)


def done(engine: Engine) -> None:
    engine.add("a")
    engine.complete(engine.take_one())


def due_now(engine: Engine) -> Call[Any]:
    engine.add("a", delay=1)
    engine.pass_time(SECOND)
    return commands.due(engine.policy, now=engine.now)


def ticking(engine: Engine) -> Call[Any]:
    engine.repeat(Every(1))
    [(repeat_id, tick)] = engine.client.zrange(engine.key("ticks"), 0, -1, withscores=True)
    return commands.tick([[repeat_id.decode(), int(tick), int(tick) + SECOND, int(tick)]], engine.now)


def damaged(engine: Engine) -> Call[Any]:
    engine.add("a")
    engine.client.hset(engine.key("results"), "ghost", "1")
    return commands.repair("results", "0", now=engine.now)


def undefined(engine: Engine) -> Call[Any]:
    engine.repeat(Every(1))
    [(repeat_id, stored)] = engine.client.hgetall(engine.key("repeats")).items()
    return commands.undefine(repeat_id.decode(), stored, now=engine.now)


def defines(engine: Engine) -> Call[Any]:
    engine.repeat(Every(1))
    [(repeat_id, stored)] = engine.client.hgetall(engine.key("repeats")).items()
    size = int.from_bytes(stored[:4], "big")
    definition = msgspec.msgpack.decode(stored[4 : 4 + size])
    assert engine.now is not None
    definition["next"] = engine.now + SECOND // 2
    return commands.define(repeat_id.decode(), stored, definition, stored[4 + size :], now=engine.now)


def after(prepare: Callable[[Engine], Any], make: Callable[[Engine], Call[Any]]) -> Callable[[Engine], Call[Any]]:
    def call(engine: Engine) -> Call[Any]:
        prepare(engine)
        return make(engine)

    return call


def one(engine: Engine) -> None:
    engine.add("a")


def blocked(engine: Engine) -> None:
    engine.add("a", "b", on_failed="hold")
    engine.fail_run(engine.take_one())


def delayed(engine: Engine) -> None:
    engine.add("a", delay=60)


CALLS: dict[str, Callable[[Engine], Call[Any]]] = {
    "add": lambda e: added(e, "a", "b", group_id="g"),
    "remove": after(one, lambda e: commands.remove(["a"], None, e.now)),
    "fail": after(one, lambda e: commands.fail("a", "why", e.options.keep, e.now)),
    "retry": after(failed, lambda e: commands.retry("a", e.now)),
    "skip": after(blocked, lambda e: commands.skip(["a"], e.options.keep, e.now)),
    "promote": after(delayed, lambda e: commands.reschedule("a", 0, only_delayed=True, now=e.now)),
    "change delay": after(one, lambda e: commands.reschedule("a", 500, only_delayed=False, now=e.now)),
    "update": after(one, lambda e: commands.update("a", b"new")),
    "cancel": after(one, lambda e: commands.cancel(["a"], e.now)),
    "cancel group": after(one, lambda e: commands.cancel_group("g", 10, e.now)),
    "pause": after(one, lambda e: commands.switch(paused=True, now=e.now)),
    "pause group": after(one, lambda e: commands.switch(paused=True, group_id="g", now=e.now)),
    "clean": after(done, lambda e: commands.clean("completed", 0, 10, e.now)),
    "report_progress": running,
    "append_log": logging,
    "due": due_now,
    "tick": ticking,
    "repair": damaged,
    "define": defines,
    "undefine": undefined,
    "take back": dead,
    "mark": after(one, lambda e: commands.put_mark("v1", None, e.now)),
}


def test_every_script_that_keeps_its_answers_is_tried_here(make_engine: MakeEngine) -> None:
    tried = {call(make_engine()).script for name, call in CALLS.items() if name != "repair"} | {"repair"}
    assert tried == {name for name in functions.names() if functions.load(name).remembers}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_whose_answer_is_lost_is_answered_the_same_and_changes_nothing(engine: Engine, name: str) -> None:
    call = unanswered(engine, CALLS[name](engine))
    answer = call.arrives()
    before = engine.digest()
    engine.pass_time(SECOND)
    assert call.send_again() == answer
    assert engine.digest() == before


@pytest.mark.parametrize("name", CALLS)
def test_a_first_sending_that_is_overtaken_by_the_second_changes_nothing(engine: Engine, name: str) -> None:
    call = unanswered(engine, CALLS[name](engine))
    answer = call.send_again()
    before = engine.digest()
    assert call.arrives() == answer
    assert engine.digest() == before


def test_a_job_that_is_done_and_forgotten_is_not_added_again(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=0)
    call = unanswered(engine, added(engine, "a", group_id="g"))
    first = call.arrives()
    assert engine.run_all() == ["a"]
    assert call.send_again() == first
    assert engine.run_all() == []


def test_a_job_that_is_done_and_forgotten_is_not_added_by_a_sending_that_was_overtaken(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=0)
    call = unanswered(engine, added(engine, "a", group_id="g"))
    first = call.send_again()
    assert engine.run_all() == ["a"]
    assert call.arrives() == first
    assert engine.run_all() == []


def test_a_call_that_did_nothing_runs_when_it_is_sent_again(engine: Engine) -> None:
    engine.add("a")
    call = unanswered(engine, commands.retry("a", engine.now))
    assert call.arrives() == ("waiting", False)
    engine.fail_run(engine.take_one())
    assert call.send_again() == ("failed", True)


def test_a_call_that_never_arrived_is_not_given_the_answer_of_another(engine: Engine) -> None:
    engine.add("a", "b")
    assert engine.remove("a") == [True]
    call = unanswered(engine, commands.remove(["never added"], None, engine.now))
    assert call.send_again() == [False]
    assert engine.remove("b") == [True]


def test_a_client_keeps_one_answer_however_many_calls_it_makes(engine: Engine) -> None:
    for i in range(50):
        engine.add(str(i))
        engine.remove(str(i))
    assert len(answers(engine)) == 1


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_arrives_before_the_one_that_it_follows_changes_nothing(engine: Engine, name: str) -> None:
    call = CALLS[name](engine)
    engine.counts()
    early = Unanswered(engine.connection, engine.client, call, Before())
    before = engine.digest()
    early.arrives_too_early()
    assert engine.digest() == before
    answer = early.arrives()
    assert early.send_again() == answer


def test_a_call_takes_effect_after_the_one_that_it_follows(engine: Engine) -> None:
    first = unanswered(engine, added(engine, "a", group_id="g"))
    second = Unanswered(
        engine.connection, engine.client, added(engine, "b", group_id="g"), Before(first.requester, first.number)
    )
    first.arrives()
    second.arrives()
    assert engine.run_all() == ["a", "b"]


def test_a_call_that_took_effect_is_answered_though_the_one_that_it_follows_is_forgotten(engine: Engine) -> None:
    first = unanswered(engine, added(engine, "a", group_id="g"))
    second = Unanswered(
        engine.connection, engine.client, added(engine, "b", group_id="g"), Before(first.requester, first.number)
    )
    first.arrives()
    answer = second.arrives()
    for name in ("calls_even", "calls_odd"):
        engine.client.hdel(engine.key(name), first.requester)
    assert second.send_again() == answer
    assert engine.run_all() == ["a", "b"]


def test_a_call_does_not_follow_one_that_has_changed_nothing(make_engine: MakeEngine) -> None:
    """If a chunk is not added because its group is full, the next chunk must not be added either."""
    engine = make_engine(max_group_size=1)
    engine.add("a", group="g")
    full = commands.add([draft(engine.options, None, group_id="g")], engine.now, whole=True)
    first = unanswered(engine, full)
    second = Unanswered(engine.connection, engine.client, added(engine, "c"), Before(first.requester, first.number))
    assert first.arrives().full
    second.arrives_too_early()
    assert engine.counts()["waiting"] == 1


def answers(engine: Engine) -> dict[bytes, bytes]:
    return {**engine.client.hgetall(engine.key("calls_even")), **engine.client.hgetall(engine.key("calls_odd"))}


def test_calls_at_the_same_time_have_an_answer_each(engine: Engine) -> None:
    calls = [unanswered(engine, added(engine, str(i), group_id="g")) for i in range(5)]
    found = [call.arrives() for call in calls]
    assert len({call.requester for call in calls}) == len(answers(engine)) == 5
    assert [call.send_again() for call in calls] == found
    assert engine.run_all() == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("at", [0, PERIOD // 2, PERIOD - 1])
def test_an_answer_is_kept_for_half_a_minute_at_least_and_goes_after_two(make_engine: MakeEngine, at: int) -> None:
    engine = make_engine(kept=0)
    engine.now = T0 - T0 % PERIOD + at
    kept, forgotten = (unanswered(engine, added(engine, job_id)) for job_id in ("kept", "forgotten"))
    kept.arrives()
    forgotten.arrives()
    for _ in range(3):
        engine.pass_time(PERIOD // 3)
        engine.run_all()
        engine.add("other")
    kept.send_again()
    assert engine.run_all() == ["other"]
    for _ in range(2):
        engine.pass_time(PERIOD)
        engine.add("another")
    assert len(answers(engine)) <= 2
    forgotten.send_again()
    assert "forgotten" in engine.run_all()


def test_a_clock_that_steps_back_keeps_the_answers_of_a_moment_ago(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=0)
    engine.now = T0 - T0 % PERIOD
    engine.pass_time(-1)
    call = unanswered(engine, added(engine, "a"))
    call.arrives()
    for step in (1, -1, 1, -1):
        engine.pass_time(step)
        engine.run_all()
        engine.add("other")
    call.send_again()
    assert engine.run_all() == ["other"]


def test_the_answers_expire_by_themselves(engine: Engine) -> None:
    engine.now = T0 - T0 % PERIOD
    for _ in range(4):
        engine.add("a")
        engine.remove("a")
        for name in ("calls_even", "calls_odd"):
            left = engine.client.pttl(engine.key(name))
            assert left == -2 or 0 < left <= 3 * PERIOD, f"{name} has no end"
        engine.pass_time(PERIOD)
    assert len(answers(engine)) == 1


def test_answers_that_cannot_be_kept_change_nothing_else(engine: Engine) -> None:
    engine.now = T0 - T0 % PERIOD
    engine.add("a")
    for name in ("calls_even", "calls_odd"):
        engine.client.delete(engine.key(name))
        engine.client.set(engine.key(name), "of a wrong kind")
    engine.add("b")
    engine.client.delete(engine.key("calls_even"), engine.key("calls_odd"))
    assert engine.run_all() == ["a", "b"]


def test_obliterate_forgets_the_answers(engine: Engine) -> None:
    engine.add("a")
    engine.pass_time(PERIOD)
    engine.add("b")
    engine.run(engine.operations.obliterate())
    assert engine.client.keys(engine.keys.base + "calls*") == []


def test_a_heartbeat_and_a_report_keep_no_answer(engine: Engine) -> None:
    engine.client.flushall()
    engine.heartbeat()
    engine.advance(take=1, lease_ms=LEASE)
    assert answers(engine) == {}


@pytest.fixture
def no_memory(engine: Engine) -> Iterator[Callable[[], None]]:
    """A function that leaves the server without memory until the test ends."""

    def take_away() -> None:
        engine.client.config_set("maxmemory", 1)

    yield take_away
    engine.client.config_set("maxmemory", 0)


def test_an_add_that_arrived_gets_its_answer_though_the_server_is_full_by_then(
    engine: Engine, no_memory: Callable[[], None]
) -> None:
    """Found by the state machine: the resent add was refused for lack of memory although its job existed."""
    sending = unanswered(engine, added(engine, "a"))
    first = sending.arrives()
    no_memory()
    assert sending.send_again() == first


def test_an_add_that_did_not_arrive_is_refused_by_a_full_server(engine: Engine, no_memory: Callable[[], None]) -> None:
    engine.add("other")
    sending = unanswered(engine, added(engine, "a"))
    no_memory()
    with pytest.raises(ServerRefused, match="out of memory"):
        sending.send_again()
    assert engine.counts()["waiting"] == 1
