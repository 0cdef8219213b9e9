"""Stored text is cut to a length."""

from __future__ import annotations

from groupmq.core.clipping import clipped


def test_stored_text_is_bounded_and_without_surrogates() -> None:
    assert clipped("x" * 100, 10) == "xxxxx\n...\nxxxxx"
    assert clipped("\ud800") == "\\ud800"
    assert clipped("short") == "short"
