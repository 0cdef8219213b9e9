"""Sessions, tokens of forms and passwords."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import HTTPConnection

from groupmq import ConfigurationError
from groupmq.dashboard.security import passwords
from groupmq.dashboard.security.auth import BasicAuth, HostAuth, LocalOnly, TokenAuth, allow_anyone, auth_of
from groupmq.dashboard.security.signing import Signer


@given(st.text(max_size=100))
def test_signed_text_is_read_back(text: str) -> None:
    signer = Signer(b"key", "test")
    assert signer.read(signer.sign(text, lifetime=60)) == text


@given(st.text(max_size=60))
def test_foreign_text_is_not_accepted(text: str) -> None:
    assert Signer(b"key", "test").read(text) is None


def test_a_signature_is_good_for_one_key_and_one_purpose_and_a_time() -> None:
    signed = Signer(b"key", "session").sign("ada", lifetime=60)
    assert Signer(b"other", "session").read(signed) is None
    assert Signer(b"key", "csrf").read(signed) is None
    assert Signer(b"key", "session").read(signed[:-2] + "xx") is None
    assert Signer(b"key", "session").read(Signer(b"key", "session").sign("ada", lifetime=-5)) is None


def test_a_password_is_kept_as_a_hash() -> None:
    hashed = passwords.hash_password("correct horse")
    assert "correct" not in hashed
    assert hashed != passwords.hash_password("correct horse")
    assert passwords.verify("correct horse", hashed)
    assert not passwords.verify("wrong", hashed)


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_what_is_no_hash_verifies_nothing(text: str) -> None:
    if not passwords.is_hash(text):
        assert not passwords.verify("", text)


def test_auth_says_what_it_was_given() -> None:
    assert isinstance(auth_of(None), LocalOnly)
    assert isinstance(auth_of("a-token-that-is-long"), TokenAuth)
    assert isinstance(auth_of({"ada": passwords.hash_password("x")}), BasicAuth)
    assert isinstance(auth_of(allow_anyone), HostAuth)


@pytest.mark.parametrize("bad", ["short", {"ada": "plain password"}, {}, 5])
def test_weak_or_odd_auth_is_refused(bad: object) -> None:
    with pytest.raises(ConfigurationError, match="auth"):
        auth_of(bad)  # type: ignore[arg-type]


def test_a_refusal_does_not_repeat_the_secret() -> None:
    with pytest.raises(ConfigurationError) as refused:
        auth_of({"ada": "hunter2"})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("answer", "user"), [("", None), (None, None), (False, None), ("ada", "ada"), (7, "7")])
async def test_a_check_that_names_nobody_lets_nobody_in(answer: Any, user: str | None) -> None:
    """An empty name is a common result of reading an empty session."""
    assert await auth_of(lambda request: answer).user(HTTPConnection({"type": "http", "headers": []})) == user
