"""Whether a client gets JSON or a page follows from its Accept header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.dashboard.negotiation import prefers_json


@pytest.mark.parametrize(
    ("accept", "json"),
    [
        ("application/json", True),
        ("application/json, text/plain, */*", True),
        ("APPLICATION/JSON; charset=utf-8", True),
        ("application/*", True),
        ("text/html;q=0.1, application/json", True),
        ("text/html;q=0, */*", True),
        ("", False),
        ("*/*", False),
        ("text/html", False),
        ("text/html, application/json", False),
        ("text/html, application/json;q=0.9", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
        ("application/json;q=0", False),
        ("application/json;q=0, */*", False),
        ("application/json;q=nan", False),
        ("application/json;q=17", False),
        ("image/png", False),
        ("garbage;;;q=zz", False),
    ],
)
def test_the_type_with_the_higher_quality_is_served(accept: str, json: bool) -> None:
    assert prefers_json(accept) is json


@given(st.text())
def test_no_header_raises(accept: str) -> None:
    prefers_json(accept)
