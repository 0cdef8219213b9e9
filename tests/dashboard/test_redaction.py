"""What must not be seen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq import ConfigurationError
from groupmq.dashboard.redaction import REDACTED, Redactor

SECRET = "hunter2"


@pytest.mark.parametrize(
    "value",
    [
        {"password": SECRET},
        {"Password": SECRET},
        {"a": [{"b": {"PASSWORD": {"deep": SECRET}}}]},
        f"login failed: password={SECRET}",
        f'{{"password": "{SECRET}"}}',
        f"password: '{SECRET}'",
        f"x password = {SECRET}, y",
    ],
)
def test_named_fields_are_hidden_at_any_depth_and_in_text(value: Any) -> None:
    shown = repr(Redactor(["password"]).value(value, "data"))
    assert SECRET not in shown
    assert REDACTED in shown


def test_other_fields_stay() -> None:
    value = {"amount": 999, "note": "no pass", "list": [1, None, True]}
    assert Redactor(["password"]).value(value, "data") == value


def test_a_function_decides() -> None:
    redactor = Redactor(lambda value, kind: f"<{kind}>")
    assert redactor.value({"a": 1}, "data") == "<data>"
    assert redactor.text("trace", "stack") == "<stack>"
    assert redactor.text(None, "stack") is None


def test_a_function_that_raises_hides_the_value() -> None:
    def broken(value: Any, kind: str) -> Any:
        raise RuntimeError("no")

    assert Redactor(broken).value({"password": SECRET}, "data") == REDACTED


@pytest.mark.parametrize("bad", [[], [""], [1]])
def test_names_are_checked(bad: Any) -> None:
    with pytest.raises(ConfigurationError, match="redact"):
        Redactor(bad)


json = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(json)
def test_a_rule_for_names_changes_nothing_else(value: Any) -> None:
    assert Redactor(["some-name"]).value(value, "data") == value
