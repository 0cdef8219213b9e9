"""Which node owns which slot, according to the nodes, and how a change is noticed."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from groupmq.client.connection.address import Node
from groupmq.client.connection.cluster import NodeRoute, SlotMap, SlotRoute, redirection, slot_of

ONE, TWO, THREE = ("h1", 1), ("h2", 2), ("h3", 3)
HALF = 8192


def entry(first: int, last: int, *nodes: Node) -> list[Any]:
    return [first, last, *([host.encode(), port, b"id", []] for host, port in nodes)]


def search(slots: SlotMap, slot: int, answers: dict[Node, Any]) -> tuple[Node, list[Node]]:
    """Search the owner of a slot. Returns it, and the nodes that were asked."""
    asked: list[Node] = []
    steps = slots.search(slot)
    try:
        question = next(steps)
        while True:
            assert question.command == ("CLUSTER", "SLOTS")
            asked.append(question.node)
            question = steps.send(answers[question.node])
    except StopIteration as end:
        return end.value, asked


LAYOUT = [entry(0, HALF - 1, ONE, THREE), entry(HALF, 16383, TWO)]


def test_the_slot_of_a_queue_is_that_of_its_tag() -> None:
    assert slot_of("groupmq:{orders}:meta") == slot_of("other:{orders}:wake") == slot_of("orders") == 105


def test_one_answer_names_the_owners_of_all_slots() -> None:
    slots = SlotMap([ONE])
    assert search(slots, 9000, {ONE: LAYOUT}) == (TWO, [ONE])
    assert slots.owner(0) == ONE
    assert slots.primaries() == [ONE, TWO]


def test_a_node_without_a_host_is_where_the_one_is_that_was_asked() -> None:
    slots = SlotMap([("proxy", 7)])
    reply = [[0, 16383, [None, 7000, b"id"], [b"", 7001, b"id"], [b"?", 7002, b"id"]]]
    assert search(slots, 5, {("proxy", 7): reply}) == (("proxy", 7000), [("proxy", 7)])


def test_after_a_loss_another_node_is_asked_first() -> None:
    slots = SlotMap([ONE])
    search(slots, 5, {ONE: LAYOUT})
    slots.lost(ONE)
    assert slots.owner(5) is None
    assert slots.owner(9000) == TWO
    moved = [entry(0, HALF - 1, THREE), entry(HALF, 16383, TWO)]
    owner, asked = search(slots, 5, {ONE: OSError("gone"), TWO: moved, THREE: moved})
    assert owner == THREE
    assert asked[0] != ONE


def test_the_seeds_are_asked_when_all_known_nodes_are_gone() -> None:
    slots = SlotMap([("seed", 1)])
    search(slots, 5, {("seed", 1): LAYOUT})
    gone = dict.fromkeys((ONE, TWO, THREE), OSError("gone"))
    assert search(slots, 5, {**gone, ("seed", 1): LAYOUT})[1][-1] == ("seed", 1)


def test_all_that_the_nodes_said_is_in_the_error() -> None:
    with pytest.raises(redis.exceptions.ConnectionError) as caught:
        search(SlotMap([ONE, TWO]), 9000, {ONE: OSError("gone"), TWO: [entry(0, HALF - 1, TWO)]})
    assert str(caught.value) == (
        "no node of the cluster says where the queue is (h1:1: gone; h2:2: nobody owns slot 9000)"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (redis.exceptions.ResponseError("MOVED 5 h9:9"), (5, ("h9", 9), True)),
        (redis.exceptions.MovedError("5 h9:9"), (5, ("h9", 9), True)),
        (redis.exceptions.ResponseError("ASK 5 h9:9"), (5, ("h9", 9), False)),
        (redis.exceptions.AskError("5 h9:9"), (5, ("h9", 9), False)),
        (redis.exceptions.ResponseError("MOVED 5 :9"), (5, ("h1", 9), True)),
        (redis.exceptions.ResponseError("MOVED 5 ?:9"), (5, ("h1", 9), True)),
        (redis.exceptions.ResponseError("MOVED 5 fe80::1:9"), (5, ("fe80::1", 9), True)),
        (redis.exceptions.ResponseError("ERR 5 h9:9"), None),
        (redis.exceptions.ResponseError("TRYAGAIN Multiple keys request during rehashing of slot"), None),
        (redis.exceptions.ConnectionError("5 h9:9"), None),
    ],
)
def test_a_redirection_is_read_however_the_library_raises_it(error: Exception, said: Any) -> None:
    assert redirection(error, ONE) == said


def test_moved_is_followed_at_once_and_counts_once() -> None:
    slots = SlotMap([ONE])
    route = SlotRoute(slots, 5)
    route.confirmed(ONE)
    moved = redis.exceptions.ResponseError("MOVED 5 h2:2")
    assert route.observe(moved, 0) is True
    assert route.observe(moved, 0) is True  # the answer to a call that was sent before the move
    assert (route.node, route.moves, slots.owner(5)) == (TWO, 1, TWO)
    assert route.confirmed(TWO)
    assert route.moves == 1  # a slot that moves is not a failover


def test_ask_moves_nobody() -> None:
    route = SlotRoute(SlotMap([ONE]), 5)
    route.confirmed(ONE)
    assert route.observe(redis.exceptions.ResponseError("ASK 5 h2:2"), 0) is False
    assert (route.node, route.moves) == (ONE, 0)


@pytest.mark.parametrize(
    "message",
    [
        "CLUSTERDOWN The cluster is down",
        "ERR Script attempted to execute a command while the cluster is down script: f, on @user_function:1.",
    ],
)
def test_a_node_that_says_the_cluster_is_down_may_be_cut_off_and_is_left(message: str) -> None:
    slots = SlotMap([ONE])
    route = SlotRoute(slots, 5)
    route.confirmed(ONE)
    slots.patch(5, ONE)
    route.observe(redis.exceptions.ResponseError(message), 0)
    assert (route.node, route.moves, slots.owner(5)) == (None, 1, None)


def test_what_a_node_says_of_other_slots_is_remembered() -> None:
    slots = SlotMap([ONE])
    route = NodeRoute(slots, ONE)
    route.observe(redis.exceptions.ResponseError("MOVED 77 h2:2"), 0)
    assert slots.owner(77) == TWO
    route.observe(redis.exceptions.ConnectionError("reset"), 0)
    slots.patch(78, ONE)
    route.observe(redis.exceptions.ConnectionError("reset"), 0)
    assert slots.owner(78) is None
