"""Why a job does not run, seen in the browser: the reason is shown, and disappears when it no longer holds."""

from __future__ import annotations

from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import PHONE, overflow, violations
from tests.support.workers import one_kind

pytestmark = one_kind

LANES = "/queues/orders/lanes"


async def test_a_paused_queue_is_said_on_its_lanes_and_resumed_there(site: Site, come: Come) -> None:
    await site.queue.pause()
    await site.queue.add({"n": 1}, group_id="user:1", job_id="waits-1")
    await site.work()
    page = await (await come(site, width=PHONE)).go(LANES)
    notice = page.locator("#live .notice")
    await expect(notice).to_contain_text("The whole queue is paused.")
    await expect(page.locator(".lane .front")).to_contain_text("Queue paused")
    assert await violations(page) == []
    assert await overflow(page) <= 0
    await notice.locator("[data-action=resume]").click()
    await page.locator("#action button.primary").click()
    await expect(page.locator(".toast")).to_be_visible()
    await expect(notice).to_have_count(0)
    await site.states(completed=1)


async def test_a_queue_without_workers_says_so_until_one_comes(site: Site, come: Come) -> None:
    await site.queue.add({"do": "stay"}, group_id="user:1", job_id="waits-1")
    page = await (await come(site)).go("/queues/orders/jobs/waits-1")
    await expect(page.locator("#live .notice")).to_contain_text("This queue has no worker.")
    assert await violations(page) == []
    await page.goto(LANES)
    await expect(page.locator(".lane .front")).to_contain_text("No worker")
    assert await violations(page) == []
    await site.work()
    await expect(page.locator(".lane .front.active")).to_contain_text("waits-1")
    await expect(page.locator("#live .notice")).to_have_count(0)


async def test_a_job_behind_a_held_one_leads_to_it(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/jobs/behind-1")
    why = page.get_by_label("Why it waits")
    await expect(why).to_contain_text("Held by holds-1, attempt 1 of 5 failed, until")
    await expect(why).to_contain_text("ValueError: it was told to fail")
    assert await violations(page) == []
    await why.get_by_role("link", name="holds-1").click()
    await expect(page.locator("main h1")).to_have_text("holds-1")
    await expect(page.locator("[data-action=promote]")).to_have_text("Retry now")


async def test_everything_about_a_blocked_head_is_on_the_page_of_its_group(busy: Site, come: Come) -> None:
    await busy.block("user:77")
    page = await (await come(busy, width=PHONE)).go("/queues/orders/groups/user:77")
    lane = page.get_by_label("The lane")
    await expect(lane).to_contain_text("ValueError: card 19 was declined")
    for name in ("Retry it", "Edit its data", "Skip it", "Remove it"):
        await expect(lane.get_by_role("link", name=name).first).to_be_visible()
    assert await overflow(page) <= 0
    await lane.locator("[data-action=edit]").first.click()
    await page.get_by_role("textbox", name="Data").fill('{"n": 1}')
    await page.locator("#action button.primary").click()
    await expect(page.locator(".toast")).to_be_visible()
    await lane.locator("[data-action=retry]").first.click()
    await page.locator("#action button.primary").click()
    await busy.states(completed=3)


async def test_a_form_that_is_clicked_twice_adds_one_job(site: Site, come: Come) -> None:
    for javascript in (True, False):
        page = await (await come(site, javascript=javascript)).go("/queues/orders/actions/add")
        await page.get_by_role("textbox", name="Data").fill('{"n": 1}')
        await page.locator("#action button.primary").dblclick()
        await expect(page.locator("main [role=status] .notice")).to_be_visible()
    assert (await site.queue.get_job_counts()).waiting == 2


async def test_back_after_an_action_shows_pages_and_repeats_nothing(busy: Site, come: Come) -> None:
    visitor = await come(busy)
    page = await visitor.go("/queues/orders/jobs?state=waiting")
    await page.get_by_role("link", name="waits-0").click()
    await page.locator("[data-action=remove]").click()
    await page.locator("#action button.primary").click()
    await expect(page.locator("main h1")).to_have_text("Jobs")
    await page.go_back()
    await expect(page.locator("main")).to_contain_text("There is no job")
    await page.go_back()
    await expect(page.locator("main h1")).to_have_text("Jobs")
    assert len([one for one in busy.audit if one["action"] == "remove"]) == 1
    visitor.problems = [one for one in visitor.problems if "404" not in one]


async def test_two_tabs_see_the_same_deed(busy: Site, come: Come) -> None:
    first, second = await come(busy), await come(busy)
    one, other = await first.go("/queues/orders/groups/user:3"), await second.go("/queues/orders/groups/user:3")
    await one.locator("[data-action=pause-group]").click()
    await one.locator("#action button.primary").click()
    await expect(other.locator("main h1 + .tag")).to_have_text("Paused")
    await other.locator("[data-action=resume-group]").click()
    await other.locator("#action button.primary").click()
    await expect(one.locator("main h1 + .tag")).to_have_count(0)
