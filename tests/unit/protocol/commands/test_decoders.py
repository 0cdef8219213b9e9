"""Decoders of values from servers and users, with valid, damaged and random input.

Invalid values from users (cursors, ids of events) are refused by name. Values from a server may be damaged or from a
later release: they count as missing, or raise an error that their reader expects. `make fuzz` searches longer.
"""

from __future__ import annotations

import base64
import contextlib
import os
import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupmq.client.answers import cursors, moving
from groupmq.client.answers.jobs import job_taken
from groupmq.client.answers.repeats import Definition
from groupmq.core import events, record
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.errors import ConfigurationError
from groupmq.core.events import Entry, Position
from groupmq.core.partitions import PLACES, carried, carrying, home_of
from groupmq.core.positions import Positions
from groupmq.core.snapshot import Snapshot
from groupmq.protocol import commands
from groupmq.protocol.call import StoredState, state_of
from groupmq.protocol.commands import FRESH, Taken, measures

LONG = "FUZZ" in os.environ
searching = settings(
    max_examples=int(os.environ.get("FUZZ", "60")),
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=list(HealthCheck),
)
DAMAGED = (
    struct.error,
    IndexError,
    ValueError,
    TypeError,
    KeyError,
    RecursionError,
    OverflowError,
    msgspec.MsgspecError,
)
"""The errors that reading damaged bytes may raise. Every reader expects all of them."""
DEEP = b"\x91" * 14_000
"""Arrays nested deeper than a decoder can follow."""

numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-2, 300)
simple = st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=12) | st.binary(max_size=12)
values = st.recursive(
    simple, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
packed = values.map(msgspec.msgpack.encode)


@st.composite
def damaged(draw: st.DrawFn, sound: st.SearchStrategy[bytes]) -> bytes:
    """Valid bytes with some cut off, changed, inserted or deleted; or noise."""
    raw = bytearray(draw(sound))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        match draw(st.sampled_from(("cut", "change", "insert", "remove", "noise", "deep"))):
            case "cut":
                del raw[at:]
            case "change" if raw:
                raw[at] = draw(st.integers(0, 255))
            case "insert":
                raw[at:at] = draw(st.binary(max_size=8))
            case "remove":
                del raw[at : at + draw(st.integers(1, 8))]
            case "noise":
                raw = bytearray(draw(st.binary(max_size=80)))
            case "deep":
                raw[at:at] = DEEP
    return bytes(raw)


def either(read: Callable[[], Any]) -> Any:
    """The value that was read; None if it was refused with an error that readers expect."""
    try:
        return read()
    except DAMAGED:
        return None


# Values from users


@searching
@given(st.lists(simple.filter(lambda value: value == value), min_size=1, max_size=4))
def test_a_cursor_comes_back_as_it_was(parts: list[Any]) -> None:
    cursor = cursors.packed("kind", *parts)
    assert cursors.unpacked(cursor, "kind", *(type(part) for part in parts)) == parts


@searching
@given(damaged(packed).map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")) | st.text() | simple)
def test_a_cursor_that_is_none_is_refused_by_name(cursor: object) -> None:
    with contextlib.suppress(ConfigurationError):
        assert [type(part) for part in cursors.unpacked(cursor, "kind", str, int)] == [str, int]


def test_a_cursor_too_deep_to_follow_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"^cursor: "):
        cursors.unpacked(base64.urlsafe_b64encode(DEEP).decode(), "kind", str)


whole = st.integers(0, 2**64 - 1)
positions = st.builds(lambda ms, seq, n, at: Position(f"{ms}-{seq}", n, at), whole, whole, whole, st.integers(-1, 9999))


@searching
@given(st.lists(positions, min_size=1, max_size=5))
def test_ids_of_events_come_back_as_they_were(each: list[Position]) -> None:
    assert Positions.parse(str(Positions(each)), len(each)).each == each
    assert Position.parse(str(each[0])) == each[0]


@searching
@given(
    st.from_regex(r"[0-9~/_ -]{0,40}", fullmatch=True)
    | st.from_regex(r"-?[0-9]{1,30}-[0-9]{1,30}/[0-9]{1,4}/-?[0-9]{1,4}", fullmatch=True)
    | st.text()
    | simple
)
def test_an_id_of_an_event_that_is_none_is_refused_by_name(text: object) -> None:
    """A server refuses ids beyond 64 bits, and one such id in a read of many logs would stop them all."""
    with contextlib.suppress(ConfigurationError):
        ms, seq = Position.parse(text).stream_id.split("-")
        assert 0 <= int(ms) < 2**64
        assert 0 <= int(seq) < 2**64
    with pytest.raises(ConfigurationError, match=r"^since: "):
        Positions.parse(text, 7)


@pytest.mark.parametrize(
    "text", [f"{2**64}-0/1/0", f"0-{2**64}/1/0", "1_0-0/1/0", " 1-0/1/0", "\u0663-0/1/0", "1-0/1/-2"]
)
def test_an_id_that_a_server_would_not_take_or_never_gave_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^since: "):
        Position.parse(text)


@searching
@given(st.text(max_size=40) | st.integers(0, PLACES - 1).map(lambda place: carrying("abcdefghijkl", place)))
def test_every_id_has_a_home(job_id: str) -> None:
    if not any(0xD800 <= ord(letter) < 0xE000 for letter in job_id):
        assert 0 <= home_of(job_id) < PLACES
        assert carried(job_id) in (None, home_of(job_id))


# Values that a server has stored


@st.composite
def records(draw: st.DrawFn) -> bytes:
    options: dict[str, Any] = draw(st.dictionaries(st.sampled_from(("t", "b", "y", "f", "h", "x")), values, max_size=3))
    group = draw(texts).encode()
    body = record.pack_body(draw(st.integers(0, 65_535)), draw(st.booleans()), group, options, draw(st.binary()))
    return draw(st.binary(min_size=22, max_size=22)) + body


class Nobody:
    options = None


def make_job(job_id: str, state: str, stored: record.Stored) -> Snapshot:
    return Snapshot(Nobody(), JSON, job_id, state, stored, 3)


@searching
@given(damaged(records()))
def test_a_damaged_record_is_read_or_refused(raw: bytes) -> None:
    found = either(lambda: record.unpack(raw))
    if found is not None:
        assert 0 <= found.max_attempts < 2**16
        assert either(lambda: moving.group_of_record(raw)) == found.group_id
        assert found.data == record.parts(raw)[3]


@searching
@given(damaged(records()))
def test_a_job_with_a_damaged_record_says_so_when_it_is_made_and_not_later(raw: bytes) -> None:
    """A worker skips such a job. If the job failed only later, in the middle of the worker's code, other jobs would
    suffer."""
    try:
        job = job_taken(make_job, Taken("a", 1, FRESH, raw), 1, "w")
    except Exception:
        return
    assert (job.id, job.fence, job.attempts_made) == ("a", 1, 0)
    assert isinstance(job.priority, int)
    assert isinstance(job.order_ms, int)
    assert isinstance(job.max_attempts, int)
    assert job.timeout is None or isinstance(job.timeout, float)
    assert job.backoff is None or isinstance(job.backoff, Backoff)
    assert isinstance(repr(job), str)


states = st.builds(StoredState, *[st.integers(0, 2**48)] * 4, texts, texts, texts, st.integers(0, 2**52), texts)


@searching
@given(states)
def test_a_state_comes_back_as_it_was(state: StoredState) -> None:
    assert state_of(msgspec.msgpack.encode(list(state))) == state


@searching
@given(damaged(states.map(lambda state: msgspec.msgpack.encode(list(state)))))
def test_a_damaged_state_is_read_or_refused(raw: bytes) -> None:
    either(lambda: state_of(raw))


@searching
@given(damaged(packed.map(lambda raw: len(raw).to_bytes(4, "big") + raw + b"body")))
def test_a_damaged_definition_is_read_or_refused(raw: bytes) -> None:
    found = either(lambda: Definition.read(raw))
    if found is not None:
        assert found.raw == raw
        assert raw.endswith(found.body)


def six_each(counts: list[int]) -> bytes:
    return b"".join(n.to_bytes(6, "big") for n in counts)


counted = st.lists(st.integers(0, 2**48 - 1), min_size=8, max_size=8)


@searching
@given(damaged(counted.map(six_each)), st.integers(0, 40))
def test_measures_that_are_damaged_count_as_nothing(raw: bytes, count: int) -> None:
    found = measures.minute(raw)
    assert found.completed >= 0
    assert len(measures.numbers(raw, count)) == count
    assert measures._measured(raw).totals.completed >= 0


@searching
@given(counted, st.dictionaries(numbers, numbers, max_size=4))
def test_a_minute_comes_back_as_it_was(counts: list[int], spread: dict[int, int]) -> None:
    flat = [number for pair in spread.items() for number in pair]
    found = measures.minute(six_each(counts) + (msgspec.msgpack.encode(flat) if flat else b""))
    assert list(found[:8]) == counts
    assert dict(found.spread) == spread


# Entries of the log

kinds = st.sampled_from(("added", "active", "begun", "completed", "retrying", "failed", "stalled", "progress", "later"))
columns = st.lists(st.tuples(kinds, values, values, values, values).map(list), max_size=3)
entries = st.builds(lambda n, at, rows: msgspec.msgpack.encode([n, at, *rows]), numbers, numbers, columns)


@searching
@given(damaged(entries), st.none() | st.binary(max_size=20), st.binary(max_size=2))
def test_an_entry_of_the_log_is_read_or_says_nothing(raw: bytes, blob: bytes | None, name: bytes) -> None:
    """Whatever an entry contains, it must not stop the reading of the log."""
    fields = [b"e" + name, raw, *([] if blob is None else [b"b", blob])]
    entry = events.read([b"5-1", fields], JSON)
    assert isinstance(entry, Entry)
    assert entry.stream_id == "5-1"
    reader = events.LogReader("1-1", None)
    assert isinstance(reader.take(entry), list)
    assert reader.at == "5-1"


def test_a_sound_entry_is_read_whole() -> None:
    rows = [["completed", ["a", "b"], ["g", ""], 1, [2, -1]], ["added", ["c"], ["g"]]]
    entry = events.read([b"5-1", [b"e", msgspec.msgpack.encode([7, 1000, *rows]), b"b", b"[]"]], JSON)
    assert entry.number == 7
    assert [(one.kind, one.job_id, one.group_id) for one in entry.events] == [
        ("completed", "a", "g"),
        ("completed", "b", None),
        ("added", "c", "g"),
    ]
    assert entry.events[0].result == []


# Replies

REPLIES: dict[str, Any] = {
    "due": commands.due(commands.Policy(3, -1, {})),
    "get": commands.get(["a"]),
    "stats": commands.stats(),
    "series": commands.series(3),
    "attempts": commands.attempts("a"),
    "scan_groups": commands.scan_groups(),
    "look_groups": commands.look_groups(["g"]),
    "advance": commands.advance(
        worker="w", requester="w:0", request=1, outcomes=[], take=1, lease_ms=1, policy=commands.Policy(3, -1, {})
    ),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_that_is_not_of_our_functions_is_read_or_refused(name: str) -> None:
    """A server of another release, or a program that only resembles one, may answer anything."""

    @searching
    @given(st.lists(values | packed | st.lists(packed | numbers, max_size=6), max_size=14))
    def parse(reply: list[Any]) -> None:
        try:
            REPLIES[name].parse(reply)
        except (*DAMAGED, AttributeError):
            return

    parse()
