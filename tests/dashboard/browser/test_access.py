"""Read-only dashboards, permissions and login: who may read pages, and who may perform actions."""

from __future__ import annotations

from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.pages import PAGES
from tests.dashboard.browser.site import opened
from tests.dashboard.browser.visitor import violations
from tests.support.workers import one_kind

pytestmark = one_kind

TOKEN = "a-long-secret-token"


async def test_read_only_shows_everything_and_offers_nothing(url: str, come: Come) -> None:
    async with opened(url, read_only=True) as site:
        await site.work()
        await site.fill()
        visitor = await come(site)
        for name, (path, title) in PAGES.items():
            if name in ("plan", "missing", "nowhere"):
                continue
            page = await visitor.go(path)
            await expect(page.locator("main h1").first).to_contain_text(title)
            await expect(page.locator("[data-action]")).to_have_count(0)
            await expect(page.get_by_text("Read-only")).to_be_visible()
        visitor.forgive()
        page = await visitor.go("/queues/orders/actions/remove?job=waits-0")
        await expect(page.locator("#action button.primary")).to_have_count(0)
        await visitor.leave()
        assert await site.queue.get_job("waits-0") is not None


async def test_only_what_the_user_may_do_is_offered(url: str, come: Come) -> None:
    async with opened(url, permissions=lambda user, action: action in ("view", "retry")) as site:
        await site.work()
        await site.fill()
        visitor = await come(site)
        page = await visitor.go("/queues/orders/jobs/bad-1")
        actions = [await link.get_attribute("data-action") for link in await page.locator("[data-action]").all()]
        assert actions == ["retry"]
        await visitor.leave()


async def test_login_asks_once_and_leads_back(url: str, come: Come) -> None:
    async with opened(url, auth=TOKEN) as site:
        visitor = await come(site)
        visitor.forgive()  # the wrong token is answered 403
        page = await visitor.go("/queues/orders/lanes")
        await expect(page.get_by_label("Access token")).to_be_focused()
        assert await violations(page) == []
        await page.get_by_label("Access token").fill("something else")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_contain_text("not the token")
        await page.get_by_label("Access token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("main h1")).to_have_text("Lanes")
        await expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("Access token")).to_be_visible()
        page = await visitor.go("/queues/orders/lanes")
        await expect(page.get_by_label("Access token")).to_be_visible()
        await visitor.leave()


async def test_a_logout_in_one_tab_ends_the_others(url: str, come: Come) -> None:
    async with opened(url, auth=TOKEN) as site:
        visitor = await come(site)
        visitor.forgive()  # the stream of the other tab is answered 401
        page = await visitor.go("/queues/orders/lanes")
        await page.get_by_label("Access token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
        other = await page.context.new_page()
        await other.goto(f"{site.url}/queues/orders/jobs")
        await expect(other.locator("#live-state")).to_have_attribute("data-state", "live")
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("Access token")).to_be_visible()
        await site.queue.add({"n": 1})
        await expect(other.get_by_label("Access token")).to_be_visible(timeout=20_000)
        await other.close()
        await visitor.leave()


async def test_login_works_without_javascript(url: str, come: Come) -> None:
    async with opened(url, auth=TOKEN) as site:
        visitor = await come(site, javascript=False, width=375)
        page = await visitor.go("/queues/orders/settings")
        await page.get_by_label("Access token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("main h1")).to_have_text("Settings and health")
        await visitor.leave()


async def test_what_is_redacted_is_nowhere_on_the_page(url: str, come: Come) -> None:
    async with opened(url, redact=["card"]) as site:
        await site.queue.add({"card": "4111-1111", "n": 7}, group_id="user:1", job_id="one")
        visitor = await come(site)
        for path in ("/queues/orders/jobs/one", "/queues/orders/jobs?state=waiting", "/queues/orders/groups/user:1"):
            page = await visitor.go(path)
            await expect(page.locator("main")).to_contain_text("one")
            assert "4111" not in await page.content()
        await visitor.leave()
