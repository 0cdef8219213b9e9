"""Smaller parts: times in the reader's zone, light and dark, charts, the JSON tree."""

from __future__ import annotations

from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.support.waiting import eventually
from tests.support.workers import one_kind

pytestmark = one_kind


async def test_times_are_relative_with_the_exact_one_in_the_readers_zone(busy: Site, come: Come) -> None:
    visitor = await come(busy, timezone_id="Asia/Tokyo", locale="en-GB")
    page = await visitor.go("/queues/orders/jobs?state=failed")
    time = page.locator("tbody time.ago").first
    await expect(time).to_contain_text("ago")
    assert "GMT+9" in (await time.get_attribute("title") or "")
    page = await visitor.go("/queues/orders/lanes?sort=name")
    until = page.locator(".why time.clock").first
    at = await until.get_attribute("datetime")
    local = await page.evaluate("(at) => new Date(at).toLocaleTimeString('en-GB', { timeZone: 'Asia/Tokyo' })", at)
    await expect(until).to_contain_text(local)


async def test_dark_follows_the_system_and_the_switch_holds(site: Site, come: Come) -> None:
    visitor = await come(site, dark=True)
    page = await visitor.go("/queues/orders/lanes")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = await page.evaluate(paper)
    await page.get_by_role("button", name="Light or dark").click()
    light = await page.evaluate(paper)
    assert light != dark
    page = await visitor.go("/queues/orders/settings")
    assert await page.evaluate(paper) == light


async def test_charts_are_read_by_pointing_and_zoomed_by_dragging(busy: Site, come: Come) -> None:
    await busy.queue.mark("v1.4")
    page = await (await come(busy)).go("/queues/orders")
    chart = page.locator("#throughput")
    over = chart.locator(".u-over")
    await over.scroll_into_view_if_needed()
    box = await over.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    await expect(chart.locator(".readout .when")).to_be_visible()
    await expect(page.locator("#run .readout .when")).to_be_visible()
    before = await chart.locator("canvas").evaluate("(c) => c.toDataURL()")
    await page.mouse.move(box["x"] + box["width"] * 0.6, middle)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.9, middle, steps=5)
    await page.mouse.up()

    async def changed() -> bool:
        return bool(await chart.locator("canvas").evaluate("(c) => c.toDataURL()") != before)

    await eventually(changed, "the chart shows the selected part")
    await over.dblclick(position={"x": box["width"] * 0.5, "y": 20})


async def test_json_folds_and_keeps_every_digit(site: Site, come: Come) -> None:
    data = {"big": 123456789012345678901234567890, "list": list(range(60)), "deep": {"a": {"b": {"c": {"d": 1}}}}}
    await site.queue.add(data, group_id="g", job_id="one")
    page = await (await come(site)).go("/queues/orders/jobs/one")
    tree = page.get_by_role("region", name="Data")
    await expect(tree.get_by_text("123456789012345678901234567890")).to_be_visible()
    await expect(tree.get_by_text("59", exact=True)).to_be_hidden()
    await tree.locator("summary", has_text="60 items").click()
    await expect(tree.get_by_text("59", exact=True)).to_be_visible()
    await tree.locator("summary").first.click()
    await expect(tree.get_by_text("123456789012345678901234567890")).to_be_hidden()


async def test_the_queue_is_switched_from_the_top_of_every_page(site: Site, come: Come) -> None:
    page = await (await come(site)).go("/queues/orders/lanes")
    await page.locator("details.pick summary").click()
    await expect(page.get_by_role("link", name="All queues", exact=True)).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="All queues", exact=True)).to_be_hidden()
    await page.locator("details.pick summary").click()
    await page.get_by_role("link", name="All queues", exact=True).click()
    await expect(page.locator("main h1")).to_have_text("Queues")
