"""Bytes from the keyboard are translated to actions."""

from __future__ import annotations

import pytest

from groupmq.cli.monitor.keyboard import KEYS, SEQUENCES, Decoder, KeyAction


def typed(*reads: bytes) -> list[KeyAction]:
    decoder = Decoder()
    return [action for raw in reads for action in decoder.feed(raw)] + decoder.end_wait()


@pytest.mark.parametrize(
    ("raw", "action"),
    [
        (b"\x1b[A", KeyAction.UP),
        (b"\x1bOA", KeyAction.UP),
        (b"\x1b[1;5A", KeyAction.UP),
        (b"k", KeyAction.UP),
        (b"\x1b[B", KeyAction.DOWN),
        (b"\x1b[5~", KeyAction.PAGE_UP),
        (b"\x1b[6;2~", KeyAction.PAGE_DOWN),
        (b"\x1b[H", KeyAction.FIRST),
        (b"\x1b[1~", KeyAction.FIRST),
        (b"\x1bOF", KeyAction.LAST),
        (b"\r", KeyAction.OPEN),
        (b"\n", KeyAction.OPEN),
        (b"\x1bOM", KeyAction.OPEN),
        (b"\x1b", KeyAction.BACK),
        (b"q", KeyAction.QUIT),
        (b"\x03", KeyAction.QUIT),
        (b"?", KeyAction.HELP),
        (b"z", KeyAction.OTHER),
        (b"\x00", KeyAction.OTHER),
        (b"\x1b[Z", KeyAction.OTHER),
        (b"\x1b[3~", KeyAction.OTHER),
        (b"\x1b[<0;1;1M", KeyAction.OTHER),
    ],
)
def test_a_key_has_one_meaning(raw: bytes, action: KeyAction) -> None:
    assert typed(raw) == [action]
    # The result must not depend on how the bytes are split into reads.
    assert typed(*(raw[i : i + 1] for i in range(len(raw)))) == [action]


def test_keys_that_come_at_once_are_taken_one_by_one() -> None:
    assert typed(b"jj\x1b[Apy") == [KeyAction.DOWN, KeyAction.DOWN, KeyAction.UP, KeyAction.PAUSE, KeyAction.YES]


def test_an_escape_waits_for_what_may_follow() -> None:
    decoder = Decoder()
    assert (decoder.feed(b"\x1b"), decoder.waiting) == ([], True)
    assert (decoder.feed(b"[B"), decoder.waiting) == ([KeyAction.DOWN], False)
    assert decoder.end_wait() == []


def test_two_escapes_are_two() -> None:
    assert typed(b"\x1b\x1b") == [KeyAction.BACK, KeyAction.BACK]
    assert typed(b"\x1b\x1b[A") == [KeyAction.BACK, KeyAction.UP]


def test_a_sequence_without_end_is_not_kept_for_ever() -> None:
    decoder = Decoder()
    decoder.feed(b"\x1b[" + b"1;" * 100)
    assert not decoder.waiting


def test_letters_beyond_ascii_answer_no_question() -> None:
    assert set(typed("日本é".encode())) == {KeyAction.OTHER}
    assert [raw for raw, action in (KEYS | SEQUENCES).items() if action is KeyAction.YES] == [b"y", b"Y"]
