"""Bytes of a keyboard as actions."""

from __future__ import annotations

import pytest

from groupmq.cli.monitor.keys import KEYS, SEQUENCES, Action, Decoder


def typed(*reads: bytes) -> list[Action]:
    decoder = Decoder()
    return [action for raw in reads for action in decoder.feed(raw)] + decoder.settle()


@pytest.mark.parametrize(
    ("raw", "action"),
    [
        (b"\x1b[A", Action.UP),
        (b"\x1bOA", Action.UP),
        (b"\x1b[1;5A", Action.UP),
        (b"k", Action.UP),
        (b"\x1b[B", Action.DOWN),
        (b"\x1b[5~", Action.PAGE_UP),
        (b"\x1b[6;2~", Action.PAGE_DOWN),
        (b"\x1b[H", Action.FIRST),
        (b"\x1b[1~", Action.FIRST),
        (b"\x1bOF", Action.LAST),
        (b"\r", Action.OPEN),
        (b"\n", Action.OPEN),
        (b"\x1bOM", Action.OPEN),
        (b"\x1b", Action.BACK),
        (b"q", Action.QUIT),
        (b"\x03", Action.QUIT),
        (b"?", Action.HELP),
        (b"z", Action.OTHER),
        (b"\x00", Action.OTHER),
        (b"\x1b[Z", Action.OTHER),
        (b"\x1b[3~", Action.OTHER),
        (b"\x1b[<0;1;1M", Action.OTHER),
    ],
)
def test_a_key_has_one_meaning(raw: bytes, action: Action) -> None:
    assert typed(raw) == [action]
    # However it is cut into reads.
    assert typed(*(raw[i : i + 1] for i in range(len(raw)))) == [action]


def test_keys_that_come_at_once_are_taken_one_by_one() -> None:
    assert typed(b"jj\x1b[Apy") == [Action.DOWN, Action.DOWN, Action.UP, Action.PAUSE, Action.YES]


def test_an_escape_waits_for_what_may_follow() -> None:
    decoder = Decoder()
    assert (decoder.feed(b"\x1b"), decoder.waiting) == ([], True)
    assert (decoder.feed(b"[B"), decoder.waiting) == ([Action.DOWN], False)
    assert decoder.settle() == []


def test_two_escapes_are_two() -> None:
    assert typed(b"\x1b\x1b") == [Action.BACK, Action.BACK]
    assert typed(b"\x1b\x1b[A") == [Action.BACK, Action.UP]


def test_a_sequence_without_end_is_not_kept_for_ever() -> None:
    decoder = Decoder()
    decoder.feed(b"\x1b[" + b"1;" * 100)
    assert not decoder.waiting


def test_letters_beyond_ascii_answer_no_question() -> None:
    assert set(typed("日本é".encode())) == {Action.OTHER}
    assert [raw for raw, action in (KEYS | SEQUENCES).items() if action is Action.YES] == [b"y", b"Y"]
