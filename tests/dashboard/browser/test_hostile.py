"""Ids, groups, data, errors, logs and marks may contain anything: every page shows them as text."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from groupmq import Every
from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import PHONE, WIDE, overflow, violations
from tests.support.workers import one_kind

pytestmark = one_kind

EVIL = '"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>{{7*7}}${7*7}\u202e\'`&amp;/../?#%2f'
LONG = EVIL + "x" * 400
PAGES = (
    "",
    "/lanes?sort=name",
    "/jobs?state=waiting",
    "/jobs?state=failed",
    "/failures",
    "/repeats",
    "/workers",
    "/events",
    "/settings",
)


async def fill(site: Site) -> None:
    await site.work()
    add = site.queue.add
    await add({"do": "fail", "why": LONG, "log": LONG}, group_id=EVIL + "f", job_id=EVIL + "bad", max_attempts=1)
    await add({"do": "stay", "progress": LONG, LONG: LONG}, group_id=EVIL, job_id=EVIL + "runs")
    await add({EVIL: [EVIL, {EVIL: LONG}]}, group_id=EVIL, job_id=EVIL + "waits")
    await add({"n": EVIL}, group_id=EVIL, repeat=Every(3600, key=EVIL))
    await site.queue.mark(EVIL)
    await site.states(active=1, failed=1)


@pytest.mark.parametrize("width", [WIDE, PHONE], ids=["wide", "phone"])
async def test_hostile_text_stays_text_on_every_page(site: Site, come: Come, width: int) -> None:
    await fill(site)
    visitor = await come(site, width=width)
    paths = ["/", *("/queues/orders" + path for path in PAGES)]
    page = await visitor.go("/queues/orders/lanes")
    links = page.locator("main a[href*='/groups/'], main a[href*='/jobs/']")
    paths += [await link.get_attribute("href") or "" for link in await links.all()]
    page = await visitor.go("/queues/orders/jobs?state=failed")
    paths += [await link.get_attribute("href") or "" for link in await page.locator("tbody a.rowlink").all()]
    found: list[str] = []
    for path in dict.fromkeys(paths):
        page = await visitor.go(path)
        await expect(page.locator("main h1").first).to_be_visible()
        await page.locator("#live-state[data-state=live]").wait_for()
        if await page.evaluate("window.pwned"):
            found.append(f"{path}: a script ran")
        if await page.locator("main img").count():
            found.append(f"{path}: text has become an element")
        if (more := await overflow(page)) > 0:
            found.append(f"{path}: {more} pixels wider than the window")
        found += [f"{path}: {one}" for one in await violations(page)]
    assert not found, "\n".join(found)


async def test_hostile_ids_lead_to_their_own_pages(site: Site, come: Come) -> None:
    await fill(site)
    page = await (await come(site)).go("/queues/orders/jobs?state=waiting")
    await page.locator("tbody a.rowlink").first.click()
    await expect(page.locator("main h1")).to_have_text(EVIL + "waits")
    await page.locator(".sub a").click()
    await expect(page.locator("main h1")).to_have_text(EVIL)
    await page.locator("[data-action=pause-group]").click()
    await page.locator("#action button.primary").click()
    await expect(page.locator(".toast")).to_be_visible()
    assert (await site.queue.get_group(EVIL)).paused


async def test_hostile_text_stays_text_when_it_arrives_live(site: Site, come: Come) -> None:
    visitor = await come(site)
    for path in ("/queues/orders/lanes", "/queues/orders/events"):
        page = await visitor.go(path)
        await page.locator("#live-state[data-state=live]").wait_for()
        await site.queue.add({"n": 1}, group_id=EVIL + path, job_id=EVIL + path)
        await expect(page.locator("main")).to_contain_text("<script>window.pwned=1</script>")
        assert not await page.evaluate("window.pwned")


async def test_a_search_is_text_too(busy: Site, come: Come) -> None:
    visitor = await come(busy)
    page = await visitor.go("/queues/orders/jobs?state=failed")
    await page.locator("#search").fill(EVIL)
    await page.locator("#search").press("Enter")
    await expect(page.locator("#search")).to_have_value(EVIL)
    assert not await page.evaluate("window.pwned")


async def test_data_is_copied_exactly_also_on_plain_http(site: Site, come: Come) -> None:
    await site.queue.add({"big": 12345678901234567890123, "text": EVIL}, group_id="g", job_id="one")
    page = await (await come(site)).go("/queues/orders/jobs/one")
    await page.locator("#live-state[data-state=live]").wait_for()
    await page.evaluate("Object.defineProperty(window, 'isSecureContext', { value: false })")
    await page.evaluate(
        """document.addEventListener("copy", () => {
            window.copied = getSelection().toString() || document.activeElement.value;
        })"""
    )
    await page.evaluate(
        """() => {
            const later = window.setTimeout;
            window.setTimeout = (act, ms, ...more) => {
                if (ms !== 1600) return later(act, ms, ...more);
                window.wordEnds = act; // the word "Copied" stays until the test lets it go
            };
        }"""
    )
    await page.get_by_role("region", name="Data").get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("region", name="Data").get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("window.copied")
    assert '"big": 12345678901234567890123' in copied
    await site.queue.update_data("one", {"n": "changed"})
    await site.queue.add({"n": 2}, group_id="g")  # an event of its group makes the page redraw
    await expect(page.get_by_role("region", name="Data")).to_contain_text("changed")
    await expect(page.get_by_role("region", name="Data").get_by_role("button", name="Copied")).to_be_visible()
    await page.evaluate("window.wordEnds()")
    await expect(page.get_by_role("region", name="Data").get_by_role("button", name="Copy", exact=True)).to_be_visible()
