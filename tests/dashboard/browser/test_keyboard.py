"""The page is fully usable with the keyboard alone."""

from __future__ import annotations

from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.support.workers import one_kind

pytestmark = one_kind


async def test_slash_goes_to_the_search_and_escape_leaves_it(busy: Site, come: Come) -> None:
    visitor = await come(busy)
    for path in ("/queues/orders/jobs?state=failed", "/queues/orders/lanes", "/queues/orders/events"):
        page = await visitor.go(path)
        await page.keyboard.press("/")
        await expect(page.locator("#search")).to_be_focused()
        await expect(page.locator("#search")).to_have_value("")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Escape")
        await expect(page.locator("#search")).not_to_be_focused()


async def test_j_and_k_choose_a_row_and_enter_opens_it(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/lanes?sort=name")
    rows = [await row.get_attribute("id") for row in await page.locator("[data-row]").all()]
    await page.keyboard.press("j")
    await expect(page.locator(".here[data-row]")).to_have_attribute("id", rows[0] or "")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await expect(page.locator(".here[data-row]")).to_have_attribute("id", rows[1] or "")
    await page.keyboard.press("Escape")
    await expect(page.locator(".here[data-row]")).to_have_count(0)
    await page.keyboard.press("k")
    await expect(page.locator(".here[data-row]")).to_have_attribute("id", rows[-1] or "")
    await page.keyboard.press("Enter")
    await expect(page.locator("body")).to_have_attribute("data-page", "group")


async def test_question_mark_shows_the_keys(site: Site, come: Come) -> None:
    page = await (await come(site)).go("/queues/orders/lanes")
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard")
    await expect(keys).to_be_visible()
    await page.keyboard.press("j")  # must do nothing behind a dialog
    await expect(page.locator(".here[data-row]")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(keys).to_be_hidden()


async def test_keys_mean_nothing_while_one_types(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/lanes")
    await page.locator("#search").fill("")
    await page.locator("#search").press_sequentially("j/k?")
    await expect(page.locator("#search")).to_have_value("j/k?")
    await expect(page.locator(".here[data-row]")).to_have_count(0)
    await expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()


async def test_suggestions_are_taken_with_arrows_and_enter(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/jobs?state=failed")
    field = page.get_by_role("combobox", name="Search jobs")
    await field.press_sequentially("gro")
    await expect(page.get_by_role("option").first).to_be_visible()
    await field.press("ArrowDown")
    await expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    await field.press("Enter")
    await expect(field).to_have_value("group:")
    await field.press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()


async def test_the_first_tab_stop_skips_to_the_content(site: Site, come: Come) -> None:
    page = await (await come(site)).go("/queues/orders/lanes")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()


async def test_an_action_is_done_without_a_mouse(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/jobs/waits-0")
    await page.locator("[data-action=remove]").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#action button.primary")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".toast")).to_contain_text("removed")
    assert await busy.queue.get_job("waits-0") is None
