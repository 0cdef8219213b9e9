"""The arguments of `add`: every mistake is found before anything is sent, and named."""

from __future__ import annotations

import math
import string
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq import Queue
from groupmq.core import record
from groupmq.core.backoff import Backoff
from groupmq.core.drafts import FIELDS_OF_ITEMS, Draft, draft, drafts_from
from groupmq.core.errors import ConfigurationError, PayloadTooLarge
from groupmq.core.ids import new_id, new_ids
from groupmq.core.limits import Debounce, Throttle
from groupmq.core.queue_options import QueueOptions
from groupmq.core.schedule import Every
from tests.support.hostile import Opaque

OPTIONS = QueueOptions(name="q", max_payload=1000)
NOWHERE = "redis://127.0.0.1:1"
AWARE = datetime(2024, 1, 1, tzinfo=UTC)

BAD_ITEMS: list[tuple[str, dict[str, Any], str]] = [
    ("group_id", {"group_id": ""}, "a non-empty string"),
    ("group_id", {"group_id": 42}, "a non-empty string"),
    ("group_id", {"group_id": b"g"}, "a non-empty string"),
    ("group_id", {"group_id": True}, "a non-empty string"),
    ("group_id", {"group_id": ["g"]}, "a non-empty string"),
    ("group_id", {"group_id": "\udfff"}, "lone surrogates"),
    ("group_id", {"group_id": "ö" * 2049}, "at most 4096 bytes"),
    ("job_id", {"job_id": ""}, "a non-empty string"),
    ("job_id", {"job_id": 7}, "a non-empty string"),
    ("job_id", {"job_id": "\ud800"}, "lone surrogates"),
    ("job_id", {"job_id": "x" * 4097}, "at most 4096 bytes"),
    ("order_ms", {"order_ms": 2**63}, "an integer from -9223372036854775808 to 9223372036854775807"),
    ("order_ms", {"order_ms": -(2**63) - 1}, "an integer from"),
    ("order_ms", {"order_ms": 1.0}, "an integer from"),
    ("order_ms", {"order_ms": math.nan}, "an integer from"),
    ("order_ms", {"order_ms": True}, "an integer from"),
    ("order_ms", {"order_ms": "5"}, "an integer from"),
    ("order_ms", {"order_ms": AWARE}, "an integer from"),
    ("priority", {"priority": -1}, "an integer from 0 to 1023"),
    ("priority", {"priority": 1024}, "an integer from 0 to 1023"),
    ("priority", {"priority": 0.5}, "an integer from 0"),
    ("priority", {"priority": True}, "an integer from 0"),
    ("priority", {"priority": None}, "an integer from 0"),
    ("priority", {"priority": "high"}, "an integer from 0"),
    ("delay", {"delay": -1}, "between 0 s"),
    ("delay", {"delay": timedelta(seconds=-1)}, "between 0 s"),
    ("delay", {"delay": "5"}, "seconds"),
    ("delay", {"delay": True}, "seconds"),
    ("delay", {"delay": math.nan}, "between 0 s"),
    ("delay", {"delay": math.inf}, "between 0 s"),
    ("delay", {"delay": 10**400}, "between 0 s"),
    ("delay", {"delay": AWARE}, "seconds"),
    ("delay", {"delay": Opaque()}, "seconds"),
    ("run_at", {"run_at": datetime(2024, 1, 1)}, "an aware datetime (with a time zone)"),
    ("run_at", {"run_at": "tomorrow"}, "an aware datetime or epoch seconds"),
    ("run_at", {"run_at": True}, "an aware datetime or epoch seconds"),
    ("run_at", {"run_at": math.nan}, "before the year 6000"),
    ("run_at", {"run_at": 1_700_000_000_000.0}, "before the year 6000"),
    ("run_at", {"run_at": timedelta(1)}, "an aware datetime or epoch seconds"),
    ("max_attempts", {"max_attempts": 0}, "an integer from 1 to 65535"),
    ("max_attempts", {"max_attempts": -3}, "an integer from 1"),
    ("max_attempts", {"max_attempts": 65_536}, "an integer from 1"),
    ("max_attempts", {"max_attempts": 1.0}, "an integer from 1"),
    ("max_attempts", {"max_attempts": True}, "an integer from 1"),
    ("timeout", {"timeout": 0}, "between 0.001 s"),
    ("timeout", {"timeout": -1}, "between 0.001 s"),
    ("timeout", {"timeout": "1"}, "seconds"),
    ("timeout", {"timeout": True}, "seconds"),
    ("timeout", {"timeout": math.inf}, "between 0.001 s"),
    ("backoff", {"backoff": -1}, "a Backoff"),
    ("backoff", {"backoff": "exponential"}, "a Backoff"),
    ("backoff", {"backoff": True}, "a Backoff"),
    ("on_retry", {"on_retry": "skip"}, "'hold' or 'yield'"),
    ("on_retry", {"on_retry": False}, "'hold' or 'yield'"),
    ("ttl", {"ttl": 0}, "between 0.001 s"),
    ("ttl", {"ttl": -1}, "between 0.001 s"),
    ("ttl", {"ttl": math.nan}, "between 0.001 s"),
    ("ttl", {"ttl": "5"}, "seconds"),
    ("ttl", {"ttl": True}, "seconds"),
    ("ttl", {"ttl": AWARE}, "seconds"),
    ("dedupe", {"dedupe": "key"}, "a Throttle(key, ttl) or a Debounce(key, delay)"),
    ("dedupe", {"dedupe": ("key", 5)}, "a Throttle(key, ttl)"),
    ("dedupe", {"dedupe": True}, "a Throttle(key, ttl)"),
]
UNSTORABLE = [object(), {"x": object()}, "\ud800", lambda: None, 1j]


