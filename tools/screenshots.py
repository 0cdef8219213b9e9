"""Take screenshots of the dashboard of the demo for the docs: `python tools/screenshots.py [--minutes 12]`.

Runs the demo on a separate server for some minutes, so that the charts have something to show, and writes
docs/images/<page>-<width>-<light|dark>.png. Needs chromium and the package `playwright`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, async_playwright

from groupmq import Queue
from groupmq.cli.dashboard import address, listen, make_server
from groupmq.dashboard import create_app
from groupmq.demo.dashboard import DESCRIPTIONS, DISPLAY_NAMES, REDIS
from groupmq.demo.show import UNLUCKY, Show, running

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZES = {1440: (1440, 900, 1.0), 375: (375, 812, 2.0)}
HELD_BEFORE = 70.0
"""Seconds before the screenshots at which a group starts to be held, so that two attempts have failed by then."""
ON_A_PHONE = ("queue", "lanes", "job")


async def pages(queue: Queue) -> dict[str, str]:
    """The pages and their paths. The job page is that of the job with the most failed attempts, since it shows most."""
    failed = sorted(await queue.get_failed_jobs(limit=100), key=lambda job: -job.attempts_made)
    home = f"/queues/{queue.name}"
    return {
        "queues": "/",
        "queue": home,
        "lanes": f"{home}/lanes?sort=held",
        "group": f"{home}/groups/{UNLUCKY}",
        "job": f"{home}/jobs/{failed[0].id}" if failed else f"{home}/jobs",
        "failures": f"{home}/failures",
    }


def without_paths(value: Any, kind: str) -> Any:
    """Shorten the paths in stack traces, so that they do not show folders of this machine."""
    return re.sub(r'File "[^"]*/((?:groupmq|python3)[^"]*)"', r'File "\1"', value) if kind == "stack" else value


@contextlib.asynccontextmanager
async def served(port: int) -> AsyncIterator[tuple[str, Show]]:
    async with running(REDIS) as show:
        app = create_app(redis=REDIS, display_names=DISPLAY_NAMES, descriptions=DESCRIPTIONS, redact=without_paths)
        listening = listen("127.0.0.1", port)
        server = make_server(app)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield address(listening), show
        finally:
            server.should_exit = True
            await task


async def shoot(browser: Browser, base: str, paths: dict[str, str], width: int, theme: str) -> None:
    wide, high, scale = SIZES[width]
    context = await browser.new_context(
        base_url=base,
        viewport={"width": wide, "height": high},
        device_scale_factor=scale,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        timezone_id="Europe/Stockholm",
        locale="en-GB",
    )
    page = await context.new_page()
    for name, path in paths.items():
        if width == 375 and name not in ON_A_PHONE:
            continue
        await page.goto(path)
        await page.locator("#live-state[data-state=live]").wait_for()
        await page.wait_for_timeout(800)  # fonts and charts are drawn
        target = IMAGES / f"{name}-{width}-{theme}.png"
        await page.screenshot(path=target)
        print(f"{target.relative_to(IMAGES.parent.parent)}  {target.stat().st_size:,} bytes", flush=True)
    await context.close()


async def main(minutes: float, port: int) -> None:
    logging.getLogger("groupmq").setLevel(logging.CRITICAL)
    IMAGES.mkdir(parents=True, exist_ok=True)
    async with served(port) as (base, show), async_playwright() as playwright:
        await asyncio.sleep(max(0, 60 * minutes - HELD_BEFORE) * 0.7)
        await show.orders.mark("v1.5")
        await asyncio.sleep(max(0, 60 * minutes - HELD_BEFORE) * 0.3)
        # The job that always fails has used up its attempts by now: add another one, with more jobs behind it.
        await show.order(UNLUCKY, fails="always")
        for _ in range(18):
            await show.order(UNLUCKY)
        await asyncio.sleep(HELD_BEFORE)
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        paths = await pages(show.orders)
        for width in SIZES:
            for theme in ("light", "dark"):
                await shoot(browser, base, paths, width, theme)
        await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=12, help="how long the demo runs before the screenshots (12)")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    asyncio.run(main(given.minutes, given.port))
