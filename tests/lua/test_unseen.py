"""If a worker's event loop is blocked and has not seen an answer, its heartbeat lets the server take the jobs back."""

from __future__ import annotations

from typing import Any

from groupmq.protocol import commands
from groupmq.protocol.commands import Beat
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, Engine

REQUESTER = "w:0"


def beat(engine: Engine, request: int | None = None, requester: str = REQUESTER, **how: Any) -> Beat:
    named = requester, engine.requests if request is None else request
    call = commands.beat("w", None, LEASE, [], engine.now, keep=engine.options.keep, unseen=named, **how)
    return engine.call(call)


def test_all_jobs_of_the_answer_go_back_in_their_order_and_no_attempt_is_used(engine: Engine) -> None:
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", group="b")
    assert len(engine.advance(take=2, row=3, confirms=True).jobs) == 4
    assert beat(engine).taken_back
    assert engine.counts() | {"waiting": 4, "active": 0} == engine.counts()
    taken = engine.advance(take=4, row=1, confirms=True).jobs
    assert [(job.id, job.stored.attempts) for job in taken] == [("a1", 0), ("b1", 0)]
    assert engine.violations() == []


def test_a_call_that_was_not_carried_out_has_nothing_to_take_back(engine: Engine) -> None:
    engine.add("a")
    engine.advance(take=1, confirms=True)
    assert not beat(engine, engine.requests + 1).taken_back
    assert not beat(engine, 1, "w:1").taken_back
    assert engine.state("a") == "active"


def test_a_job_that_has_begun_stays(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    first, _ = engine.advance(take=2, confirms=True).jobs
    engine.advance(commands.begun(first.id, first.fence), requester="w:1")
    assert beat(engine, engine.requests - 1).taken_back
    assert (engine.state("a"), engine.state("b")) == ("active", "waiting")


def test_a_job_that_was_taken_again_since_stays_with_its_new_worker(engine: Engine) -> None:
    engine.add("a")
    engine.advance(take=1, confirms=True)
    request = engine.requests
    assert beat(engine, request).taken_back
    taken = engine.advance(take=1, worker="v", requester="v:0", confirms=True).jobs
    beat(engine, request)
    assert engine.state("a") == "active"
    assert engine.complete(taken[0]) == [1]


def test_the_request_that_is_sent_again_brings_nothing(engine: Engine) -> None:
    engine.add("a")
    engine.advance(take=1, confirms=True)
    beat(engine)
    assert engine.advance(take=1, request=engine.requests, confirms=True).jobs == []


def test_in_an_exclusive_queue_the_turn_ends_with_the_last_job(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a")
    engine.advance(take=1, turn_size=1, epoch=0, confirms=True)
    assert beat(engine).taken_back
    assert engine.call(commands.look_turn(engine.now)) == []
    assert engine.violations() == []


def test_a_job_that_an_operator_asks_for_is_kept_for_the_operator(engine: Engine) -> None:
    engine.add("a")
    engine.advance(take=1, confirms=True)
    assert engine.call(commands.remove(["a"], None, engine.now)) == [commands.UNSETTLED]
    assert beat(engine).taken_back
    assert engine.advance(take=1, worker="v", requester="v:0", confirms=True).jobs == []
    assert engine.call(commands.remove(["a"], None, engine.now)) == [commands.DONE]
    engine.pass_time(SECOND)
    assert engine.state("a") is None
