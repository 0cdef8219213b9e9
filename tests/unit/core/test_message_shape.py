"""The shape of an error message."""

from __future__ import annotations

import pytest

from groupmq.core.message_shape import shape_of


@pytest.mark.parametrize(
    ("reason", "shape"),
    [
        ("order 17 not found", "order # not found"),
        ("order 18 not found", "order # not found"),
        ("took 1.5 s of 10:30", "took # s of #"),
        ("KeyError: 'user'", "KeyError: '...'"),
        ('no such user "ann"', "no such user '...'"),
        ("job 0190f3a2-7b1c-7def-8123-0123456789ab failed", "job <id> failed"),
        ("session 8f3ab21c ended", "session <id> ended"),
        ("at 0x7f00deadbeef", "at <id>"),
        ("key V1StGXR8_Z5j of user17", "key <id> of user#"),
        ("sha256 of deadline", "sha# of deadline"),
        ("x1 y2", "x# y#"),
        ("first line 5\nsecond line", "first line #"),
        ("  padded  ", "padded"),
        ("", ""),
        ("don't 'quote' me", "don't '...' me"),
    ],
)
def test_numbers_ids_and_quoted_text_are_left_out(reason: str, shape: str) -> None:
    assert shape_of(reason, None) == shape


def test_the_class_that_a_message_begins_with_is_left_out() -> None:
    assert shape_of("CardDeclined: no money", "shop.errors.CardDeclined") == "no money"
    assert shape_of("CardDeclined", "shop.errors.CardDeclined") == ""
    assert shape_of("CardDeclinedTwice: x", "shop.errors.CardDeclined") == "CardDeclinedTwice: x"


@pytest.mark.parametrize("reason", ["'" * 100_000, "a1" * 50_000, "1," * 50_000, '"' + "x" * 100_000, "-" * 100_000])
def test_a_long_message_has_a_short_shape(reason: str) -> None:
    assert len(shape_of(reason, None)) <= 200
