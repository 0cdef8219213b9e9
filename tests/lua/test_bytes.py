"""Payloads are opaque bytes and ids are any text, whatever the client and its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from groupmq.client.connection.endpoint import Endpoint
from groupmq.core import record
from groupmq.protocol import commands
from groupmq.sync.connection.connections import BlockingConnection
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, Engine

HOSTILE = [
    "|||",
    "x:active",
    "{}",
    "}{",
    "{orders}",
    "\n",
    "\r\n$5\r\nhello",
    "\x00",
    "a\x00b",
    "*",
    "[a-z]?*",
    " ",
    "\u202e\u200b",
    "ö" * 1000,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "g:",
    "meta",
    "jobs",
    "0",
    "-1",
    "1e5",
    "nan",
    "inf",
    "true",
    "nil",
    "'; redis.call('FLUSHALL') --",
    "\ufeff",
    "\uffff",
    "\U0010ffff",
    "x" * 4096,
]
PAYLOADS = [b"", b"\x00", bytes(range(256)), b"\xff\xfe\xfd" * 1000, b"|||", b"\r\n", b"\xc0", b"x" * 300_000]


class Raw:
    """A serializer for bytes as they are."""

    def encode(self, value: Any, /) -> bytes:
        assert isinstance(value, bytes)
        return value

    def decode(self, raw: bytes, /) -> Any:
        return raw


@pytest.fixture(params=[(2, False), (2, True), (3, False), (3, True)], ids=lambda p: f"RESP{p[0]}-decode={p[1]}")
def any_client(request: pytest.FixtureRequest, make_engine: MakeEngine, url: str) -> Iterator[Engine]:
    """An engine that uses a user's client, with each protocol, and with or without decoding of replies."""
    protocol, decode = request.param
    engine = make_engine(serializer=Raw())
    client = redis.Redis.from_url(url, protocol=protocol, decode_responses=decode)
    engine.connection.close()
    engine.connection = BlockingConnection(Endpoint(client), engine.options)
    yield engine
    client.close()


def test_payloads_and_results_come_back_byte_for_byte(any_client: Engine) -> None:
    engine = any_client
    for i, payload in enumerate(PAYLOADS):
        engine.add(f"j{i}", group=None, data=payload)
    taken = engine.take(len(PAYLOADS))
    assert [record.unpack(job.record).data for job in taken] == PAYLOADS
    engine.advance(*(commands.completed(t.id, t.fence, p) for t, p in zip(taken, PAYLOADS, strict=True)))
    for i, payload in enumerate(PAYLOADS):
        view = engine.view(f"j{i}")
        assert (record.unpack(view.record).data, view.result) == (payload, payload)


def test_every_reply_is_read_alike_by_every_client(any_client: Engine) -> None:
    engine = any_client
    engine.add("d", data=b"\xff", delay=1)
    engine.add("a", "b", data=b"\xff")
    engine.retry_run(engine.take_one(), SECOND)
    assert engine.view("a").stored.reason == "boom"
    assert engine.view("d").score == 1_700_000_001_000
    assert engine.call(commands.look_group("g", engine.now))[0] == "parked"
    assert engine.call(commands.list_groups("0")) == ("0", ["g"])
    assert engine.call(commands.list_waiting("0", 10)) == ("0", ["a", "b"], [])
    assert engine.call(commands.list_jobs("delayed", 0, 10)) == ["d"]
    assert engine.call(commands.stats(5)).failures[0][:3] == ["a", 1, "boom"]
    engine.call(commands.beat("w", "{}", SECOND, [("ghost", 1)], engine.now))
    assert engine.run(engine.operations.repair()).clean
    engine.pass_time(SECOND)
    assert engine.run_all() == ["a", "b", "d"]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:20])
def test_any_text_is_a_group_a_job_and_a_worker(engine: Engine, name: str) -> None:
    engine.add(name, "second", group=name)
    engine.add("other", group="other")
    taken = engine.take_one(worker=name)
    assert (taken.id, record.unpack(taken.record).group_id, engine.view(name).worker) == (name, name, name)
    assert engine.add(name).duplicates == [0]
    engine.retry_run(taken, SECOND)
    assert engine.call(commands.look_group(name, engine.now))[0] == "parked"
    assert sorted(engine.call(commands.list_groups("0"))[1]) == sorted([name, "other"])
    engine.pass_time(SECOND)
    engine.take_one(worker=name)
    assert [(one.id, one.group_id) for one in engine.stall()] == [(name, name)]
    assert sorted(engine.run_all()) == sorted([name, "second", "other"])
    assert engine.state(name) == "completed"
    assert engine.violations() == []


@pytest.mark.parametrize("name", [name for name in HOSTILE if "{" not in name and "}" not in name])
def test_any_text_is_a_queue_and_touches_no_other(make_engine: MakeEngine, name: str) -> None:
    mine, other = make_engine(name=name), make_engine(name=name[:2000] + "2")
    other.add("a")
    before = {key: value for key, value in mine.digest().items() if key.startswith(other.keys.base.encode())}
    mine.add("a", "b")
    assert mine.run_all() == ["a", "b"]
    mine.run(mine.operations.repair())
    mine.run(mine.operations.obliterate())
    assert mine.digest() == before


def test_groups_whose_names_resemble_our_keys_do_not_collide(engine: Engine) -> None:
    names = ["x", "x:active", "g:x", ":x", "meta", "jobs", "ready"]
    for name in names:
        engine.add(f"1 {name}", f"2 {name}", group=name)
    assert len(engine.take(100)) == len(names)
    engine.stall()
    assert sorted(engine.run_all(3)) == sorted(f"{n} {name}" for name in names for n in (1, 2))
