"""Actions on jobs that block their group, and on jobs that others of their group have overtaken."""

from __future__ import annotations

import pytest

from tests.dashboard.busy import Busy
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def test_a_retry_says_when_others_of_the_group_have_run_since(busy: Busy, site: Site) -> None:
    since = await busy.queue.add(busy.data("complete"), group_id="user:failed")
    await eventually(lambda: _completed(busy, since.id), "another job of the group has run")
    plan = await site.plan("retry", job=busy.ids["failed"])
    assert "Jobs that stood behind it have run already: it will run after them." in plan["order"]
    plan = await site.plan("retry-matching", q="group:user:failed")
    assert "At least 1 job will run late: later jobs of its group have run already." in plan["order"]


async def blocked(busy: Busy, n: int = 1) -> list[str]:
    """A group whose first `n` jobs have failed and block it."""
    await busy.queue.pause_group("user:blocked")
    ids = []
    for _ in range(n + 1):
        ids.append((await busy.queue.add(busy.data("complete"), group_id="user:blocked", on_failed="hold")).id)
    for job_id in ids[:n]:
        await busy.queue.fail(job_id, "declined")
    await busy.queue.resume_group("user:blocked")
    return ids


@pytest.mark.parametrize("action", ["skip", "retry", "remove"])
async def test_a_job_that_blocks_its_group_is_decided_about(busy: Busy, site: Site, action: str) -> None:
    first, behind = await blocked(busy)
    plan = await site.plan(action, job=first)
    assert plan["refused"] is None
    assert "user:blocked, which it blocks, goes on." in plan["effects"]
    assert (await busy.queue.get_group("user:blocked")).state == "blocked"
    await site.act(action, job=first)
    await eventually(lambda: _completed(busy, behind), "the job behind it runs")


async def _completed(busy: Busy, job_id: str) -> bool:
    return (await busy.queue.require_job(job_id)).state == "completed"


async def test_of_several_jobs_that_block_a_group_each_is_decided_about(busy: Busy, site: Site) -> None:
    first, second, behind = await blocked(busy, 2)
    plan = await site.plan("skip", job=first)
    assert "user:blocked stays blocked: 1 other failed job must be resolved too." in plan["effects"]
    await site.act("skip", job=first)
    assert (await busy.queue.get_group("user:blocked")).blocked_by == second
    plan = await site.plan("resume-group", group="user:blocked")
    assert plan["effects"][0] == "1 failed job that blocks user:blocked will be skipped: given up."
    await site.act("resume-group", group="user:blocked")
    await eventually(lambda: _completed(busy, behind), "the job behind them runs")
    assert (await site.plan("skip", job=first))["refused"] == "The job blocks no group."
    await site.act("skip", 409, job=first)


async def test_failing_a_job_that_holds_its_group_says_that_the_group_stops(busy: Busy, site: Site) -> None:
    await busy.queue.pause_group("user:9")
    job = await busy.queue.add(busy.data("complete"), group_id="user:9", on_failed="hold")
    plan = await site.plan("fail", job=job.id)
    assert "It will block user:9 until somebody retries, skips or removes it." in plan["effects"]
    await site.act("fail", job=job.id, reason="declined")
    assert (await busy.queue.get_group("user:9")).blocked_by == job.id


async def test_the_lanes_show_blocked_groups_alone(busy: Busy, site: Site) -> None:
    first, _ = await blocked(busy)
    page = await site.json("lanes", queue="orders", state="blocked")
    (lane,) = page["lanes"]
    assert (lane["group_id"], lane["state"], lane["blocked_by"]) == ("user:blocked", "blocked", first)
    assert (page["queue"]["blocked"], page["total"]) == (1, 1)
    assert [one["count"] for one in page["states"]][1] == 1
    job = await site.json("job", queue="orders", job=first)
    assert job["blocks_since"] == lane["blocked_since"]
    assert [one["action"] for one in job["actions"]] == ["retry", "skip", "edit", "remove"]
