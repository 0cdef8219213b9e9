"""The stored record: it is read back as it was written, and jobs that start later have smaller bytes."""

from __future__ import annotations

import re
import struct
from importlib import resources
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groupmq.core import record
from groupmq.core.drafts import draft
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol.commands import add

OPTIONS = QueueOptions(name="q")
orders = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
options = st.dictionaries(st.text(min_size=1, max_size=3), st.integers(-(2**63), 2**64 - 1), max_size=3)


def stored(priority: int, order_ms: int, arrival: int, created: int, body: bytes) -> bytes:
    """A record as lua/lib/record.lua builds it."""
    place = struct.pack(">H", 65535 - priority) + record.pack_order(order_ms)
    return place + (2**48 - 1 - arrival).to_bytes(6, "big") + created.to_bytes(6, "big") + body


@given(
    priority=st.integers(0, 1023),
    order=orders,
    arrival=st.integers(0, 2**48 - 1),
    created=st.integers(0, 2**48 - 1),
    attempts=st.integers(0, 65_535),
    given_order=st.booleans(),
    group=st.none() | texts,
    extra=options,
    data=st.binary(max_size=100),
)
def test_a_record_comes_back_as_it_was(
    priority: int,
    order: int,
    arrival: int,
    created: int,
    attempts: int,
    given_order: bool,
    group: str | None,
    extra: dict[str, Any],
    data: bytes,
) -> None:
    body = record.pack_body(attempts, given_order, (group or "").encode(), extra, data)
    assert record.unpack(stored(priority, order, arrival, created, body)) == record.Record(
        priority, order, arrival, created, attempts, given_order, group, extra, data
    )


@given(
    st.tuples(st.integers(0, 1023), orders, st.integers(0, 2**48 - 1)),
    st.tuples(st.integers(0, 1023), orders, st.integers(0, 2**48 - 1)),
)
def test_bytes_fall_by_priority_then_order_then_arrival(one: tuple[int, int, int], two: tuple[int, int, int]) -> None:
    assert (stored(*one, 0, b"") > stored(*two, 0, b"")) == (one < two)


@given(orders)
def test_an_add_sends_the_order_as_the_record_keeps_it(order: int) -> None:
    d = draft(OPTIONS, None, order_ms=order)
    assert add([d]).blob == record.pack_order(order) + d.body


@given(
    attempts=st.integers(0, 65_535),
    given_order=st.booleans(),
    has_ttl=st.booleans(),
    group=st.none() | texts,
    extra=options,
    data=st.binary(max_size=100),
)
def test_the_data_of_a_body_are_found_whatever_stands_before_them(
    attempts: int, given_order: bool, has_ttl: bool, group: str | None, extra: dict[str, Any], data: bytes
) -> None:
    body = record.pack_body(attempts, given_order, (group or "").encode(), extra, data, has_ttl=has_ttl)
    assert record.data_of(body) == data
    assert record.settings_of(body) == (attempts, extra)
    assert record.unpack(stored(0, 0, 0, 0, body)).order_given is given_order


def test_options_of_one_record_are_not_those_of_another() -> None:
    body = record.pack_body(0, False, b"", None, b"")
    assert record.unpack(stored(0, 0, 0, 0, body)).options == {}


def test_the_layout_is_the_one_that_lua_describes() -> None:
    text = (resources.files("groupmq.protocol") / "lua" / "lib" / "record.lua").read_text("utf-8")
    sizes = dict(re.findall(r"^  (\w+(?: key)?) +(\d+) bytes?", text, re.MULTILINE))
    assert sizes == {"sort key": "16", "created": "6", "max": "2", "flags": "1", "group": "2", "options": "2"}
    assert sum(int(sizes[name]) for name in ("sort key", "created", "max", "flags", "group")) == 27
