"""The form of an action: mistakes in it, the job that it is about, and the page that comes after it."""

from __future__ import annotations

import re

import pytest

from groupmq import Backoff, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.dashboard.busy import HELD, Busy
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def failed(queue: Queue, n: int = 3) -> None:
    for i in range(n):
        job = await queue.add({"n": i}, group_id=f"g{i}")
        await queue.fail(job.id, f"number {i}")


@pytest.mark.parametrize("action", ["retry-matching", "remove-matching"])
async def test_a_mistake_in_a_plan_is_said_beside_its_field(queue: Queue, site: Site, action: str) -> None:
    await failed(queue)
    typed = {"q": "older:soon", "rate": "3", "limit": "0"}
    answers = [
        await site.get(site.at("action", queue=queue.name, action=action, **typed)),
        await site.submit(action, queue=queue.name, **typed),
    ]
    for answer in answers:
        assert answer.status_code == 422
        said = re.findall(r'<p class="error" id="field-(\w+)-error">([^<]*)', answer.text)
        assert [name for name, _ in said] == ["q", "limit"]
        assert "for example older:10m" in said[0][1]
        for name, value in typed.items():
            assert re.search(rf'name="{name}" value="{value}"', answer.text), f"{name} does not keep what was typed"
        assert "will" not in answer.text.partition("<form")[2], "a form with a mistake must show no plan"
    assert await queue.get_failed_count() == 3


async def test_a_plan_about_nothing_is_refused_as_a_page(queue: Queue, site: Site) -> None:
    await queue.get_job_counts()
    answer = await site.get(site.at("action", queue=queue.name, action="retry"))
    assert answer.status_code == 422
    assert "job: is missing." in answer.text


async def test_a_form_names_the_job_that_it_is_about(busy: Busy, site: Site) -> None:
    for action, name in (("fail", "behind"), ("retry", "failed"), ("retry", "completed")):
        html = await site.page("action", queue="orders", action=action, job=busy.ids[name])
        subject = re.search(r'<p class="subject"><code class="wrap">([^<]+)</code>', html)
        assert subject is not None
        assert subject[1] == busy.ids[name]


@pytest.mark.parametrize("action", ["remove", "cancel"])
async def test_after_a_removal_the_next_page_is_one_that_still_exists(busy: Busy, site: Site, action: str) -> None:
    group = site.at("group", queue="orders", group=HELD)
    answer = await site.submit(action, job=busy.ids["behind"], back=group)
    assert answer.headers["location"] == group
    its_own = site.at("job", queue="orders", job=busy.ids["behind2"])
    answer = await site.submit(action, job=busy.ids["behind2"], back=its_own)
    assert answer.headers["location"] == site.at("jobs", queue="orders")


async def test_a_running_job_that_is_cancelled_keeps_its_page(busy: Busy, site: Site) -> None:
    its_own = site.at("job", queue="orders", job=busy.ids["active"])
    answer = await site.submit("cancel", job=busy.ids["active"], back=its_own)
    assert answer.headers["location"] == its_own


async def test_an_empty_group_cannot_be_cancelled(queue: Queue, site: Site) -> None:
    await queue.add({}, group_id="a", delay=60)
    plan = await site.plan("cancel-group", queue=queue.name, group="a")
    assert plan["effects"] == ["1 delayed job will be removed. This cannot be undone."]
    assert (await site.plan("cancel-group", queue=queue.name, group="b"))["refused"]


async def test_a_job_whose_back_off_is_over_has_nothing_to_skip(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders", max_attempts=3, backoff=Backoff.fixed(0.001))
    job = await queue.add({}, group_id="a")

    async def fail(job: Job) -> None:
        await queue.pause()
        raise ValueError("no")

    worker = Worker(queue, fail)
    await worker.start()

    async def waits() -> bool:
        found = await queue.require_job(job.id)
        return bool(found.state == "waiting" and found.attempts_made)

    await eventually(waits, "one attempt has failed, and no other begins")
    await worker.close()

    async def refused() -> bool:
        return bool((await site.plan("promote", job=job.id))["refused"])

    await eventually(refused, "its back-off is over")
