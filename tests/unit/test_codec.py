"""Serialization: JSON by default, any serializer by choice, and clear words when something cannot be stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq import codec
from groupmq.codec import JSON
from groupmq.errors import ConfigurationError, PayloadTooLarge
from tests.unit.hostile import Unprintable

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
    """A serializer that answers whatever it was told to."""

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
    y: int


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
