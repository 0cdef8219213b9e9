"""TypedJSON: values come back equal and of the same type. Decoding creates only objects of the known types."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq import ConfigurationError, Queue, TypedJSON
from groupmq.core import codec

LIMIT = 1024 * 1024
TYPED = TypedJSON()
zones = st.sampled_from([UTC, timezone(timedelta(hours=-3, seconds=7, microseconds=5)), ZoneInfo("Europe/Stockholm")])
fixed = zones.filter(lambda zone: isinstance(zone, timezone))
atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62)
    | st.integers(max_value=-(2**62))
    | st.floats()
    | st.text()
    | st.sampled_from(["$", "$dict", "$int", "$tuple"])
    | st.binary()
    | st.decimals()
    | st.datetimes(timezones=st.none() | zones)
    | st.dates()
    | st.times(timezones=st.none() | fixed)
    | st.timedeltas()
    | st.uuids()
)
hashable = st.recursive(
    atoms.filter(lambda one: not (isinstance(one, Decimal) and one.is_snan())),
    lambda inner: st.frozensets(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(hashable, max_size=3)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["$set", "$dict", "$x"]), inner, max_size=3)
    ),
    max_leaves=12,
)
TAGS = "$int $float $decimal $datetime $date $time $timedelta $uuid $bytes $tuple $set $frozenset $dict".split()
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(TAGS),
            inner,
            max_size=1,
        )
    ),
    max_leaves=10,
)
KNOWN = (
    type(None), bool, int, float, str, list, dict, tuple, set, frozenset, bytes,
    Decimal, datetime, date, time, timedelta, UUID,
)  # fmt: skip


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same type at every depth. NaN counts as equal to NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one.hex() == other.hex() or (math.isnan(one) and math.isnan(other))
    if isinstance(one, Decimal):
        return bool(one.as_tuple() == other.as_tuple())
    if isinstance(one, datetime | time):
        return one == other and one.fold == other.fold and same_zone(one.tzinfo, other.tzinfo)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return alike(list(one.items()), list(other.items()))
    if isinstance(one, set | frozenset):
        return len(one) == len(other) and all(any(alike(a, b) for b in other) for a in one)
    return bool(one == other)


def same_zone(one: tzinfo | None, other: tzinfo | None) -> bool:
    return one == other and type(one) is type(other)


@given(values)
def test_a_value_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    raw = codec.encode(TYPED, value, LIMIT, "data")
    back = TYPED.decode(raw)
    assert alike(back, value), f"{value!r} came back as {back!r}"
    json.loads(raw)  # other tools can read it as well


@pytest.mark.parametrize(
    "value",
    [
        {"$tuple": [1]},
        {"$dict": [[1, 2]]},
        {"$unheard of": 1},
        {"a": {"$int": "0x1"}},
        {"$": 1},
        {"$set": [1], "b": 2},
        {1: "a", "1": "b"},
        {(1, 2): {3}},
        pytest.param(2**100_000, id="a very long number"),
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Stockholm"), fold=1),
        Decimal("-0E+3"),
        float("-inf"),
        -0.0,
    ],
)
def test_odd_values_come_back_too(value: Any) -> None:
    assert alike(TYPED.decode(TYPED.encode(value)), value)


@given(jsons)
def test_reading_anything_makes_known_types_or_raises_a_value_error(stored: Any) -> None:
    try:
        found = TYPED.decode(json.dumps(stored).encode())
    except ValueError:
        return
    assert only_known(found), repr(found)


def only_known(value: Any) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(only_known(key) and only_known(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return type(value) in KNOWN and all(map(only_known, value))
    return type(value) in KNOWN


@pytest.mark.parametrize(
    "raw",
    [
        b'{"$pickle": "gASVAAAA"}',
        b'{"$datetime": ["2024-01-01", "../../etc/passwd", 0]}',
        b'{"$int": 7}',
        b'{"$float": "1e3"}',
        b'{"$set": [[1]]}',
        b'{"$set": 5}',
        b'{"$dict": [[1]]}',
        b'{"$dict": {"a": 1}}',
        b'{"$bytes": "not base64!"}',
        b'{"$timedelta": [1]}',
        b'{"$timedelta": [1e99, 0, 0]}',
        b"[" * 400 + b"]" * 400,
    ],
)
def test_what_no_encoding_makes_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not TypedJSON"):
        TYPED.decode(raw)


class Colour(IntEnum):
    RED = 1


class Pair(NamedTuple):
    one: int
    two: int


class Odd(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, moment: datetime | None) -> str:
        return "odd"

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {0: value}
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, {"b": object()}]}, "data.a[1].b"),
        ({"a": ({"b c": Colour.RED},)}, "data.a[0]['b c']"),
        ([Pair(1, 2)], "data[0]"),
        ({"t": datetime(2024, 1, 1, tzinfo=Odd())}, "data.t"),
        ({"t": time(1, tzinfo=ZoneInfo("Europe/Stockholm"))}, "data.t"),
        (bytearray(b"x"), "data"),
        (["\ud800"], "data[0]"),
        (nested(101), "data"),
    ],
)
def test_what_it_cannot_keep_is_refused_by_its_path(value: Any, path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        codec.encode(TYPED, value, LIMIT, "data")
    assert str(caught.value).startswith(f"{path}: "), str(caught.value)


def test_a_value_as_deep_as_it_may_be_comes_back() -> None:
    assert TYPED.decode(TYPED.encode(nested(100))) == nested(100)


async def test_a_queue_takes_it_as_a_class_and_as_an_object() -> None:
    for serializer in (TypedJSON, TypedJSON()):
        options = Queue("q", "redis://127.0.0.1:1", serializer=serializer).options
        assert options.serializer.decode(options.serializer.encode((1,))) == (1,)
