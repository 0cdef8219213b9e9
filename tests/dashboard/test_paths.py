"""Ids in URLs: they may be any text, and are encoded so that no browser or proxy changes them."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.dashboard import paths

ids = st.text(min_size=0, max_size=60)


@pytest.mark.parametrize("plain", ["user:42", "8f3a", "a.b-c_d@e", "..."])
def test_a_plain_id_stands_as_it_is(plain: str) -> None:
    assert paths.segment(plain) == plain


@pytest.mark.parametrize("odd", ["", ".", "..", "a/b", "a b", "ä", "~x", "a%2fb", "a?b", "a#b", "x" * 201])
def test_an_odd_id_stands_in_letters(odd: str) -> None:
    segment = paths.segment(odd)
    assert segment.startswith("~")
    assert paths.unsegment(segment) == odd


@given(ids)
def test_every_id_comes_back(text: str) -> None:
    assert paths.unsegment(paths.segment(text)) == text


@given(ids, ids)
def test_an_id_cannot_leave_its_place_in_the_path(queue: str, job: str) -> None:
    url = paths.build("/base", "job", {"queue": queue, "job": job, "q": job, "none": None})
    parts = urlsplit(url)
    assert parts.path.count("/") == 5
    assert parts.path.startswith("/base/queues/")
    assert not parts.netloc
    assert not parts.fragment


@pytest.mark.parametrize("bad", ["~!", "~_w", "~gA"])
def test_an_address_that_is_not_ours_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="base64url"):
        paths.unsegment(bad)


@pytest.mark.parametrize("local", ["/", "/queues/orders?q=1", "/a//b"])
def test_a_local_path(local: str) -> None:
    assert paths.is_local(local)


@pytest.mark.parametrize(
    "foreign", ["", "//evil", "/\\evil", "http://evil", "javascript:alert(1)", "/a\nb", "\\x", "x"]
)
def test_a_path_to_elsewhere(foreign: str) -> None:
    assert not paths.is_local(foreign)
