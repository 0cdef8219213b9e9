"""Finding the primary by asking sentinels, and what happens when it moves."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import redis

from groupmq.client.connection.address import Address, Node
from groupmq.client.connection.sentinel import SentinelRoute
from groupmq.core.errors import ServerRefused

ONE, TWO, THREE = ("s1", 1), ("s2", 2), ("s3", 3)
OLD, NEW = ("old", 6379), ("new", 6379)


def search(route: SentinelRoute, answers: dict[Node, Any]) -> tuple[Node, list[Node]]:
    """Search the primary. Returns it, and the sentinels that were asked."""
    asked: list[Node] = []
    steps = route.search()
    try:
        question = next(steps)
        while True:
            assert question.command == ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")
            asked.append(question.node)
            question = steps.send(answers[question.node])
    except StopIteration as end:
        route.node = end.value
        return end.value, asked


def named(node: Node) -> list[bytes]:
    return [node[0].encode(), str(node[1]).encode()]


def make() -> SentinelRoute:
    return SentinelRoute([ONE, TWO, THREE], "mymaster")


class Watching:
    def __init__(self, address: Address) -> None:
        self.told: list[bool] = []
        address.watch(self)

    def primary_moved(self, *, failover: bool) -> None:
        self.told.append(failover)


def test_the_first_sentinel_that_answers_is_asked_first_from_now_on() -> None:
    route = make()
    assert search(route, {ONE: OSError("gone"), TWO: named(OLD)}) == (OLD, [ONE, TWO])
    assert search(route, {TWO: named(NEW)}) == (NEW, [TWO])


def test_a_sentinel_that_names_a_server_that_is_no_primary_is_asked_last() -> None:
    route = make()
    search(route, {ONE: named(OLD)})
    route.lost(OLD)
    assert search(route, {TWO: named(NEW)}) == (NEW, [TWO])


def test_all_that_the_sentinels_said_is_in_the_error() -> None:
    answers = {ONE: OSError("gone"), TWO: None, THREE: redis.exceptions.TimeoutError()}
    with pytest.raises(redis.exceptions.ConnectionError) as caught:
        search(make(), answers)
    assert str(caught.value) == (
        "no sentinel names a primary (s1:1: gone; s2:2: knows no service 'mymaster'; s3:3: TimeoutError)"
    )


def test_sentinels_that_all_refuse_the_password_are_not_asked_again() -> None:
    wrong = redis.exceptions.AuthenticationError("invalid username-password pair or user is disabled.")
    with pytest.raises(ServerRefused, match="no sentinel names a primary") as caught:
        search(make(), {ONE: wrong, TWO: wrong, THREE: wrong})
    assert caught.value.kind == "WRONGPASS"
    with pytest.raises(redis.exceptions.ConnectionError):  # the third sentinel may come back and know the primary
        search(make(), {ONE: wrong, TWO: wrong, THREE: OSError("gone")})


def test_another_primary_is_a_failover_and_blocked_connections_are_notified() -> None:
    route = make()
    watching = Watching(route)
    assert route.confirmed(OLD)
    assert (route.moves, watching.told) == (0, [])
    route.lost(OLD)
    assert route.confirmed(NEW)
    assert (route.moves, watching.told) == (1, [True])


def test_a_late_connection_to_the_old_primary_is_not_used() -> None:
    route = make()
    route.node = NEW
    assert not route.confirmed(OLD)
    assert route.confirmed(NEW)


def test_many_refusals_of_one_failover_are_one_move() -> None:
    route = make()
    route.confirmed(OLD)
    watching = Watching(route)
    for _ in range(50):
        route.observe(redis.exceptions.ReadOnlyError("READONLY You can't write against a read only replica."), 0)
    assert (route.moves, route.node, watching.told) == (1, None, [False])


def test_a_lost_connection_makes_the_next_one_search_and_drops_no_other() -> None:
    route = make()
    route.confirmed(OLD)
    route.observe(redis.exceptions.ConnectionError("reset"), 0)
    assert (route.moves, route.node) == (0, None)


def test_an_address_keeps_nobody_alive_who_watches_it() -> None:
    address = Address()
    watching = Watching(address)
    del watching
    gc.collect()
    assert address._watchers == {}
