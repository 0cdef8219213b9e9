"""Every page, wide and on a phone, light and dark: complete, without complaints from the browser or axe-core."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.pages import PAGES
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import PHONE, WIDE, overflow, violations
from tests.support.workers import one_kind

pytestmark = one_kind

PAPER = "getComputedStyle(document.documentElement).backgroundColor"
PARTS = 3
"""The number of tests that share the pages, so that each is short."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("width", [WIDE, PHONE], ids=["wide", "phone"])
async def test_every_page_is_whole_and_accessible(busy: Site, come: Come, width: int, part: int) -> None:
    visitor = await come(busy, width=width)
    found: list[str] = []
    for name, (path, title) in list(PAGES.items())[part::PARTS]:
        await visitor.page.emulate_media(color_scheme="light")
        page = await visitor.go(path)
        await expect(page.locator("main h1").first).to_contain_text(title)
        found += [f"{name}: {violation}" for violation in await violations(page)]
        light = await page.evaluate(PAPER)
        # Dark is the same page in other colours.
        await page.emulate_media(color_scheme="dark")
        assert await page.evaluate(PAPER) != light, name
        found += [f"{name}, dark: {violation}" for violation in await violations(page, "color-contrast")]
        if (more := await overflow(page)) > 0:
            found.append(f"{name}: {more} pixels wider than the window")
        if name in ("missing", "nowhere"):  # the browser logs the 404 as an error
            visitor.problems = [one for one in visitor.problems if "404" not in one]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", [320, 768, 1024, 2200])
async def test_nothing_is_cut_off_at_widths_in_between(busy: Site, come: Come, width: int) -> None:
    visitor = await come(busy, width=width)
    wider = """[...document.querySelectorAll(".card")]
        .filter((card) => card.scrollWidth > card.clientWidth + 1)
        .map((card) => card.getAttribute("aria-label"))"""
    for path in ("/", "/queues/orders/lanes", "/queues/orders/failures", "/queues/orders/jobs?state=failed"):
        page = await visitor.go(path)
        assert await page.evaluate(wider) == [], path
        assert await overflow(page) <= 0, path


async def test_an_empty_queue_says_what_would_be_here(site: Site, come: Come) -> None:
    visitor = await come(site)
    for path, words in {
        "/queues/orders/lanes": "No group has jobs",
        "/queues/orders/jobs?state=waiting": "No waiting jobs",
        "/queues/orders/failures": "No failures",
        "/queues/orders/repeats": "Nothing repeats",
        "/queues/orders/workers": "No worker",
        "/queues/orders/events": "No events yet",
        "/queues/orders/tasks": "No bulk actions yet",
    }.items():
        page = await visitor.go(path)
        await expect(page.locator(".empty:visible")).to_contain_text(words)
        assert await violations(page) == []


async def test_the_page_is_complete_before_any_script_runs(busy: Site, come: Come) -> None:
    visitor = await come(busy, javascript=False)
    page = await visitor.go("/queues/orders/lanes")
    await expect(page.locator("#lane-user\\:42, [id='lane-user%3A42']")).to_contain_text("attempt 1 of 5 failed")
    await expect(page.locator(".no-js")).to_be_visible()
    page = await visitor.go("/queues/orders")
    assert await page.locator(".plot svg path.series:not(.unfinished)").count() == 7
    page = await visitor.go("/queues/orders/jobs/good-1")
    await expect(page.locator(".json").first).to_contain_text("9007199254740993")


async def test_lanes_show_who_runs_who_waits_and_why(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/lanes?sort=name")
    running = page.get_by_role("article", name="Group user:3")
    await expect(running.locator(".front")).to_contain_text("runs-1")
    await expect(running.locator(".front progress")).to_have_attribute("value", "0.4200")
    assert await running.locator(".behind a").all_inner_texts() == ["waits-0", "waits-1", "waits-2", "waits-3"]
    held = page.get_by_role("article", name="Group user:42")
    await expect(held.locator(".front")).to_contain_text("attempt 1 of 5")
    await expect(held.locator(".front .countdown")).to_contain_text("m")
    await expect(held.locator(".why")).to_contain_text("Held by holds-1, attempt 1 of 5 failed, until")
    await expect(held.locator(".why")).to_contain_text("3 behind")
    assert await held.locator(".behind a").all_inner_texts() == ["behind-0", "behind-1", "behind-2"]
    paused = page.get_by_role("article", name="Group user:9")
    await expect(paused.locator(".front")).to_contain_text("Paused")
    await expect(paused.locator(".why")).to_contain_text("Paused by hand")


@pytest.mark.parametrize("width", [WIDE, 768, PHONE])
async def test_a_lane_counts_the_jobs_that_do_not_fit(site: Site, come: Come, width: int) -> None:
    await site.queue.add_many([{"data": n, "group_id": "long", "job_id": f"number-{n:03}"} for n in range(60)])
    visitor = await come(site, width=width)
    for path in ("/queues/orders/lanes", "/queues/orders/groups/long"):
        page = await visitor.go(path)
        shown = await page.evaluate(
            """() => {
                const chips = [...document.querySelectorAll(".behind li")];
                return chips.filter((chip) => chip.offsetTop === chips[0].offsetTop).length;
            }"""
        )
        assert shown >= 1
        await expect(page.locator(".more-behind")).to_have_text(f"+{60 - shown}")


async def test_a_job_says_where_it_stands_in_its_group(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/jobs/waits-2")
    await expect(page.locator(".sub").first).to_contain_text("3rd of 4 in user:3")


async def test_search_finds_says_what_it_scanned_and_suggests(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/jobs?state=failed")
    field = page.get_by_role("combobox", name="Search jobs")
    await field.fill("err")
    await page.get_by_role("option", name="error:").first.click()
    await expect(field).to_have_value("error:")
    await field.fill("error:ValueError group:user:2")
    await field.press("Enter")
    await expect(page.get_by_text("Searched 2 of 2 failed jobs: 1 matches")).to_be_visible()
    assert await page.locator("tbody .rowlink").all_inner_texts() == ["bad-2"]
    assert "q=error" in page.url


async def test_jobs_are_paged_and_back_works(site: Site, come: Come) -> None:
    await site.queue.add_many([{"data": {"n": n}, "group_id": "g", "job_id": f"j-{n:03}"} for n in range(120)])
    visitor = await come(site)
    page = await visitor.go("/queues/orders/jobs?state=waiting&limit=50")
    first = await page.locator("tbody .rowlink").all_inner_texts()
    await page.get_by_role("link", name="Next page").click()
    await expect(page.get_by_role("link", name="First page")).to_be_visible()
    second = await page.locator("tbody .rowlink").all_inner_texts()
    assert not set(first) & set(second)
    await page.go_back()
    await expect(page.locator("tbody .rowlink").first).to_have_text(first[0])
