"""The page of failures: by class and shape, each row with its own actions."""

from __future__ import annotations

import pytest

from groupmq import Queue
from groupmq.dashboard.documents.failures import search_for
from tests.dashboard.busy import Busy
from tests.dashboard.conftest import MakeSite
from tests.dashboard.visitor import Site


async def test_failures_by_class_and_shape(busy: Busy, site: Site) -> None:
    page = await site.json("failures", queue="orders")
    (group,) = page["groups"]
    assert group["error_class"].endswith("FailJob")
    assert group["count"] == 1
    assert group["sample_job_id"] == busy.ids["failed"]
    found = await site.json("jobs", queue="orders", state="failed", q=group["q"])
    assert [job["id"] for job in found["jobs"]] == [busy.ids["failed"]]


async def test_each_row_of_the_failures_acts_on_its_own_jobs(queue: Queue, make_site: MakeSite) -> None:
    """A row matches messages of one shape, not all of the class; one without a class never matches all failed jobs."""
    messages = {
        "card": ["card 17 ending '4111' was declined", "card 18 ending '42' was declined"],
        "bank": ['the bank said "no" \\ twice', 'the bank said "not now" \\ twice'],
        "numbers": ["17", "18"],
    }
    for kind, reasons in messages.items():
        for n, reason in enumerate(reasons):
            await queue.add({}, job_id=f"{kind}-{n}")
            await queue.fail(f"{kind}-{n}", reason)
    site = make_site()
    rows = (await site.json("failures", queue=queue.name))["groups"]
    assert len(rows) == 3
    for row in rows:
        assert row["count"] == 2
        kind = row["sample_job_id"].partition("-")[0]
        if kind == "numbers":
            assert row["q"] == ""
            continue
        found = await site.json("jobs", queue=queue.name, state="failed", q=row["q"])
        assert {job["id"] for job in found["jobs"]} == {f"{kind}-0", f"{kind}-1"}
        assert (await site.plan("retry-matching", queue=queue.name, q=row["q"]))["jobs"] == 2
    html = await site.page("failures", queue=queue.name)
    assert html.count('data-action="retry-matching"') == 3, "one for all failures, and one for each of two rows"
    hidden = (await make_site(redact=["card"]).json("failures", queue=queue.name))["groups"]
    assert {row["q"] for row in hidden} == {""}, "a search by text would reveal the redacted text"


@pytest.mark.parametrize(
    ("error_class", "shape", "expected"),
    [
        ("shop.Declined", "card # ending '...' was declined", 'error:shop.Declined data:"was declined"'),
        ("KeyError", "'...'", "error:KeyError"),
        (None, "<id> # x", ""),
        ("x" * 480, "a message that is long enough", "error:" + "x" * 480),
    ],
)
def test_a_search_for_a_shape(error_class: str | None, shape: str, expected: str) -> None:
    assert search_for(error_class, shape) == expected
