"""Functions with arguments that no client of ours sends must answer soon, with a reply or an error that names its
line, and must not touch keys of others. `FUZZ=2000 pytest tests/lua/test_fuzz.py` searches longer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupmq.client.connection.endpoint import Endpoint
from groupmq.core.drafts import draft
from groupmq.core.errors import ScriptError
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol import commands, functions
from groupmq.protocol.call import Call, Policy
from groupmq.sync.connection.connections import BlockingConnection
from tests.support.servers import Server, prefer

EXAMPLES = int(os.environ.get("FUZZ", "12"))
SOON = 5.0
"""Seconds. A function that takes longer would block all clients; calls of ours take a few milliseconds."""
NAMES = [name for name in functions.names() if name != "obliterate"]
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300) | st.floats(allow_nan=True, allow_infinity=True)
simple = st.none() | st.booleans() | numbers | st.text(max_size=20) | st.binary(max_size=20) | st.just("a")
values = st.recursive(
    simple,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


OPTIONS = QueueOptions("q")
POLICY = Policy(3, 1, {"completed": 9, "failed": 9})
SOUND: list[Call[Any]] = [
    commands.add([draft(OPTIONS, 1, group_id="a", job_id=job_id) for job_id in ("a", "b", "c")]),
    commands.add([draft(OPTIONS, 1, job_id="d", delay=60), draft(OPTIONS, 1, job_id="e", ttl=60)]),
    commands.advance(worker="w", requester="w:0", request=1, outcomes=[], take=1, lease_ms=1000, policy=POLICY),
]
"""A queue with jobs in it: one runs, two wait behind it, one is delayed."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A separate server, so that a function that hangs does not block other tests."""
    server = Server.start(prefer("valkey"))
    yield server
    server.stop()


def arguments_of(name: str) -> list[str]:
    """The names of a function's arguments, from the contract in its file."""
    contract = "\n".join(functions.read(name).written).split("]]")[0]
    block = re.search(r"^Arguments\n(.*?)^(?:Blob|Reply)", contract, re.MULTILINE | re.DOTALL)
    return re.findall(r"^  (\w+)  ", block[1], re.MULTILINE) if block else []


@pytest.mark.parametrize("name", NAMES)
def test_a_function_survives_any_arguments(name: str, server: Server) -> None:
    known = arguments_of(name)
    fields = st.dictionaries(st.sampled_from([*known, "now"]), values, max_size=len(known) + 1)
    raw = st.binary(max_size=30) | fields.map(lambda drawn: msgspec.msgpack.encode(drawn))

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize="FUZZ" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @given(raw, st.binary(max_size=40))
    def call(args: bytes, blob: bytes) -> None:
        client.flushall()
        client.set("stranger", "1")
        connection = BlockingConnection(Endpoint(server.url).beside(SOON), OPTIONS)
        for sound in SOUND:
            connection.call(sound, 0.0)
        said = outcome(connection, Call(name, args, lambda reply: reply, blob))
        connection.close()
        assert said == "" or re.search(r"\w+\.lua:\d+|GROUPMQ|the queue", said), said
        others = [key for key in client.keys("*") if not key.startswith((b"groupmq:{q}:", b"groupmq:queues"))]
        assert others == [b"stranger"]

    client: Any = redis.Redis.from_url(server.url, socket_timeout=SOON)
    call()
    client.close()


def outcome(connection: BlockingConnection, call: Call[Any]) -> str:
    """The server's error, empty if it answered the call. Another error, such as a timeout, fails the test."""
    try:
        connection.call(call, 0.0)
    except ScriptError as error:
        return str(error)
    return ""