def item_at(position: int, item: object) -> Draft:
    """The draft of an item of `add_many` that follows this many valid ones."""
    return drafts_from(OPTIONS, [{"data": 0}] * position + [item])[position]


@pytest.mark.parametrize(
    ("argument", "fields", "expected"), BAD_ITEMS, ids=lambda v: str(v)[:30] if isinstance(v, str) else ""
)
def test_a_bad_argument_names_itself_what_was_expected_and_what_came(
    argument: str, fields: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        draft(OPTIONS, {"x": 1}, **fields)
    message = str(caught.value)
    assert message.startswith(f"{argument}: expected ")
    assert expected in message
    assert ", got " in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("argument", "fields", "expected"), BAD_ITEMS, ids=lambda v: str(v)[:30] if isinstance(v, str) else ""
)
def test_a_bad_item_of_add_many_names_its_position_too(argument: str, fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^items\[3\]\.{argument}: expected ") as caught:
        item_at(3, {"data": 1, **fields})
    assert expected in str(caught.value)


def test_delay_and_run_at_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match=r"^delay, run_at: give one of them, not both$"):
        draft(OPTIONS, 1, delay=0, run_at=0)


@pytest.mark.parametrize("fields", [{"delay": 5}, {"delay": 0}, {"run_at": AWARE}, {"run_at": 0}])
def test_a_debounce_brings_its_own_delay_and_takes_no_other(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"^dedupe: a Debounce brings its own delay"):
        draft(OPTIONS, 1, dedupe=Debounce("k", 5), **fields)
    assert draft(OPTIONS, 1, dedupe=Debounce("k", 5)).delay_ms == 5000
    assert draft(OPTIONS, 1, dedupe=Throttle("k", 5), **fields).dedupe == Throttle("k", 5)


def test_a_repeat_among_many_items_is_refused_by_name_and_none_is_no_repeat() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^items\[4\]\.repeat: repeating jobs are added one by one, with add\(\)"
    ):
        item_at(4, {"data": 1, "repeat": Every(5)})
    assert item_at(4, {"data": 1, "repeat": None}).data == b"1"


def test_a_ttl_is_in_whole_milliseconds_and_marked_in_the_record() -> None:
    with_ttl, without = draft(OPTIONS, 1, ttl=0.0011), draft(OPTIONS, 1)
    assert (with_ttl.ttl_ms, without.ttl_ms) == (2, 0)
    assert with_ttl.body[2] == record.HAS_TTL
    assert without.body[2] == 0
    assert draft(OPTIONS, 1, ttl=1, order_ms=5).body[2] == record.HAS_TTL | record.ORDER_GIVEN


def test_a_callable_backoff_is_refused_because_it_cannot_be_stored() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^backoff: a callable cannot be stored with a job; give it to the Queue"
    ):
        draft(OPTIONS, 1, backoff=lambda attempt, exc: 1)


