"""Actions on many jobs: they run as tasks, at a rate, and can be stopped."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq import Queue
from tests.dashboard.tasks import failures, finished
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def test_clean_runs_as_a_task(queue: Queue, site: Site) -> None:
    await queue.add_many([{"data": n, "group_id": f"g{n % 7}"} for n in range(1200)])
    plan = await site.plan("clean", queue=queue.name, state="waiting")
    assert (plan["jobs"], plan["bulk"]) == (1200, True)
    task = await finished(site, await site.act("clean", 202, queue=queue.name, state="waiting"), queue.name)
    assert (task["state"], task["done"], task["fraction"]) == ("done", 1200, 1.0)
    assert await queue.get_waiting_count() == 0


async def test_clean_keeps_what_is_younger(queue: Queue, site: Site) -> None:
    await queue.add({})
    plan = await site.plan("clean", queue=queue.name, state="waiting", older="1h")
    assert (plan["jobs"], plan["effects"][0][:40]) == (0, "0 waiting jobs older than 1 h 0 m will b")
    task = await finished(site, await site.act("clean", 202, queue=queue.name, state="waiting", older="1h"), queue.name)
    assert (task["done"], task["matched"]) == (0, 0)
    assert await queue.get_waiting_count() == 1


async def test_clean_says_how_many_and_leaves_what_blocks_a_group(queue: Queue, site: Site) -> None:
    await failures(queue, 3)

    async def counted() -> bool:
        return bool((await site.plan("clean", queue=queue.name, state="failed", older="0.001s"))["jobs"] == 3)

    await eventually(counted, "all of them are old enough to be cleaned")
    blocker = await queue.add({}, group_id="user:1", on_failed="hold")
    await queue.fail(blocker.id, "declined")
    plan = await site.plan("clean", queue=queue.name, state="failed")
    assert plan["effects"][1] == "Jobs that block their group stay: somebody has to resolve them."
    await finished(site, await site.act("clean", 202, queue=queue.name, state="failed"), queue.name)
    assert [job.id for job in await queue.get_failed_jobs()] == [blocker.id]


async def test_clean_ends_though_more_jobs_end_meanwhile(
    queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await failures(queue, 3)
    opened = await site.dashboard.shared.catalogue.open(queue.name)
    clean, calls = opened.clean, 0

    async def on_a_busy_queue(*given: Any, **options: Any) -> int:
        nonlocal calls
        calls += 1
        removed = await clean(*given, **options)
        if calls < 100:
            await failures(queue, 1)
        return removed

    monkeypatch.setattr(opened, "clean", on_a_busy_queue)
    task = await finished(site, await site.act("clean", 202, queue=queue.name, state="failed"), queue.name)
    assert (task["state"], task["done"], await queue.get_failed_count()) == ("done", 3, 1)


async def test_retry_all_that_match(queue: Queue, site: Site) -> None:
    await failures(queue, 30)
    plan = await site.plan("retry-matching", queue=queue.name, q="group:g1")
    assert (plan["jobs"], len(plan["sample"])) == (10, 5)
    assert "(1 group)" in plan["order"]
    assert await queue.get_failed_count() == 30
    task = await finished(site, await site.act("retry-matching", 202, queue=queue.name, q="group:g1"), queue.name)
    assert (task["state"], task["matched"], task["done"]) == ("done", 10, 10)
    assert await queue.get_failed_count() == 20
    assert (await site.plan("retry-matching", queue=queue.name, q="group:nobody"))["refused"]


@pytest.mark.parametrize("action", ["retry-matching", "remove-matching"])
async def test_a_bulk_action_keeps_to_a_rate_and_can_be_stopped(queue: Queue, site: Site, action: str) -> None:
    await failures(queue, 20)
    plan = await site.plan(action, queue=queue.name, rate=0.1)
    assert "At 0.1 a second this takes about 3 m 20 s." in plan["effects"]
    begun = await site.act(action, 202, queue=queue.name, rate=0.1)
    task_id = begun["task"]["id"]
    listed = await site.json("tasks", queue=queue.name)
    assert [task["id"] for task in listed["tasks"]] == [task_id]
    stopped = await site.client.post(f"/api/v1/queues/{queue.name}/tasks/{task_id}/stop", json={})
    assert stopped.status_code == 200
    task = await finished(site, begun, queue.name)
    assert task["state"] == "stopped"
    assert not task["stoppable"]
    assert await queue.get_failed_count() >= 18


async def test_remove_all_that_match(queue: Queue, site: Site) -> None:
    await failures(queue, 30)
    plan = await site.plan("remove-matching", queue=queue.name, q="group:g2")
    assert (plan["jobs"], plan["danger"]) == (10, True)
    task = await finished(site, await site.act("remove-matching", 202, queue=queue.name, q="group:g2"), queue.name)
    assert task["done"] == 10
    assert await queue.get_failed_count() == 20


@pytest.mark.parametrize("action", ["retry-matching", "remove-matching"])
async def test_a_search_that_is_not_understood_stops_a_bulk_action(queue: Queue, site: Site, action: str) -> None:
    """Otherwise the action would match more jobs than was meant."""
    await failures(queue, 3)
    await site.plan(action, 422, queue=queue.name, q="older:soon")
    await site.act(action, 422, queue=queue.name, q="older:soon group:g1")
    assert await queue.get_failed_count() == 3


async def test_bulk_actions_are_limited(queue: Queue, site: Site) -> None:
    await failures(queue, 20)
    for _ in range(5):
        await site.act("retry-matching", 202, queue=queue.name, rate=0.1)
    await site.act("retry-matching", 429, queue=queue.name, rate=0.1)
