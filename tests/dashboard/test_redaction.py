"""Redacted values appear nowhere: not on pages, not in streams, not in searches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq import ConfigurationError, Queue
from groupmq.dashboard.redaction import REDACTED, Redactor
from tests.dashboard.conftest import MakeSite

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


def test_a_header_is_hidden_by_its_name() -> None:
    assert Redactor(["authorization"]).header("Authorization", f"Bearer {SECRET}") == REDACTED
    assert Redactor(["authorization"]).header("trace", "password=1") == "password=1"
    assert Redactor(["password"]).header("note", f"password={SECRET}") == f"password={REDACTED}"
    assert Redactor(lambda value, kind: f"{kind}:{len(value)}").header("a", "abc") == "header:3"
    assert Redactor(None).header("a", "abc") == "abc"


async def test_headers_are_hidden_on_the_page_of_a_job(queue: Queue, make_site: MakeSite) -> None:
    item = {"data": 1, "headers": {"Authorization": f"Bearer {SECRET}", "trace": "abc"}}
    (job,) = await queue.add_many([item])
    site = make_site(redact=["authorization"])
    page = await site.json("job", queue=queue.name, job=job.id)
    assert page["headers"] == {"Authorization": REDACTED, "trace": "abc"}
    assert SECRET not in await site.page("job", queue=queue.name, job=job.id)


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_nothing_about_a_search_shows_whether_hidden_text_was_found(
    queue: Queue, make_site: MakeSite, limit: int
) -> None:
    """Neither the number of jobs searched nor the cursor of the next page may reveal it."""
    for n in range(4):
        await queue.add({"password": SECRET, "n": n}, group_id="a")
    site = make_site(redact=["password"])
    answers = [await site.json("jobs", queue=queue.name, q=f"data:{text}", limit=limit) for text in (SECRET, "nothing")]
    told = [{name: one[name] for name in ("jobs", "next", "scanned", "total", "complete")} for one in answers]
    assert told[0] == told[1]
    assert told[0]["jobs"] == []


async def test_visible_text_is_found_page_by_page(queue: Queue, make_site: MakeSite) -> None:
    ids = [(await queue.add({"password": SECRET, "n": f"number {n % 2}"}, group_id="a")).id for n in range(30)]
    site = make_site(redact=["password"])
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await site.json("jobs", queue=queue.name, q='data:"number 1" group:a', limit=4, cursor=cursor)
        assert len(page["jobs"]) <= 4
        found += [job["id"] for job in page["jobs"]]
        cursor = page["next"]
    assert found == ids[1::2]