@pytest.mark.parametrize("data", UNSTORABLE, ids=lambda v: type(v).__name__)
def test_data_that_cannot_be_serialized_is_refused(data: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^data(\.x)?: cannot be serialized"):
        draft(OPTIONS, data)


def test_data_larger_than_max_payload_is_refused_and_as_large_is_not() -> None:
    assert len(draft(OPTIONS, "x" * 998).data) == 1000
    with pytest.raises(PayloadTooLarge, match=r"^data: 1,001 bytes are more than max_payload \(1,000 bytes\)$"):
        draft(OPTIONS, "x" * 999)
    with pytest.raises(PayloadTooLarge, match=r"^items\[0\]\.data: 1,001 bytes"):
        item_at(0, {"data": "x" * 999})


@pytest.mark.parametrize("item", [5, "data", None, ["data"], b"x", object()])
def test_an_item_that_is_no_mapping_is_refused(item: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^items\[0\]: expected a mapping or a JobDraft, got "):
        item_at(0, item)


def test_an_unknown_key_is_refused_and_the_known_ones_are_listed() -> None:
    with pytest.raises(ConfigurationError, match=r"^items\[1\]: unknown prio; known: ") as caught:
        item_at(1, {"data": 1, "prio": 2})
    assert all(name in str(caught.value) for name in FIELDS_OF_ITEMS)


def test_an_item_without_data_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^items\[2\]: data is missing$"):
        item_at(2, {"group_id": "g"})


@pytest.mark.parametrize("items", [None, 5, True])
async def test_add_many_refuses_what_is_no_collection(items: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^items: expected "):
        await Queue("q", NOWHERE).add_many(items)


@pytest.mark.parametrize(("argument", "fields", "_expected"), BAD_ITEMS[::4])
async def test_add_refuses_before_it_talks_to_the_server(argument: str, fields: dict[str, Any], _expected: str) -> None:
    queue = Queue("q", NOWHERE)
    with pytest.raises(ConfigurationError, match=f"^{argument}: "):
        await queue.add(1, **fields)


def test_a_plain_draft_stores_no_options() -> None:
    d = draft(OPTIONS, {"x": 1})
    assert (d.group_id, d.priority, d.order_ms, d.delay_ms, d.run_at_ms, d.max_attempts) == (None, 0, None, 0, 0, 0)
    assert d.options is None
    assert d.nonce is None
    assert len(d.id) == 12


def test_every_given_option_is_in_the_body() -> None:
    d = draft(
        OPTIONS,
        {"x": 1},
        group_id="g",
        order_ms=-5,
        priority=1023,
        max_attempts=65_535,
        timeout=1.5,
        backoff=Backoff.fixed(2),
        on_retry="yield",
        job_id="mine",
    )
    stored = record.unpack(b"\x00\x07" + record.pack_order(-5) + bytes(12) + d.body)
    assert (stored.group_id, stored.max_attempts, stored.order_given, stored.data) == ("g", 65_535, True, b'{"x":1}')
    assert stored.options == {"t": 1500, "b": [2.0, 1.0, 2.0, 0.0], "y": True, "n": d.nonce}


def test_adds_of_the_same_id_are_distinguished_by_their_nonce() -> None:
    first, second = draft(OPTIONS, 1, job_id="x"), draft(OPTIONS, 1, job_id="x")
    assert first.nonce
    assert first.nonce != second.nonce


@pytest.mark.parametrize(
    ("fields", "delay_ms", "run_at_ms"),
    [
        ({"delay": 0}, 0, 0),
        ({"delay": 0.0001}, 1, 0),
        ({"delay": timedelta(seconds=2)}, 2000, 0),
        ({"run_at": AWARE}, 0, 1_704_067_200_000),
        ({"run_at": 12.5}, 0, 12_500),
        ({"run_at": -12.5}, 0, 0),
    ],
)
def test_delay_and_run_at_become_milliseconds(fields: dict[str, Any], delay_ms: int, run_at_ms: int) -> None:
    d = draft(OPTIONS, 1, **fields)
    assert (d.delay_ms, d.run_at_ms) == (delay_ms, run_at_ms)


@given(st.text(min_size=1, max_size=200).filter(lambda s: s.isascii() or not any("\ud800" <= c <= "\udfff" for c in s)))
def test_any_text_is_a_group_id_and_a_job_id(name: str) -> None:
    d = draft(OPTIONS, 1, group_id=name, job_id=name)
    assert (d.id, d.group_id) == (name, name)


def test_ids_that_are_drawn_together_are_like_those_drawn_one_by_one() -> None:
    many = list(islice(new_ids(), 1000))
    assert len(set(many)) == len(many)
    assert {len(one) for one in many} == {len(new_id())} == {12}
    assert set("".join(many)) == set(string.ascii_letters + string.digits + "-_")


def test_items_without_an_id_get_one_each_and_others_keep_theirs() -> None:
    drafts = drafts_from(OPTIONS, [{"data": 1}, {"data": 1, "job_id": "mine"}] * 100)
    made = {one.id for one in drafts[::2]}
    assert len(made) == 100
    assert {one.id for one in drafts[1::2]} == {"mine"}


@pytest.mark.parametrize("value", ["skip", True, None.__class__])
def test_a_bad_on_failed_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^on_failed: expected 'continue' or 'hold', got "):
        draft(OPTIONS, 1, on_failed=value)


@pytest.mark.parametrize("value", [0, -1, "1", True, 0.0001])
def test_a_bad_unique_for_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^unique_for: expected .*, got "):
        draft(OPTIONS, 1, job_id="a", unique_for=value)


def test_unique_for_needs_an_id() -> None:
    with pytest.raises(ConfigurationError, match=r"^unique_for: needs a job_id"):
        draft(OPTIONS, 1, unique_for=5)
    assert draft(OPTIONS, 1, job_id="a", unique_for=1.5).unique_ms == 1500


def test_what_a_job_says_of_its_group_is_in_its_record() -> None:
    flags = [draft(OPTIONS, 1, on_failed=value).body[2] for value in (None, "hold", "continue")]
    assert flags == [0, record.HOLDS, record.CONTINUES]
