"""Every action, as a dialog and without JavaScript: it says what will happen, does it, and reports the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.async_api import Page, expect

from groupmq import Every
from groupmq.dashboard.actions.catalogue import ACTIONS
from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import violations
from tests.support.waiting import eventually
from tests.support.workers import one_kind

pytestmark = one_kind

Check = Callable[[Site], Awaitable[object]]


@dataclass(frozen=True)
class Case:
    """An action: where it is, what is filled in, and what must be true afterwards."""

    action: str
    path: str
    says: str
    """A part of the text of the plan."""
    check: Check
    fill: dict[str, str] = field(default_factory=dict)
    within: str = ""
    """The selector of the row with the link, if a page offers the action more than once."""

    @property
    def bulk(self) -> bool:
        """Whether the action runs as a task, which has its own page."""
        return ACTIONS[self.action].bulk

    def __str__(self) -> str:
        return self.action


def state_of(job_id: str, *wanted: str | None) -> Check:
    async def check(site: Site) -> bool:
        job = await site.queue.get_job(job_id)
        return (job.state if job else None) in wanted

    return check


async def _paused(site: Site) -> bool:
    return await site.queue.is_paused()


async def _running(site: Site) -> bool:
    return not await site.queue.is_paused()


async def _edited(site: Site) -> bool:
    job = await site.queue.get_job("waits-0")
    return job is not None and job.data == {"big": 12345678901234567890}


async def _failed_with_reason(site: Site) -> bool:
    job = await site.queue.get_job("waits-0")
    return job is not None and job.state == "failed" and "no longer wanted" in (job.failed_reason or "")


async def _added(site: Site) -> bool:
    job = await site.queue.get_job("by-hand")
    return job is not None and job.data == {"n": 1} and job.group_id == "user:3"


def group_has(group_id: str, **wanted: Any) -> Check:
    async def check(site: Site) -> bool:
        group = await site.queue.get_group(group_id)
        return all(getattr(group, name) == value for name, value in wanted.items())

    return check


async def _rated(site: Site) -> bool:
    limit = (await site.queue.get_group("user:3")).rate_limit
    return limit is not None and limit.count == 7


async def _none_failed(site: Site) -> bool:
    return await site.queue.get_failed_count() == 0


async def _retried(site: Site) -> bool:
    """Whether both jobs ran again, which means that each has failed a second time."""
    failures = await site.queue.get_failures(limit=20)
    return all(sum(one.job_id == job_id for one in failures) == 2 for job_id in ("bad-1", "bad-2"))


async def _retried_one(site: Site) -> bool:
    failures = await site.queue.get_failures(limit=20)
    return sum(one.job_id == "bad-1" for one in failures) == 2


async def _repeat_ran(site: Site) -> bool:
    return await site.queue.get_completed_count() == 2


async def _no_repeats(site: Site) -> bool:
    return not await site.queue.get_repeating_jobs()


async def _reconfigured(site: Site) -> bool:
    return (await site.queue.get_settings()).max_attempts == 7


async def _marked(site: Site) -> bool:
    return [mark.label for mark in await site.queue.get_marks()] == ["v1.4"]


JOB, GROUP, QUEUE = "/queues/orders/jobs/{}", "/queues/orders/groups/{}", "/queues/orders"
CASES = [
    Case("retry", JOB.format("bad-1"), "original position in user:1", _retried_one),
    Case("skip", JOB.format("blocks-1"), "user:77, which it blocks, goes on", state_of("blocked-1", "completed")),
    Case("remove", JOB.format("waits-0"), "3 jobs of user:3 behind it will move up", state_of("waits-0", None)),
    Case("promote", JOB.format("later-1"), "no longer wait for its start time", state_of("later-1", "completed")),
    Case(
        "change-delay",
        JOB.format("later-1"),
        "no earlier than this delay",
        state_of("later-1", "delayed"),
        {"Delay from now": "2h"},
    ),
    Case(
        "edit",
        JOB.format("waits-0"),
        "Its position in the order stays",
        _edited,
        {"Data": '{"big": 12345678901234567890}'},
    ),
    Case("fail", JOB.format("waits-0"), "recorded as failed", _failed_with_reason, {"Reason": "no longer wanted"}),
    Case("cancel", JOB.format("runs-1"), "Its handler will be stopped", state_of("runs-1", "failed", None)),
    Case("pause-group", GROUP.format("user:3"), "will not start until", group_has("user:3", paused=True)),
    Case("resume-group", GROUP.format("user:9"), "", group_has("user:9", paused=False)),
    Case("group-concurrency", GROUP.format("user:3"), "", group_has("user:3", concurrency=3), {"concurrency": "3"}),
    Case("group-rate", GROUP.format("user:3"), "", _rated, {"limit": "7", "per": "1m"}),
    Case("cancel-group", GROUP.format("user:42"), "will be removed", group_has("user:42", waiting=0, active=0)),
    Case("pause", QUEUE, "", _paused),
    Case("add", QUEUE, "", _added, {"data": '{"n": 1}', "group": "user:3", "job": "by-hand"}),
    Case("mark", QUEUE, "", _marked, {"label": "v1.4"}),
    Case(
        "reconfigure",
        QUEUE + "/settings",
        "the next step shows what would change",
        _reconfigured,
        {"max_attempts": "7"},
    ),
    Case("clean", QUEUE + "/jobs?state=failed", "", _none_failed, {"older": "0"}),
    Case("retry-matching", QUEUE + "/failures", "2 failed jobs", _retried, within="main .head"),
    Case("remove-matching", QUEUE + "/failures", "2 failed jobs", _none_failed, within="main .head"),
    Case("run-repeat", QUEUE + "/repeats", "", _repeat_ran),
    Case("remove-repeat", QUEUE + "/repeats", "", _no_repeats),
]


async def begin(page: Page, case: Case) -> None:
    """Open the plan of the action by its link."""
    scope = page.locator(case.within) if case.within else page
    await scope.locator(f"[data-action={case.action}]").first.click()
    await expect(page.locator("#action")).to_be_visible()
    await expect(page.locator("#action")).to_contain_text(case.says)


async def complete(page: Page, case: Case) -> None:
    form = page.locator("#action")
    for name, value in case.fill.items():
        target = form.locator(f"[name='{name}']") if name.islower() else form.get_by_role("textbox", name=name)
        await target.fill(value)
    await form.locator("button.primary").click()
    if case.action == "reconfigure":
        await expect(form).to_contain_text("max_attempts: 5 becomes 7.")
        await form.locator("button.primary").click()


async def prepared(site: Site, case: Case) -> None:
    if case.action == "skip":
        await site.block("user:77")
    if "repeat" in case.action:
        await site.queue.add({"n": 1}, group_id="reports", repeat=Every(3600, key="hourly"))


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_action_in_a_dialog(busy: Site, come: Come, case: Case) -> None:
    await prepared(busy, case)
    visitor = await come(busy)
    page = await visitor.go(case.path)
    await begin(page, case)
    await expect(page.locator("dialog#dialog")).to_have_attribute("open", "")
    assert await violations(page) == []
    await complete(page, case)
    if case.bulk:
        await expect(page.locator("#task")).to_have_attribute("data-state", "done")
    else:
        await expect(page.locator(".toast")).to_be_visible()
    await eventually(lambda: case.check(busy), f"{case.action} has done its work")
    assert next(one["action"] for one in busy.audit if one["outcome"] in ("done", "begun")) == case.action
    await expect(page.locator("dialog#dialog")).not_to_have_attribute("open", "")


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_action_without_javascript(busy: Site, come: Come, case: Case) -> None:
    await prepared(busy, case)
    visitor = await come(busy, javascript=False)
    page = await visitor.go(case.path)
    await begin(page, case)
    await complete(page, case)
    if case.bulk:
        await expect(page.locator("#task")).to_be_visible()
    else:
        await expect(page.locator("main [role=status] .notice")).to_be_visible()
    await eventually(lambda: case.check(busy), f"{case.action} has done its work")


async def test_a_paused_queue_is_resumed(site: Site, come: Come) -> None:
    await site.queue.pause()
    page = await (await come(site)).go(QUEUE)
    await expect(page.locator("main h1 + .tag")).to_have_text("Paused")
    await page.locator("[data-action=resume]").click()
    await page.locator("#action button.primary").click()
    await expect(page.locator(".toast")).to_be_visible()
    await expect(page.locator("main h1 + .tag")).to_have_count(0)
    assert await _running(site)


async def test_what_was_typed_wrong_stays_and_is_explained(busy: Site, come: Come) -> None:
    visitor = await come(busy)
    page = await visitor.go(JOB.format("waits-0"))
    await page.locator("[data-action=edit]").click()
    await page.get_by_role("textbox", name="Data").fill('{"n": ')
    await page.locator("#action button.primary").click()
    await expect(page.locator("#action .error")).to_contain_text("not JSON")
    await expect(page.get_by_role("textbox", name="Data")).to_have_value('{"n": ')
    await expect(page.get_by_role("textbox", name="Data")).to_be_focused()
    job = await busy.queue.get_job("waits-0")
    assert job is not None
    assert job.data == {"n": 0}
    visitor.problems = [one for one in visitor.problems if "422" not in one]


async def test_an_action_that_cannot_be_done_says_why(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/actions/retry?job=waits-0")
    await expect(page.locator("#action")).to_contain_text("The job is waiting; this works only if it is failed.")
    await expect(page.locator("#action button.primary")).to_have_count(0)


async def test_a_dialog_is_left_with_escape_or_cancel_and_nothing_happens(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go(JOB.format("waits-0"))
    remove = page.locator("[data-action=remove]")
    await remove.click()
    await expect(page.locator("#action")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#action")).to_have_count(0)
    await expect(remove).to_be_focused()
    await remove.click()
    await page.locator("#action").get_by_text("Cancel", exact=True).click()
    await expect(page.locator("#action")).to_have_count(0)
    assert await busy.queue.get_job("waits-0") is not None
    assert busy.audit == []


async def test_a_bulk_action_counts_again_before_it_begins(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/failures")
    await page.locator("main .head [data-action=retry-matching]").click()
    await expect(page.locator("#action")).to_contain_text("2 failed jobs")
    await page.locator("#action [name=q]").fill("group:user:1")
    await page.get_by_role("button", name="Count again").click()
    await expect(page.locator("#action")).to_contain_text("1 failed job")
    assert busy.audit == []


async def test_a_bulk_action_shows_its_progress_and_can_be_stopped(site: Site, come: Come) -> None:
    await site.work()
    jobs = [{"data": {"do": "fail"}, "group_id": f"g{n}", "max_attempts": 1} for n in range(60)]
    await site.queue.add_many(jobs)
    await site.states(failed=60)
    page = await (await come(site)).go("/queues/orders/failures")
    await page.locator("main .head [data-action=retry-matching]").click()
    await page.locator("#action [name=rate]").fill("2")
    await page.locator("#action button.primary").click()
    await expect(page.locator("#task")).to_have_attribute("data-state", "running")
    await expect(page.locator("#task progress")).to_be_visible()
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator("#task")).to_have_attribute("data-state", "stopped")
