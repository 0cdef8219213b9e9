"""The audit entries of bulk actions and of actions that were not allowed."""

from __future__ import annotations

from typing import Any

from groupmq import Queue
from groupmq.dashboard import hash_password
from tests.dashboard.conftest import MakeSite
from tests.dashboard.tasks import failures, finished
from tests.dashboard.visitor import basic


def said(entries: list[Any]) -> list[tuple[Any, ...]]:
    return [(one["user"], one["action"], one["outcome"], one["target"]) for one in entries]


async def test_the_end_of_a_bulk_action_names_who_stopped_it_and_what_it_was_about(
    queue: Queue, make_site: MakeSite
) -> None:
    entries: list[Any] = []
    site = make_site(auth={name: hash_password("x") for name in ("ada", "bob")}, audit=entries.append)
    await failures(queue, 20)
    site.client.headers["Authorization"] = basic("ada", "x")
    begun = await site.act("retry-matching", 202, queue=queue.name, q="group:g1", rate=0.1)
    site.client.headers["Authorization"] = basic("bob", "x")
    path = site.at("stop_task", queue=queue.name, task=begun["task"]["id"])
    assert (await site.client.post(f"/api/v1{path}", json={})).status_code == 200
    await finished(site, begun, queue.name)
    target = {"q": "group:g1", "rate": "0.1"}
    assert said(entries) == [
        ("ada", "retry-matching", "begun", target),
        ("bob", "retry-matching", "stopped", target),
    ]


async def test_a_bulk_action_that_ends_by_itself_is_of_who_began_it(queue: Queue, make_site: MakeSite) -> None:
    entries: list[Any] = []
    site = make_site(audit=entries.append)
    await failures(queue, 3)
    await finished(site, await site.act("clean", 202, queue=queue.name, state="failed"), queue.name)
    assert said(entries) == [
        ("local", "clean", "begun", {"state": "failed"}),
        ("local", "clean", "done", {"state": "failed"}),
    ]
    assert entries[-1]["count"] == 3


async def test_an_action_that_is_not_allowed_is_noted(queue: Queue, make_site: MakeSite) -> None:
    entries: list[Any] = []
    site = make_site(permissions=lambda user, action: action == "view", audit=entries.append)
    await queue.get_job_counts()
    await site.plan("pause", 403, queue=queue.name)
    assert entries == [], "looking at a plan is not an attempt to perform the action"
    await site.act("pause", 403, queue=queue.name)
    assert said(entries) == [("local", "pause", "refused", {})]
    assert not await queue.is_paused()
