"""A browser window of a test, which records everything that the browser complains about."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Error, Page, Request, expect

AXE = (Path(__file__).parent / "vendor" / "axe.js").read_text()
PHONE, WIDE = 375, 1440


class Visitor:
    """One browser window. `problems`: errors in the console, broken policy, requests to other hosts, alerts."""

    def __init__(self, context: BrowserContext, page: Page, base: str) -> None:
        self.context = context
        self.page = page
        self.base = base
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._forgiven = False
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)
        page.on("dialog", self._dialog)

    @classmethod
    async def come(
        cls, browser: Browser, base: str, *, width: int = WIDE, dark: bool = False, javascript: bool = True, **more: Any
    ) -> Visitor:
        context = await browser.new_context(
            base_url=base,
            viewport={"width": width, "height": 900 if width > PHONE else 812},
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
            reduced_motion="reduce",
            has_touch=width <= PHONE,
            **more,
        )
        context.set_default_timeout(30_000)
        return cls(context, await context.new_page(), base)

    async def go(self, path: str) -> Page:
        answer = await self.page.goto(path)
        assert answer is not None
        if answer.status >= 500:
            self.problems.append(f"{path} answered {answer.status}")
        return self.page

    async def leave(self) -> None:
        await self.context.close()

    def forgive(self) -> None:
        """Ignore all complaints of this window: the test takes the server down or asks for something forbidden."""
        self._forgiven = True

    def found(self) -> list[str]:
        return [] if self._forgiven else self.problems

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _error(self, error: Error) -> None:
        self.problems.append(f"uncaught: {error}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        if urlsplit(request.url).netloc != urlsplit(self.base).netloc:
            self.problems.append(f"a request to another host: {request.url}")

    async def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"the browser opened a dialog: {dialog.message}")
        await dialog.dismiss()


async def violations(page: Page, *rules: str) -> list[str]:
    """The violations that axe-core finds, by all rules or only these: the rule, how often, the first element."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    found = await page.evaluate(
        """async (rules) => (await axe.run(document, { resultTypes: ["violations"], ...rules })).violations
            .map((one) => `${one.id} (${one.nodes.length}): ${one.nodes[0].html.slice(0, 200)}`)""",
        {"runOnly": rules} if rules else {},
    )
    return list(found)


async def overflow(page: Page) -> int:
    """Pixels by which the page is wider than the window."""
    return int(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


async def hide(page: Page, *, hidden: bool) -> None:
    """Act as a browser whose tab is hidden or shown, since headless chromium never hides a tab."""
    await page.evaluate(
        """(hidden) => {
            const state = hidden ? "hidden" : "visible";
            Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
            Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


async def live(page: Page) -> None:
    """Wait until the page follows the queue."""
    await expect(page.locator("#live-state")).to_have_attribute("data-state", "live")
