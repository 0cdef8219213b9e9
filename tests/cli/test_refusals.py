"""A server that is unreachable, read-only or wants a password is reported in one line, with exit code 3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from groupmq.sync import Queue
from tests.cli.operating import Command
from tests.support.servers import Server

DEAD = "redis://127.0.0.1:1"
TO_ANY_SERVER = [
    ["job", "add", "--payload", "1"],
    ["job", "status", "a"],
    ["job", "list"],
    ["job", "export"],
    ["queue", "stats"],
    ["queue", "purge", "--yes"],
    ["queue", "repair"],
    ["repeat", "list"],
    ["check"],
]


@pytest.mark.parametrize("words", TO_ANY_SERVER)
def test_a_dead_server_is_reported_in_one_line(words: list[str]) -> None:
    assert "127.0.0.1:1 cannot be reached" in Command(DEAD)(*words).line(3)


def test_a_dead_server_is_reported_by_the_program_as_well() -> None:
    assert "cannot be reached" in Command(DEAD).program("queue", "stats").line(3)


@pytest.fixture(scope="module")
def replica() -> Iterator[Server]:
    """A server that had a queue and then became a replica, so that it can only be read."""
    server = Server.start("valkey", config={"requirepass": "", "replica-serve-stale-data": "yes"})
    with Queue("orders", server.url) as queue:
        queue.add(1, job_id="a")
    client = redis.Redis.from_url(server.url)
    client.replicaof("127.0.0.1", "1")
    client.close()
    yield server
    server.stop()


@pytest.mark.parametrize("words", [["job", "add", "--payload", "1"], ["job", "fail", "a"], ["queue", "pause"]])
def test_a_write_to_a_read_only_server_is_refused(replica: Server, words: list[str]) -> None:
    assert "is a read-only replica" in Command(replica.url)(*words).line(3)


def test_a_read_only_server_can_be_looked_at(replica: Server) -> None:
    command = Command(replica.url)
    assert command("queue", "stats", "--json").json["counts"]["waiting"] == 1
    found = command("check", "--json")
    assert found.code == 1
    assert {"name": "role", "status": "fail"}.items() <= found.json["checks"][2].items()


def test_missing_and_wrong_credentials_are_reported() -> None:
    server = Server.start("valkey", config={"requirepass": "secret"})
    try:
        said = Command(server.url)("queue", "stats").line(3)
        assert "credentials" in said
        wrong = server.url.replace("redis://", "redis://:wrong-word@")
        said = Command(wrong)("queue", "stats").line(3)
        assert "refuses the credentials" in said
        assert "wrong-word" not in said
    finally:
        server.stop()
