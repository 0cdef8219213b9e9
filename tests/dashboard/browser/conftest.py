"""One browser for the run; a site and visitors for each test. A test fails if its browser complains about anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.dashboard.browser import chromium
from tests.dashboard.browser.site import Site, opened
from tests.dashboard.browser.visitor import Visitor

HERE = Path(__file__).parent
Come = Callable[..., Awaitable[Visitor]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests here share one event loop, so that they can share the browser."""
    for item in items:
        if item.path.is_relative_to(HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = chromium.require()
    expect.set_options(timeout=30_000)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=chromium.FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def site(url: str) -> AsyncIterator[Site]:
    """A dashboard of the queue `orders`, which has no job and no worker."""
    async with opened(url) as site:
        yield site


@pytest_asyncio.fixture(loop_scope="session")
async def busy(site: Site) -> Site:
    """The site with a worker and jobs in every state."""
    await site.work()
    await site.fill()
    return site


@pytest_asyncio.fixture(loop_scope="session")
async def come(browser: Browser) -> AsyncIterator[Come]:
    """`await come(site, width=375, dark=True, javascript=False)` opens a window, which is closed at the end."""
    visitors: list[Visitor] = []

    async def one(site: Site, **options: Any) -> Visitor:
        visitor = await Visitor.come(browser, site.url, **options)
        visitors.append(visitor)
        return visitor

    yield one
    problems = [problem for visitor in visitors for problem in visitor.found()]
    for visitor in visitors:
        await visitor.leave()
    assert not problems, "\n".join(problems)
