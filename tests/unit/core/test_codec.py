"""Serialization: JSON by default, any serializer by choice, and clear messages when something cannot be stored."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.core import codec
from groupmq.core.codec import JSON
from groupmq.core.errors import ConfigurationError, PayloadTooLarge
from groupmq.core.typed_json import TypedJSON
from tests.support.hostile import Unprintable

LIMIT = 1024 * 1024
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


class Answering:
    """A serializer that always returns the same value."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def encode(self, value: Any, /) -> bytes:
        if isinstance(self.answer, BaseException):
            raise self.answer
        answer: bytes = self.answer
        return answer

    def decode(self, raw: bytes, /) -> Any:
        return raw


@dataclass
class Point:
    x: int
    y: Any


@given(json_values)
def test_json_values_come_back_equal(value: Any) -> None:
    assert JSON.decode(codec.encode(JSON, value, LIMIT, "data")) == value


@pytest.mark.parametrize("value", [2**53 + 1, -(2**63), 2**64, 10**30, [], {}, "", "|||", "\x00\u2028\U0001f600"])
def test_what_breaks_other_queues_comes_back_exactly(value: Any) -> None:
    assert JSON.decode(codec.encode(JSON, value, LIMIT, "data")) == value


def test_dates_ids_and_dataclasses_are_stored_as_plain_values() -> None:
    value = {"at": datetime(2024, 1, 1, tzinfo=UTC), "id": UUID(int=1), "point": Point(1, 2)}
    assert JSON.decode(codec.encode(JSON, value, LIMIT, "data")) == {
        "at": "2024-01-01T00:00:00Z",
        "id": "00000000-0000-0000-0000-000000000001",
        "point": {"x": 1, "y": 2},
    }


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Sku(str):
    __slots__ = ()


class Count(int):
    pass


class Stamp(datetime):
    pass


class Line(msgspec.Struct):
    sku: str
    price: Any = None


