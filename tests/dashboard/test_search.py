"""The search line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.dashboard import search


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("", {}),
        ("group:user:42", {"group_id": "user:42"}),
        ("id:8f3a error:TimeoutError", {"job_id": "8f3a", "error": "TimeoutError"}),
        ("worker:web-1", {"worker": "web-1"}),
        ('data:"card declined"', {"text": "card declined"}),
        ("card declined", {"text": "card declined"}),
        ("older:10m newer:1h", {"older": 600.0, "newer": 3600.0}),
        ("older:90", {"older": 90.0}),
        ("GROUP:a", {"group_id": "a"}),
        ("user:42", {"text": "user:42"}),  # no qualifier: a word like any other
        ('data:"say \\"hi\\""', {"text": 'say "hi"'}),
    ],
)
def test_a_line_is_words_and_qualifiers(line: str, arguments: dict[str, object]) -> None:
    parsed = search.parse(line)
    assert parsed.arguments == arguments
    assert not parsed.problems


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("older:soon", "not a duration"),
        ("older:-5", "not a duration"),
        ("older:99999999999", "not a duration"),
        ("group:", "no value"),
        ("group:a group:b", "twice"),
        ("x" * 600, "cut"),
    ],
)
def test_what_is_not_understood_is_said_and_does_not_count(line: str, problem: str) -> None:
    assert any(problem in said for said in search.parse(line).problems)


def test_the_last_of_two_counts() -> None:
    parsed = search.parse("group:a group:b")
    assert parsed.arguments == {"group_id": "b"}
    assert [term.value for term in parsed.terms] == ["b"]


@given(st.text(max_size=700))
def test_no_line_raises(line: str) -> None:
    search.parse(line)
    before, _, start = search.last_word(line)
    assert line.startswith(before)
    assert start in line


@given(st.text(min_size=1, max_size=50))
def test_a_quoted_value_is_read_back(value: str) -> None:
    parsed = search.parse(f"group:{search.quoted(value)}")
    assert parsed.arguments == {"group_id": value}


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("", ("", "", "")),
        ("gr", ("", "", "gr")),
        ("error:Time", ("", "error", "Time")),
        ("older:1h group:us", ("older:1h ", "group", "us")),
        ('older:1h data:"card de', ("older:1h ", "data", "card de")),
    ],
)
def test_the_last_word_of_the_line_is_the_one_being_typed(line: str, typed: tuple[str, str, str]) -> None:
    assert search.last_word(line) == typed
