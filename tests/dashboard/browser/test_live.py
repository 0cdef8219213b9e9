"""The page follows the queue: one stream per tab, silent in a hidden tab, nothing jumps."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import Visitor, hide, live
from tests.support.waiting import eventually
from tests.support.workers import one_kind

pytestmark = one_kind


def streams(visitor: Visitor) -> int:
    return sum("/stream" in url for url in visitor.requests)


async def test_lanes_follow_jobs_as_they_are_added_run_and_end(site: Site, come: Come) -> None:
    visitor = await come(site)
    page = await visitor.go("/queues/orders/lanes")
    await live(page)
    await expect(page.get_by_text("No group has jobs")).to_be_visible()
    await site.queue.add({"do": "stay"}, group_id="user:1", job_id="one")
    lane = page.get_by_role("article", name="Group user:1")
    await expect(lane.locator(".front")).to_contain_text("No worker")
    await site.work()
    await expect(lane.locator(".front")).to_contain_text("one")
    await expect(lane.locator(".front progress")).to_have_attribute("value", "0.4200")
    await site.queue.add({"n": 2}, group_id="user:1", job_id="two")
    await expect(lane.locator(".behind a")).to_have_text(["two"])
    site.gate.set()
    await expect(page.get_by_text("No group has jobs")).to_be_visible()
    assert streams(visitor) == 1


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", "1 waiting"),
        ("/queues/orders", "in 1 group"),
        ("/queues/orders/jobs?state=waiting", "added-late"),
        ("/queues/orders/groups/late", "added-late"),
        ("/queues/orders/events", "added-late"),
    ],
)
async def test_pages_follow(site: Site, come: Come, path: str, words: str) -> None:
    page = await (await come(site)).go(path)
    await live(page)
    await site.queue.add({"n": 1}, group_id="late", job_id="added-late")
    await expect(page.locator("main")).to_contain_text(words)


async def test_a_job_page_follows_progress_logs_and_the_end(site: Site, come: Come) -> None:
    await site.queue.add({"do": "stay", "log": "asking the bank"}, group_id="user:1", job_id="one")
    page = await (await come(site)).go("/queues/orders/jobs/one")
    await live(page)
    await site.work()
    await expect(page.locator(".titles .state")).to_have_text("active")
    await expect(page.get_by_role("region", name="Progress")).to_contain_text("42")
    await expect(page.locator("#logs")).to_contain_text("asking the bank")
    job = await site.queue.require_job("one")
    for line in ("the bank takes its time", "it still does", "it answers"):  # no other event occurs meanwhile
        await job.log(line)
        await expect(page.locator("#logs")).to_contain_text(line, timeout=15_000)
    site.gate.set()
    await expect(page.locator(".titles .state")).to_have_text("completed")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("12345678901234567890")


async def test_nothing_jumps_when_the_page_changes(busy: Site, come: Come) -> None:
    visitor = await come(busy)
    page = await visitor.go("/queues/orders/jobs/bad-1")
    await live(page)
    attempt = page.locator(".attempts details")
    await attempt.locator("summary").click()  # a failed job's last attempt is open at first
    await expect(attempt).not_to_have_attribute("open", "")
    await page.get_by_role("link", name="Retry").focus()
    await page.evaluate("window.seen = document.querySelector('.attempts li')")
    await busy.queue.add({"n": 1}, group_id="user:1", job_id="behind-bad")
    await busy.queue.retry("bad-1")
    await expect(page.locator(".attempts > li")).to_have_count(2)
    await expect(page.get_by_role("link", name="Retry")).to_be_focused()
    assert await page.evaluate("window.seen.isConnected")


async def test_a_row_that_was_chosen_stays_chosen(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/lanes?sort=name")
    await live(page)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    chosen = await page.locator(".here[data-row]").get_attribute("id")
    await busy.queue.add({"do": "stay"}, group_id="user:0", job_id="in-front")
    await expect(page.get_by_role("article", name="Group user:0", exact=True)).to_be_visible()
    await expect(page.locator(".here[data-row]")).to_have_attribute("id", chosen or "")


async def test_text_that_is_being_selected_is_left_alone(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/lanes?sort=name")
    await live(page)
    select = """(on) => {
        getSelection().removeAllRanges();
        if (on) getSelection().selectAllChildren(document.querySelector(".lane .who"));
    }"""
    await page.evaluate(select, True)
    await busy.queue.add({"do": "stay"}, group_id="user:0", job_id="in-front")
    other = await (await come(busy)).go("/queues/orders/lanes?sort=name")
    await live(other)
    await busy.queue.add({"do": "stay"}, group_id="user:00", job_id="in-front-too")
    await expect(other.get_by_role("article", name="Group user:00")).to_be_visible()
    assert "user:" in await page.evaluate("getSelection().toString()")
    await expect(page.get_by_role("article", name="Group user:00")).to_have_count(0)
    await page.evaluate(select, False)
    await expect(page.get_by_role("article", name="Group user:0", exact=True)).to_be_visible()


async def test_events_follow_pause_and_are_filtered(site: Site, come: Come) -> None:
    page = await (await come(site)).go("/queues/orders/events?kind=added")
    await live(page)
    await site.queue.add({"n": 1}, group_id="a", job_id="first")
    await expect(page.locator("#tail li").first).to_contain_text("first")
    await page.get_by_role("button", name="Pause").click()
    await site.queue.add({"n": 1}, group_id="a", job_id="second")
    await site.queue.remove("second")
    await site.queue.add({"n": 1}, group_id="a", job_id="third")
    await expect(page.locator("#live-state")).to_have_attribute("data-state", "paused")
    await expect(page.locator("#tail li")).to_have_count(1)
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator("#tail li").first).to_contain_text("third")
    kinds = await page.locator("#tail .state").all_inner_texts()
    assert kinds == ["added"] * 3


async def test_a_hidden_tab_is_silent_and_catches_up_when_it_is_shown(site: Site, come: Come) -> None:
    visitor = await come(site)
    page = await visitor.go("/queues/orders/lanes")
    await live(page)
    await hide(page, hidden=True)
    before = len(visitor.requests)
    await site.queue.add({"n": 1}, group_id="unseen", job_id="one")
    other = await (await come(site)).go("/queues/orders/lanes")
    await expect(other.get_by_role("article", name="Group unseen")).to_be_visible()
    assert len(visitor.requests) == before, visitor.requests[before:]
    await expect(page.get_by_role("article", name="Group unseen")).to_have_count(0)
    await hide(page, hidden=False)
    await expect(page.get_by_role("article", name="Group unseen")).to_be_visible()
    await live(page)


async def test_updates_can_be_paused(site: Site, come: Come) -> None:
    page = await (await come(site)).go("/queues/orders/lanes")
    await live(page)
    await page.locator("#live-state").click()
    await expect(page.locator("#live-state")).to_have_text("Paused")
    await site.queue.add({"n": 1}, group_id="unseen", job_id="one")
    other = await (await come(site)).go("/queues/orders/lanes")
    await expect(other.get_by_role("article", name="Group unseen")).to_be_visible()
    await expect(page.get_by_role("article", name="Group unseen")).to_have_count(0)
    await page.locator("#live-state").click()
    await expect(page.get_by_role("article", name="Group unseen")).to_be_visible()


async def test_the_dashboard_goes_away_and_comes_back(site: Site, come: Come) -> None:
    visitor = await come(site)
    page = await visitor.go("/queues/orders/lanes")
    await live(page)
    visitor.forgive()
    await site.stop()
    await expect(page.locator("#live-state")).to_have_attribute("data-state", "lost")
    await expect(page.locator("#trouble")).to_contain_text("cannot be reached")
    await site.queue.add({"n": 1}, group_id="meanwhile", job_id="one")
    await site.start()
    await live(page)
    await expect(page.get_by_role("article", name="Group meanwhile")).to_be_visible()
    await expect(page.locator("#trouble")).to_be_hidden()


async def test_a_job_that_is_removed_while_one_looks_says_so(busy: Site, come: Come) -> None:
    visitor = await come(busy)
    page = await visitor.go("/queues/orders/jobs/waits-3")
    await live(page)
    visitor.forgive()  # the browser logs the 404 as an error
    await busy.queue.remove("waits-3")
    await expect(page.locator("#trouble")).to_contain_text("This is gone")
    await expect(page.locator("main h1")).to_have_text("waits-3")


async def test_elapsed_time_and_countdown_move_by_themselves(busy: Site, come: Come) -> None:
    page = await (await come(busy)).go("/queues/orders/lanes?sort=name")
    clocks = [page.locator(".front time.elapsed").first, page.locator(".front time.countdown").first]
    before = [await clock.inner_text() for clock in clocks]

    async def moved() -> bool:
        return all([await clock.inner_text() != was for clock, was in zip(clocks, before, strict=True)])

    await eventually(moved, "both clocks moved")