class Pair(NamedTuple):
    one: int
    two: int


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (Pair(1, 2), [1, 2]),
        ([Colour.RED, Level.LOW], ["red", 1]),
        ({Sku("x"): 1}, {"x": 1}),
        ({"line": Line("s")}, {"line": {"sku": "s", "price": None}}),
        (timedelta(days=1), "P1D"),
        (date(2024, 2, 29), "2024-02-29"),
        (defaultdict(int, a=1), {"a": 1}),
    ],
)
def test_conversions_of_the_rules(value: Any, stored: Any) -> None:
    assert JSON.decode(codec.encode(JSON, value, LIMIT, "data")) == stored


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            {"items": [1, 2, 3, {"price": math.nan}]},
            r"data\.items\[3\]\.price: cannot be serialized: nan has no form in JSON",
        ),
        ([math.inf], r"data\[0\]: cannot be serialized: inf has no form in JSON"),
        (-math.inf, r"data: cannot be serialized: -inf has no form in JSON"),
        (
            {"a": {1: "a", "1": "b"}},
            r"data\.a: cannot be serialized: the key 1 would come back as a string; use string keys",
        ),
        ({None: 1}, r"data: cannot be serialized: the key None is not a string"),
        ({"a b": {UUID(int=1): 1}}, r"data\['a b'\]: cannot be serialized: the key UUID"),
        ({Colour.RED: 1}, r"data: cannot be serialized: the key <Colour\.RED: 'red'> is not a string"),
        (
            {"price": Decimal("1.10")},
            r"data\.price: cannot be serialized: Decimal\('1\.10'\) would come back as a string",
        ),
        ({"raw": b"x"}, r"data\.raw: cannot be serialized: b'x' would come back as base64 text"),
        (
            {"raw": bytearray(b"x")},
            r"data\.raw: cannot be serialized: bytearray\(b'x'\) would come back as base64 text",
        ),
        ({"tags": {"a"}}, r"data\.tags: cannot be serialized: \{'a'\} would come back as a list"),
        ({"tags": frozenset()}, r"data\.tags: cannot be serialized: frozenset\(\) would come back as a list"),
        ({"lines": (Line("s", {"tax": math.nan}),)}, r"data\.lines\[0\]\.price\.tax: cannot be serialized: nan"),
        ({"point": Point(1, Decimal(2))}, r"data\.point\.y: cannot be serialized: Decimal\('2'\)"),
        (
            {"deep": [object()]},
            r"data\.deep\[0\]: cannot be serialized: <object .*>: JSON has no form for the type object",
        ),
        (
            {"a": [Sku("x")]},
            r"data\.a\[0\]: cannot be serialized: 'x' is of the type Sku, and JSON takes no subclass of str",
        ),
        (
            {"n": (Count(1),)},
            r"data\.n\[0\]: cannot be serialized: 1 is of the type Count, and JSON takes no subclass of int",
        ),
        ({"at": Stamp(2024, 1, 1)}, r"data\.at: cannot be serialized: .* and JSON takes no subclass of datetime"),
        ({"point": Point(1, Sku("x"))}, r"data\.point\.y: cannot be serialized: 'x' is of the type Sku"),
        (["ok", "\ud800"], r"data\[1\]: cannot be serialized: '\\ud800' has a lone surrogate"),
    ],
)
def test_what_would_come_back_changed_is_refused_by_its_path(value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        codec.encode(JSON, value, LIMIT, "data")


def nested() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize("value", [object(), {1, object()}, lambda: None, "\ud800", nested(), {(1, 2): 3}, 1j])
def test_what_cannot_be_serialized_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^data: ") as caught:
        codec.encode(JSON, value, LIMIT, "data")
    assert not isinstance(caught.value, PayloadTooLarge)


def test_a_value_that_contains_itself_is_named_so() -> None:
    with pytest.raises(ConfigurationError, match=r"^data: nested too deeply or contains itself$"):
        codec.encode(JSON, nested(), LIMIT, "data")


def test_too_many_bytes_are_refused_with_both_numbers() -> None:
    assert len(codec.encode(JSON, "x" * 998, 1000, "data")) == 1000
    with pytest.raises(PayloadTooLarge, match=r"^data: 1,001 bytes are more than max_payload \(1,000 bytes\)$"):
        codec.encode(JSON, "x" * 999, 1000, "data")


@pytest.mark.parametrize(
    "value",
    [math.nan, Decimal(1), b"x", bytearray(b"x"), memoryview(b"x"), {1}, {1: 2}, {None: 1}, {Colour.RED: 1}, object()],
)
def test_the_other_serializer_is_recommended_where_it_keeps_the_value(value: Any) -> None:
    try:
        codec.encode(TypedJSON(), value, LIMIT, "data")
        helps = True
    except ConfigurationError:
        helps = False
    with pytest.raises(ConfigurationError) as caught:
        codec.encode(JSON, value, LIMIT, "data")
    assert ("TypedJSON" in str(caught.value)) is helps
    with pytest.raises(ConfigurationError) as caught:
        codec.encode(JSON, value, LIMIT, "progress", may_be_typed=False)
    assert "TypedJSON" not in str(caught.value)


@pytest.mark.parametrize("answer", ["text", None, bytearray(b"x"), memoryview(b"x"), 5])
def test_a_serializer_must_answer_bytes(answer: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^data: the serializer's result: expected bytes, got "):
        codec.encode(Answering(answer), 1, LIMIT, "data")


def test_bytes_of_a_serializer_are_taken_as_they_are() -> None:
    raw = bytes(range(256))
    assert codec.encode(Answering(raw), None, LIMIT, "data") == raw


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("x"), Unprintable(), RecursionError()])
def test_whatever_a_serializer_raises_becomes_one_clear_error(error: Exception) -> None:
    with pytest.raises(ConfigurationError, match=r"^return value: "):
        codec.encode(Answering(error), 1, LIMIT, "return value")
