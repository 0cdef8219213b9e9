"""Operations, driven by hand: their calls to the server, and their results from its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from groupmq.client.job import Job
from groupmq.client.queue.settling import cancel_all, remove_all
from groupmq.core.codec import JSON
from groupmq.core.drafts import Draft, draft
from groupmq.core.errors import ConfigurationError, GroupFull, JobNotFound, WrongState
from groupmq.core.limits import Debounce, RateLimit, Throttle
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Stored, pack_order
from groupmq.core.retention import Retention
from groupmq.protocol import commands
from groupmq.protocol.commands import (
    DONE,
    FOUND_UNSETTLED,
    FRESH,
    LEFT,
    UNSETTLED,
    Added,
    Call,
    Cancelled,
    Change,
    Failed,
    Recalled,
    StoredJob,
)
from tests.support.by_hand import Operations, Steps, asked

OPTIONS = QueueOptions(name="q", keep_completed=Retention(count=5, age=60), keep_failed=Retention(count=100))
T0 = 1_700_000_000_000


def make(job_id: str, state: str, found: Stored) -> Job:
    return Job(None, JSON, job_id, state, found, OPTIONS.max_attempts)


OPERATIONS = Operations(OPTIONS, make)
UNTYPED: Any = OPERATIONS
"""The same, for arguments that a type checker would refuse."""


def play(steps: Steps[Any], *answers: Any) -> tuple[Any, list[Call[Any]]]:
    """Answer each call of an operation. Returns its result, and the calls."""
    calls = [steps.send(None)]
    for answer in answers:
        try:
            calls.append(steps.send(answer))
        except StopIteration as stop:
            return stop.value, calls
    raise AssertionError(f"the operation needs more than {len(answers)} answers: {calls[-1]}")


def arguments(call: Call[Any]) -> dict[str, Any]:
    named: dict[str, Any] = msgspec.msgpack.decode(call.args)
    return named


def view_of(d: Draft, state: str = "waiting") -> StoredJob:
    raw = bytes(2) + pack_order(0) + bytes(12) + d.body
    return StoredJob(state, raw, FRESH, None, 0.0, 0, 0, "", 0)


def test_an_added_job_needs_no_second_look() -> None:
    d = draft(OPTIONS, {"x": 1}, group_id="g", job_id="a")
    [job], calls = play(OPERATIONS.add_drafts([d]), Added(T0, T0 + 1, []))
    assert (job.id, job.state, job.order_ms, job.duplicate) == ("a", "waiting", T0 + 1, False)
    assert [call.script for call in calls] == ["add"]


@pytest.mark.parametrize(
    ("fields", "state", "order"),
    [
        ({"delay": 5}, "delayed", T0 + 5000),
        ({"run_at": (T0 + 9) / 1000}, "delayed", T0 + 9),
        ({"run_at": (T0 - 9) / 1000}, "waiting", T0 + 1),
        ({"delay": 5, "order_ms": 3}, "delayed", 3),
    ],
)
def test_an_added_job_knows_its_state_and_order(fields: dict[str, Any], state: str, order: int) -> None:
    [job], _ = play(OPERATIONS.add_drafts([draft(OPTIONS, 1, **fields)]), Added(T0, T0 + 1, []))
    assert (job.state, job.order_ms) == (state, order)
    assert (job.run_at is not None) == (state == "delayed")


def test_an_existing_id_gives_the_stored_job_and_says_so() -> None:
    mine, theirs = draft(OPTIONS, "new", job_id="a"), draft(OPTIONS, "old", job_id="a")
    other = draft(OPTIONS, "other")
    (first, second), calls = play(OPERATIONS.add_drafts([other, mine]), Added(T0, T0, [1]), [view_of(theirs, "active")])
    assert (first.data, first.duplicate) == ("other", False)
    assert (second.data, second.state, second.duplicate) == ("old", "active", True)
    assert arguments(calls[1]) == {"ids": ["a"]}


@pytest.mark.parametrize("job_id", [None, "a"])
def test_an_add_of_our_own_that_was_sent_twice_is_no_duplicate(job_id: str | None) -> None:
    d = draft(OPTIONS, 1, job_id=job_id)
    [job], _ = play(OPERATIONS.add_drafts([d]), Added(T0, T0, [0]), [view_of(d)])
    assert not job.duplicate


def test_an_add_of_our_own_that_was_sent_twice_and_is_done_already_is_no_duplicate() -> None:
    d = draft(OPTIONS, 1)
    [job], _ = play(OPERATIONS.add_drafts([d]), Added(T0, T0, [0]), [None])
    assert (job.id, job.duplicate, job.state) == (d.id, False, "gone")


def test_an_add_that_another_job_stands_for_gives_that_job_and_says_so() -> None:
    once = Throttle("k", 10)
    mine, theirs = draft(OPTIONS, "new", dedupe=once), draft(OPTIONS, "old", job_id="first")
    other = draft(OPTIONS, "other")
    (one, two), calls = play(
        OPERATIONS.add_drafts([other, mine]), Added(T0, T0, [], {1: "first"}), [view_of(theirs, "completed")]
    )
    assert (one.data, one.duplicate) == ("other", False)
    assert (two.id, two.data, two.state, two.duplicate) == ("first", "old", "completed", True)
    assert arguments(calls[1]) == {"ids": ["first"]}


def test_an_add_that_a_job_stands_for_which_is_gone_gives_its_id_all_the_same() -> None:
    d = draft(OPTIONS, "new", dedupe=Throttle("k", 10))
    made = Added(T0, T0, [], {0: "first"}, made={0: T0 - 5000})
    [job], _ = play(OPERATIONS.add_drafts([d]), made, [None])
    assert (job.id, job.duplicate, job.state, job.run_at) == ("first", True, "gone", None)
    assert job.created_at is not None
    assert job.created_at.timestamp() * 1000 == T0 - 5000


def test_duplicates_and_stand_ins_of_one_call_are_not_mixed_up() -> None:
    drafts = [draft(OPTIONS, i, job_id=f"j{i}") for i in range(3)]
    stored = draft(OPTIONS, "stored", job_id="j0"), draft(OPTIONS, "stands", job_id="first")
    jobs, calls = play(
        OPERATIONS.add_drafts(drafts), Added(T0, T0, [0], {2: "first"}), [view_of(stored[1])], [view_of(stored[0])]
    )
    assert [(job.id, job.data, job.duplicate) for job in jobs] == [
        ("j0", "stored", True),
        ("j1", 1, False),
        ("first", "stands", True),
    ]
    assert [arguments(call).get("ids") for call in calls] == [["j0", "j1", "j2"], ["first"], ["j0"]]


def test_of_independent_callers_in_one_batch_only_the_refused_one_gets_group_full() -> None:
    full = Operations(replace(OPTIONS, max_group_size=3), make)
    drafts = [draft(OPTIONS, i, group_id=f"g{i}", job_id=f"j{i}") for i in range(3)]
    (first, second, third), calls = play(full.add_drafts(drafts), Added(T0, T0, [], {}, [1]))
    assert (first.id, third.id) == ("j0", "j2")
    assert isinstance(second, GroupFull)
    assert (second.group_id, second.size) == ("g1", 3)
    assert "whole" not in arguments(calls[0])


def test_a_call_of_one_caller_fails_whole_and_asks_for_that() -> None:
    for steps in (OPERATIONS.add(1, group_id="g0"), OPERATIONS.add_many([{"data": 1, "group_id": "g0"}])):
        call = steps.send(None)
        assert arguments(call)["whole"] is True
        with pytest.raises(GroupFull, match="group 'g0'"):
            steps.send(Added(T0, T0, [], {}, [0]))


def test_a_rate_of_a_group_is_sent_as_starts_and_milliseconds_and_none_takes_it_away() -> None:
    nothing_runs = ["ready", 1, 0, 0, 1, 0, -1]
    _, [call, _] = play(OPERATIONS.set_group_rate_limit("g", RateLimit(5, 0.5)), True, nothing_runs)
    assert arguments(call) == {"group": "g", "rate": [5, 500]}
    _, [call, _] = play(OPERATIONS.set_group_rate_limit("g", None), True, nothing_runs)
    assert arguments(call) == {"group": "g", "rate": []}


def test_a_change_of_a_prefetched_job_is_asked_for_again_until_it_is_settled() -> None:
    unsettled, done = Failed(Change("active", UNSETTLED), ""), Failed(Change("waiting", DONE), "")
    assert play(OPERATIONS.fail("a", "x"), unsettled, unsettled, done)[0] is True
    _, calls = play(OPERATIONS.fail("a", "x"), unsettled, unsettled, done)
    assert [call.script for call in calls] == ["fail"] * 3
    assert 0 == calls[0].after < calls[1].after < calls[2].after


def test_only_what_is_not_settled_is_asked_for_again() -> None:
    assert play(OPERATIONS.remove("a"), [UNSETTLED], [DONE])[0] is True
    assert play(OPERATIONS.remove("a"), [UNSETTLED], [LEFT])[0] is False
    removed, calls = play(remove_all(asked, ["a", "b", "c"]), [DONE, UNSETTLED, LEFT], [DONE])
    assert (removed, [arguments(call)["ids"] for call in calls]) == (2, [["a", "b", "c"], ["b"]])
    found, calls = play(
        cancel_all(asked, ["a", "b"]),
        Cancelled([("a", FOUND_UNSETTLED), ("b", "waiting")], 0),
        Cancelled([("a", "waiting")], 0),
    )
    assert found == [("b", "waiting"), ("a", "waiting")]
    assert [arguments(call)["ids"] for call in calls] == [["a", "b"], ["a"]]


def test_a_pause_returns_when_every_prefetched_job_is_settled() -> None:
    _, calls = play(
        OPERATIONS.pause(),
        True,
        [3, 0, 0, 0, 0, 1, 1],
        Recalled("7", ["b"], ["a"]),
        Recalled("0", ["b"], []),
        Recalled("0", [], []),
        Recalled("0", [], []),
    )
    assert [call.script for call in calls] == ["switch", "counts", *["recall"] * 4]
    assert [arguments(call).get("cursor") for call in calls[2:]] == ["0", None, None, "7"]


def test_where_nothing_is_active_a_pause_asks_nobody() -> None:
    _, calls = play(OPERATIONS.pause(), True, [0, 5, 0, 0, 0, 1, 1])
    assert [call.script for call in calls] == ["switch", "counts"]


def test_a_group_is_cancelled_until_nothing_of_it_is_prefetched() -> None:
    cancelled, calls = play(
        OPERATIONS.cancel_group("g"),
        [],
        ["busy", 1, 2, 0, 1, 0, -1],
        Recalled("0", ["b"], ["a"]),
        Recalled("0", [], []),
        Cancelled([("b", "waiting")], 1),
        Cancelled([("c", "waiting")], 0),
        ["idle", 0, 1, 0, 1, 0, -1],
        Recalled("0", [], ["a"]),
        Cancelled([], 0),
        Cancelled([("a", "active")], 0),
    )
    assert cancelled == 3
    names = "list look_group recall recall cancel cancel look_group recall cancel cancel"
    assert [call.script for call in calls] == names.split()


def test_of_active_jobs_only_those_that_run_now_are_purged() -> None:
    removed, calls = play(OPERATIONS.purge(["active"]), Recalled("0", [], ["a", "b"]), [DONE, LEFT])
    assert (removed, [call.script for call in calls]) == (1, ["recall", "remove"])
    assert arguments(calls[1])["states"] == ["active"]


def test_a_turn_expires_in_seconds_and_is_none_if_nobody_has_it() -> None:
    turn, _ = play(OPERATIONS.get_turn(), ["w1", 7, 1500, 3])
    assert (turn.worker, turn.epoch, turn.expires_in, turn.taken) == ("w1", 7, 1.5, 3)
    assert play(OPERATIONS.get_turn(), [])[0] is None


def test_ttl_and_dedupe_travel_only_with_the_items_that_have_them() -> None:
    plain, both = draft(OPTIONS, 1), draft(OPTIONS, 2, ttl=5, dedupe=Debounce("k", 2))
    assert "extras" not in arguments(commands.add([plain, plain]))
    assert arguments(commands.add([plain, both]))["extras"] == [False, [5000, [2, "k", 2000]]]
    throttled = draft(OPTIONS, 3, dedupe=Throttle("k", 2))
    assert arguments(commands.add([throttled]))["extras"] == [[False, [1, "k", 2000]]]


def test_many_items_go_in_chunks_in_their_order() -> None:
    n = commands.CHUNK + 1
    items = [{"data": i, "job_id": str(i)} for i in range(n)]
    jobs, calls = play(OPERATIONS.add_many(items), Added(T0, T0, []), Added(T0, T0, []))
    assert [job.id for job in jobs] == [str(i) for i in range(n)]
    assert [len(arguments(call)["ids"]) for call in calls] == [commands.CHUNK, 1]


def test_one_bad_item_among_many_and_nothing_is_asked_of_the_server() -> None:
    items = [{"data": i} for i in range(1500)] + [{"data": 1, "priority": -1}]
    with pytest.raises(ConfigurationError, match=r"^items\[1500\]\.priority: "):
        OPERATIONS.add_many(items).send(None)


def test_no_items_need_no_server() -> None:
    with pytest.raises(StopIteration) as stop:
        OPERATIONS.add_many([]).send(None)
    assert stop.value.value == []


@pytest.mark.parametrize(
    ("steps", "answer", "expected"),
    [
        (OPERATIONS.retry, Change, ("failed",)),
        (OPERATIONS.promote, Change, ("delayed",)),
        (lambda job_id: OPERATIONS.change_delay(job_id, 1), Change, ("delayed", "waiting")),
        (
            lambda job_id: OPERATIONS.fail(job_id, "x"),
            lambda state, status: Failed(Change(state, status), ""),
            ("waiting", "delayed", "active"),
        ),
    ],
)
def test_a_change_works_or_says_why_not(steps: Any, answer: Any, expected: tuple[str, ...]) -> None:
    assert play(steps("a"), answer("delayed", DONE))[0] is True
    with pytest.raises(JobNotFound, match="job 'a' does not exist"):
        play(steps("a"), answer("", LEFT))
    with pytest.raises(WrongState) as caught:
        play(steps("a"), answer("completed", LEFT))
    assert (caught.value.job_id, caught.value.expected, caught.value.actual) == ("a", expected, "completed")
    assert str(caught.value) == f"job 'a' is completed, expected {' or '.join(expected)}; nothing was changed"


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        (lambda: UNTYPED.get_job(""), "job_id"),
        (lambda: UNTYPED.get_job(5), "job_id"),
        (lambda: UNTYPED.remove(None), "job_id"),
        (lambda: UNTYPED.retry(b"x"), "job_id"),
        (lambda: UNTYPED.promote("\ud800"), "job_id"),
        (lambda: UNTYPED.change_delay("x", -1), "delay"),
        (lambda: UNTYPED.change_delay("x", None), "delay"),
        (lambda: UNTYPED.fail("x", 5), "reason"),
        (lambda: UNTYPED.update_data("x", object()), "data"),
        (lambda: UNTYPED.update_data("", 1), "job_id"),
        (lambda: UNTYPED.set_group_concurrency("g", 0), "n"),
        (lambda: UNTYPED.set_group_concurrency("g", True), "n"),
        (lambda: UNTYPED.set_group_concurrency("", 1), "group_id"),
        (lambda: UNTYPED.set_group_rate_limit("", RateLimit(1, 1)), "group_id"),
        (lambda: UNTYPED.set_group_rate_limit(5, None), "group_id"),
        (lambda: UNTYPED.set_group_rate_limit("g", 5), "rate_limit"),
        (lambda: UNTYPED.set_group_rate_limit("g", (5, 1)), "rate_limit"),
        (lambda: UNTYPED.pause_group(5), "group_id"),
        (lambda: UNTYPED.resume_group(""), "group_id"),
        (lambda: UNTYPED.get_group(""), "group_id"),
        (lambda: UNTYPED.get_unique_groups(-1), "limit"),
        (lambda: UNTYPED.get_failures(-1), "limit"),
        (lambda: UNTYPED._list_ids("active", -1), "limit"),
        (lambda: UNTYPED._list_ids("active", 1, True), "offset"),
        (lambda: UNTYPED.clean("active", limit=1), "state"),
        (lambda: UNTYPED.clean("completed", grace=-1, limit=1), "grace"),
        (lambda: UNTYPED.clean("completed", limit=-1), "limit"),
        (lambda: UNTYPED.purge(["finished"]), "states"),
        (lambda: UNTYPED.purge("waiting"), "states"),
    ],
)
def test_a_bad_argument_is_refused_by_name_before_anything_is_asked(steps: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{named}: "):
        steps().send(None)
