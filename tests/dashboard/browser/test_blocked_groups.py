"""A group that a failed job blocks: where a reader sees it, and how it is unblocked."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site, opened
from tests.dashboard.browser.visitor import violations
from tests.support.waiting import eventually
from tests.support.workers import one_kind

pytestmark = one_kind

GROUP = "user:77"


async def _goes_on(site: Site) -> bool:
    job = await site.queue.get_job("blocked-1")
    return job is not None and job.state == "completed"


async def test_from_the_warning_to_the_lane_and_the_job_is_skipped(busy: Site, come: Come) -> None:
    await busy.block(GROUP)
    visitor = await come(busy)
    page = await visitor.go("/queues/orders")
    warning = page.locator(".notice", has_text="A failed job blocks its group.")
    await warning.get_by_role("link", name="Show").click()
    lane = page.locator("article.lane")
    await expect(lane).to_have_count(1)
    await expect(lane).to_contain_text("Blocked by")
    await expect(lane).to_contain_text("which failed for good")
    await expect(lane.locator(".who .state")).to_have_text("blocked")
    assert await violations(page) == []
    await lane.locator("[data-action=skip]").click()
    await expect(page.locator("#action")).to_contain_text(f"{GROUP}, which it blocks, goes on")
    await page.locator("#action button.primary").click()
    await expect(page.locator(".toast")).to_be_visible()
    await eventually(lambda: _goes_on(busy), "the group goes on")
    await expect(page.get_by_role("heading", name="No group is blocked")).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False])
async def test_the_page_of_the_group_says_who_blocks_it_and_retries_that_job(
    busy: Site, come: Come, javascript: bool
) -> None:
    await busy.block(GROUP)
    await busy.queue.update_data("blocks-1", {"n": 1})
    visitor = await come(busy, javascript=javascript)
    page = await visitor.go(f"/queues/orders/groups/{GROUP}")
    await expect(page.locator(".why")).to_contain_text("Blocked by blocks-1, which failed for good")
    footer = page.locator("footer", has_text="The failed job")
    await footer.locator("[data-action=retry]").click()
    await expect(page.locator("#action")).to_contain_text(f"{GROUP}, which it blocks, goes on")
    await page.locator("#action button.primary").click()
    await eventually(lambda: _goes_on(busy), "the job has run again, and so has the one behind it")
    assert (await busy.queue.get_group(GROUP)).blockers == 0


async def test_the_page_of_the_job_says_that_it_blocks_its_group(busy: Site, come: Come) -> None:
    await busy.block(GROUP)
    page = await (await come(busy)).go("/queues/orders/jobs/blocks-1")
    await expect(page.locator(".notice", has_text="It has blocked its group since")).to_be_visible()
    actions = [await link.get_attribute("data-action") for link in await page.locator(".actions [data-action]").all()]
    assert actions == ["retry", "skip", "edit", "remove"]
    await page.get_by_role("link", name="Show the group").click()
    await expect(page.locator("main h1")).to_have_text(GROUP)


async def test_a_reader_without_the_permission_sees_the_block_and_no_way_to_end_it(url: str, come: Come) -> None:
    async with opened(url, read_only=True) as site:
        await site.work()
        await site.block(GROUP)
        visitor = await come(site)
        for path in ("lanes?state=blocked", f"groups/{GROUP}", "jobs/blocks-1"):
            page = await visitor.go(f"/queues/orders/{path}")
            await expect(page.locator("main")).to_contain_text("block")
            await expect(page.locator("[data-action]")).to_have_count(0)
        await visitor.leave()
