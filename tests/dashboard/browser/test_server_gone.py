"""The server of the queues goes down: the page says so, and continues when the server is back."""

from __future__ import annotations

from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import opened
from tests.dashboard.browser.visitor import live
from tests.support.servers import Server


async def test_the_server_of_the_queues_goes_away_and_comes_back(come: Come) -> None:
    server = Server.start(aof=True)
    try:
        async with opened(server.url) as site:
            visitor, other = await come(site), await come(site)
            visitor.forgive()
            other.forgive()
            page = await visitor.go("/queues/orders/lanes")
            await live(page)
            server.kill()
            await expect(page.locator("#live-state")).to_have_attribute("data-state", "lost", timeout=60_000)
            await expect(page.locator("#trouble")).to_contain_text("cannot be reached")
            broken = await other.go("/queues/orders/lanes")
            await expect(broken.locator("#problem[data-unreachable]")).to_contain_text("This page tries again.")
            await expect(broken.get_by_role("link", name="Try again")).to_be_visible()
            server.restart()
            await expect(page.locator("#live-state")).to_have_attribute("data-state", "live", timeout=60_000)
            await expect(page.locator("#trouble")).to_be_hidden()
            await expect(broken.locator("main h1")).to_have_text("Lanes")  # it has tried again, as it announced
            await visitor.leave()
            await other.leave()
    finally:
        server.stop()
