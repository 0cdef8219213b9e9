"""Every action: first the plan, then the change."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from groupmq import Backoff, Every, Queue, RateLimit
from groupmq.dashboard.actions import one_group
from groupmq.dashboard.actions.catalogue import ACTIONS
from tests.dashboard.busy import DEEP, HELD, PAUSED, Busy
from tests.dashboard.tasks import finished
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def test_retry(busy: Busy, site: Site) -> None:
    plan = await site.plan("retry", job=busy.ids["failed"])
    assert plan["jobs"] == 1
    assert plan["refused"] is None
    assert "original position in user:failed" in plan["order"]
    assert await busy.queue.get_failed_count() == 1
    await site.act("retry", job=busy.ids["failed"])
    await eventually(lambda: _attempts(busy), "the job runs again")


async def _attempts(busy: Busy) -> bool:
    return len(await busy.queue.get_attempts(busy.ids["failed"])) == 2


async def test_an_action_in_the_wrong_state_is_refused(busy: Busy, site: Site) -> None:
    plan = await site.plan("retry", job=busy.ids["completed"])
    assert plan["refused"] == "The job is completed; this works only if it is failed."
    outcome = await site.act("retry", 409, job=busy.ids["completed"])
    assert not outcome["ok"]
    assert "is completed" in outcome["text"]


async def test_remove_says_who_moves_up(busy: Busy, site: Site) -> None:
    plan = await site.plan("remove", job=busy.ids["behind"])
    assert plan["order"] == f"1 job of {HELD} behind it will move up by one; their order stays the same."
    assert plan["danger"]
    await site.act("remove", job=busy.ids["behind"])
    assert await busy.queue.get_job(busy.ids["behind"]) is None


async def test_promote(busy: Busy, site: Site) -> None:
    await site.plan("promote", job=busy.ids["delayed"])
    await site.act("promote", job=busy.ids["delayed"])
    await eventually(lambda: _is(busy, "delayed", "completed"), "the promoted job has run")


async def test_a_held_head_is_retried_without_the_rest_of_its_back_off(busy: Busy, site: Site) -> None:
    head = busy.ids["held"]
    plan = await site.plan("promote", job=head)
    assert (plan["title"], plan["button"]) == ("Retry this job now", "Retry now")
    assert plan["effects"] == ["Attempt 2 will start as soon as it can; the rest of the back-off is skipped."]
    actions = (await site.json("job", queue="orders", job=head))["actions"]
    assert [one["label"] for one in actions if one["action"] == "promote"] == ["Retry now"]
    assert "Retry it now" in await site.page("group", queue="orders", group=HELD)
    await site.act("promote", job=head)
    await eventually(lambda: _is(busy, "held", "failed"), "its second and last attempt has failed")


async def test_a_job_that_waits_for_no_time_cannot_be_promoted(busy: Busy, site: Site) -> None:
    plan = await site.plan("promote", job=busy.ids["waiting"])
    assert plan["refused"] == "The job is waiting already; there is no delay to skip."
    await site.act("promote", 409, job=busy.ids["waiting"])


async def _is(busy: Busy, name: str, state: str) -> bool:
    return (await busy.queue.require_job(busy.ids[name])).state == state


async def test_change_delay(busy: Busy, site: Site) -> None:
    before = (await busy.queue.require_job(busy.ids["delayed"])).run_at
    await site.act("change-delay", job=busy.ids["delayed"], delay="2h")
    after = (await busy.queue.require_job(busy.ids["delayed"])).run_at
    assert before is not None
    assert after is not None
    assert (after - before).total_seconds() > 3000


@pytest.mark.parametrize("delay", ["", "soon", "-5"])
async def test_a_bad_delay_is_said_and_nothing_is_done(busy: Busy, site: Site, delay: str) -> None:
    answer = await site.submit("change-delay", job=busy.ids["delayed"], delay=delay)
    assert answer.status_code == 422
    assert busy.ids["delayed"] in answer.text
    await site.act("change-delay", 422, job=busy.ids["delayed"], delay=delay)


async def test_edit_keeps_integers_exact(busy: Busy, site: Site) -> None:
    big = 90071992547409931234567890
    plan = await site.plan("edit", job=busy.ids["delayed"])
    assert '"amount": 999' in plan["fields"][0]["value"]
    answer = await site.submit("edit", job=busy.ids["delayed"], data=f'{{"n": {big}}}')
    assert answer.status_code == 303
    page = await site.client.get(f"/queues/orders/jobs/{busy.ids['delayed']}", headers={"Accept": "application/json"})
    assert str(big) in page.text


@pytest.mark.parametrize("data", ["", "{", "NaN", "[1,]"])
async def test_data_that_is_not_json_is_refused(busy: Busy, site: Site, data: str) -> None:
    answer = await site.submit("edit", job=busy.ids["delayed"], data=data)
    assert answer.status_code == 422
    assert (await busy.queue.require_job(busy.ids["delayed"])).data["amount"] == 999


async def test_fail_with_a_reason(busy: Busy, site: Site) -> None:
    await site.act("fail", job=busy.ids["behind"], reason="not wanted")
    job = await busy.queue.require_job(busy.ids["behind"])
    assert (job.state, job.failed_reason) == ("failed", "not wanted")


async def test_cancel_a_running_job(busy: Busy, site: Site) -> None:
    plan = await site.plan("cancel", job=busy.ids["active"])
    assert "handler will be stopped" in plan["effects"][0]
    await site.act("cancel", job=busy.ids["active"])
    await eventually(lambda: _is(busy, "active", "failed"), "the handler was stopped")


async def test_pause_and_resume_a_group(busy: Busy, site: Site) -> None:
    plan = await site.plan("pause-group", group=HELD)
    assert plan["jobs"] == 3
    await site.act("pause-group", group=HELD)
    assert (await busy.queue.get_group(HELD)).paused
    assert (await site.plan("pause-group", group=HELD))["refused"]
    await site.act("resume-group", group=HELD)
    await site.act("resume-group", group=PAUSED)
    await eventually(lambda: _is(busy, "paused", "completed"), "the resumed group has run")


async def test_limits_of_a_group(busy: Busy, site: Site) -> None:
    for action in ("group-concurrency", "group-rate"):
        plan = await site.plan(action, group=HELD)
        assert plan["jobs"] == 3
        assert plan["effects"][0].endswith("; 3 jobs wait.")
    await site.act("group-concurrency", group=DEEP, concurrency=3)
    await site.act("group-rate", group=DEEP, limit=5, per="2s")
    group = await busy.queue.get_group(DEEP)
    assert group.concurrency == 3
    assert group.rate_limit == RateLimit(5, per=2.0)
    assert (await site.json("group", queue="orders", group=DEEP))["settings"]["rate_limit"] == "5 in 2 s"
    await site.act("group-concurrency", group=DEEP)
    await site.act("group-rate", group=DEEP)
    assert (await busy.queue.get_group(DEEP)).concurrency == 1
    await site.act("group-concurrency", 422, group=DEEP, concurrency="many")
    await site.act("group-rate", 422, group=DEEP, limit=5, per="often")


async def test_cancel_a_group(busy: Busy, site: Site) -> None:
    plan = await site.plan("cancel-group", group=HELD)
    assert plan["jobs"] == 3
    outcome = await site.act("cancel-group", group=HELD)
    assert outcome["count"] == 3
    assert (await busy.queue.get_group(HELD)).waiting == 0


async def test_a_large_group_is_cancelled_by_a_task(queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_group, "_LOOK_EVERY", 0.001)
    await queue.add_many([{"data": n, "group_id": "g"} for n in range(one_group.MANY + 1)])
    await queue.add({}, group_id="other")
    outcome = await site.act("cancel-group", 202, queue=queue.name, group="g")
    task = await finished(site, outcome, queue.name)
    assert (task["state"], task["done"], task["matched"]) == ("done", one_group.MANY + 1, one_group.MANY + 1)
    assert (await queue.get_group("g")).waiting == 0
    assert await queue.get_waiting_count() == 1


async def test_a_task_that_cancels_a_group_can_be_stopped(
    queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, ended = asyncio.Event(), asyncio.Event()

    async def slow(group_id: str) -> int:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 0

    monkeypatch.setattr(one_group, "MANY", 0)
    await queue.add({}, group_id="g")
    opened = await site.dashboard.shared.catalogue.open(queue.name)
    monkeypatch.setattr(opened, "cancel_group", slow)
    outcome = await site.act("cancel-group", 202, queue=queue.name, group="g")
    await reached.wait()
    path = site.at("stop_task", queue=queue.name, task=outcome["task"]["id"])
    assert (await site.client.post(f"/api/v1{path}", json={})).status_code == 200
    task = await finished(site, outcome, queue.name)
    assert task["state"] == "stopped"
    assert ended.is_set(), "stopping the task must also end its work"


async def test_pause_and_resume_the_queue(busy: Busy, site: Site) -> None:
    plan = await site.plan("pause")
    assert plan["jobs"] == 5
    await site.act("pause")
    assert (await site.json("queue", queue="orders"))["queue"]["paused"]
    assert (await site.plan("pause"))["refused"]
    await site.act("resume")
    assert not await busy.queue.is_paused()


async def test_add_a_job(queue: Queue, site: Site) -> None:
    await queue.get_job_counts()
    fields: dict[str, Any] = {
        "data": {"n": 1},
        "group": "a/b",
        "delay": "1h",
        "priority": 3,
        "job": "mine",
        "attempts": 7,
    }
    outcome = await site.act("add", queue=queue.name, **fields)
    assert outcome["count"] == 1
    job = await queue.require_job("mine")
    assert (job.data, job.group_id, job.state, job.priority, job.max_attempts) == ({"n": 1}, "a/b", "delayed", 3, 7)
    again = await site.act("add", 409, queue=queue.name, **fields)
    assert again["count"] == 0
    for bad in ({"priority": 5000}, {"delay": "soon"}, {"attempts": 0}):
        await site.act("add", 422, queue=queue.name, data=1, **bad)
    text = await site.submit("add", queue=queue.name, data='"text"')
    assert text.status_code == 303
    for odd in ({"job": ["a"]}, {"group": {"a": 1}}):
        await site.act("add", 422, queue=queue.name, data=1, **odd)


async def test_a_form_that_is_sent_twice_adds_one_job(queue: Queue, site: Site) -> None:
    await queue.get_job_counts()
    plan = await site.plan("add", queue=queue.name)
    form = await site.page("action", queue=queue.name, action="add")
    assert 'name="once"' in form
    assert plan["hidden"]["once"] not in form, "each form gets another token"
    for _ in range(2):
        answer = await site.submit("add", queue=queue.name, data="1", **plan["hidden"])
        assert answer.status_code == 303
    assert (await queue.get_job_counts()).waiting == 1
    again = await site.act("add", queue=queue.name, data=1, **plan["hidden"])
    assert (again["ok"], again["count"]) == (True, 0)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
async def test_a_number_that_json_has_not_is_refused(queue: Queue, site: Site, number: str) -> None:
    await queue.get_job_counts()
    answer = await site.submit("add", queue=queue.name, data=f'{{"n": {number}}}')
    assert answer.status_code == 422
    assert "not JSON" in answer.text
    assert (await queue.get_job_counts()).total == 0


async def test_mark(busy: Busy, site: Site) -> None:
    await site.act("mark", label="v1.5")
    await site.act("mark", 422)
    assert [mark.label for mark in await busy.queue.get_marks()] == ["v1.4", "v1.5"]


async def test_run_and_remove_a_repeat(busy: Busy, site: Site) -> None:
    outcome = await site.act("run-repeat", group=DEEP, key="hourly")
    assert outcome["count"] == 1
    plan = await site.plan("remove-repeat", key="morning")
    assert "will no longer run" in plan["effects"][0]
    await site.act("remove-repeat", key="morning")
    assert [repeat.key for repeat in await busy.queue.get_repeating_jobs()] == ["hourly"]
    await site.plan("remove-repeat", 404, key="morning")


async def test_run_now_adds_the_same_job_as_a_tick(queue: Queue, site: Site) -> None:
    given: dict[str, Any] = {
        "priority": 7,
        "max_attempts": 4,
        "timeout": 2.5,
        "backoff": Backoff.exponential(base=3, factor=2, max=60, jitter=0),
        "on_retry": "yield",
        "on_failed": "hold",
        "ttl": 90,
    }
    tick = await queue.add({"n": 1}, group_id="g", repeat=Every(3600, key="full", immediately=True), **given)
    await queue.add({"n": 2}, repeat=Every(3600, key="plain"))
    repeats = {repeat.key: repeat for repeat in await queue.get_repeating_jobs()}
    assert {name: getattr(repeats["full"], name) for name in given} == given
    plain = {name: getattr(repeats["plain"], name) for name in given}
    assert plain == dict.fromkeys(given) | {"priority": 0}

    outcome = await site.act("run-repeat", queue=queue.name, group="g", key="full")
    by_tick = await queue.require_job(tick.id)
    added = await queue.require_job(re.search(r"Added as (\S+)\.", outcome["text"])[1])  # type: ignore[index]
    for name in ("data", "group_id", "priority", "max_attempts", "timeout", "backoff", "on_retry", "on_failed"):
        assert getattr(added, name) == getattr(by_tick, name), name
    assert added.id != by_tick.id
    for job in (added, by_tick):
        assert job.expires_at is not None
        assert job.created_at is not None
        assert (job.expires_at - job.created_at).total_seconds() == 90
    await site.act("run-repeat", queue=queue.name, key="plain")


@pytest.mark.parametrize("action", list(ACTIONS))
async def test_every_action_has_a_page_that_says_what_it_will_do(busy: Busy, site: Site, action: str) -> None:
    before = await busy.queue.get_job_counts()
    fields: dict[str, Any] = {"job": busy.ids["delayed"], "group": HELD, "state": "failed"}
    if action.endswith("repeat"):
        fields |= {"key": "hourly", "group": DEEP}
    html = await site.page("action", queue="orders", action=action, **fields)
    plan = await site.plan(action, **fields)
    assert plan["effects"]
    assert plan["order"]
    assert plan["title"] in html
    assert await busy.queue.get_job_counts() == before


async def test_a_form_comes_back_with_a_message(busy: Busy, site: Site) -> None:
    answer = await site.submit("pause", back="/queues/orders/lanes")
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues/orders/lanes")
    assert "The queue is paused." in await site.page("lanes", queue="orders")
    site.client.cookies.delete("groupmq_flash")
    assert "The queue is paused." not in await site.page("lanes", queue="orders")


async def test_a_form_leads_nowhere_else(busy: Busy, site: Site) -> None:
    answer = await site.submit("pause", back="//evil.example")
    assert answer.headers["location"] == "/queues/orders"


async def test_a_script_of_the_page_gets_a_part(busy: Busy, site: Site) -> None:
    path = site.at("action", queue="orders", action="pause")
    answer = await site.post(path, {"csrf": await site.token()}, HX_Request="true")
    assert answer.status_code == 200
    assert "The queue is paused." in answer.text
    assert "<html" not in answer.text


async def test_after_an_action_nobody_gets_an_older_answer(busy: Busy, site: Site) -> None:
    async def part() -> str:
        return (await site.get(site.at("queue", queue="orders"), X_Fragment="live")).text

    before = await part()
    await site.act("pause")
    assert await part() != before
