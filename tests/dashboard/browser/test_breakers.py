"""A group whose breaker is open: where a reader sees it."""

from __future__ import annotations

from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import violations
from tests.support.workers import one_kind

pytestmark = one_kind

GROUP = "shop:7"


async def test_from_the_warning_to_the_lane_and_back_when_the_rule_is_gone(busy: Site, come: Come) -> None:
    await busy.break_open(GROUP)
    visitor = await come(busy)
    page = await visitor.go("/queues/orders")
    warning = page.locator(".notice", has_text="The breaker of a group is open.")
    await warning.get_by_role("link", name="Show").click()
    lane = page.locator("article.lane")
    await expect(lane).to_have_count(1)
    await expect(lane).to_contain_text("Breaker open")
    await expect(lane).to_contain_text("1 failed, open since")
    assert await violations(page) == []
    page = await visitor.go(f"/queues/orders/groups/{GROUP}")
    await expect(page.locator(".why")).to_contain_text("too many attempts in a row have failed", ignore_case=True)
    await busy.queue.reconfigure(breaker=None)
    page = await visitor.go("/queues/orders/lanes?state=breaker")
    await expect(page.get_by_role("heading", name="No breaker is open")).to_be_visible()
