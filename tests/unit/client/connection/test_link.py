"""Links: which calls are resent, and what errors reveal about the primary. The blocking link is generated from the
asynchronous one, so only one of them is tested."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ReadOnlyError

from groupmq.client.connection.endpoint import Endpoint
from groupmq.core.errors import ConnectionLost
from groupmq.sync.connection.link import Link


class Client:
    """A blocking client of the user whose answers are functions, one for each command."""

    def __init__(self) -> None:
        self.connection_pool = SimpleNamespace(connection_kwargs={})
        self.answers: dict[str, Callable[[], Any]] = {}

    def execute_command(self, command: str, **_: Any) -> Any:
        return self.answers[command]()


def refused() -> Any:
    raise ReadOnlyError("You can't write against a read only replica.")


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def link(client: Client) -> Link:
    return Link(Endpoint(client), own=False)


def test_a_refusal_of_a_replica_is_a_move_of_the_primary(link: Link, client: Client) -> None:
    client.answers["SET"] = refused
    with pytest.raises(ReadOnlyError):
        link.execute("SET")
    assert link._address.moves == 1


def test_a_late_refusal_is_not_another_move(link: Link, client: Client) -> None:
    """A call that was sent before the move is refused after another call has reached the new primary."""

    def late() -> Any:
        with pytest.raises(ReadOnlyError):
            link.execute("REFUSED")
        assert link.execute("GET") == "from the new primary"
        return refused()

    client.answers |= {"REFUSED": refused, "GET": lambda: "from the new primary", "LATE": late}
    with pytest.raises(ReadOnlyError):
        link.execute("LATE")
    assert link._address.moves == 1


def test_a_connection_that_another_thread_has_dropped_is_lost(link: Link, client: Client) -> None:
    """The client library then fails with an error that no caller could understand."""

    def dropped() -> Any:
        link._address.moves += 1
        raise AttributeError("'NoneType' object has no attribute 'sendall'")

    client.answers["GET"] = dropped
    with pytest.raises(ConnectionLost, match="the primary of localhost:6379 has moved"):
        link.execute("GET")


def test_a_mistake_of_the_client_library_is_shown_as_it_is(link: Link, client: Client) -> None:
    client.answers["GET"] = lambda: None + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        link.execute("GET")
    assert link._address.moves == 0
