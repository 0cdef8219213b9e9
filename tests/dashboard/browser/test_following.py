"""Details that update on their own, and dialogs that stay open when something in them is wrong."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from groupmq.dashboard.documents import events
from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import live
from tests.support.workers import one_kind

pytestmark = one_kind


async def test_numbers_of_the_frame_follow(site: Site, come: Come) -> None:
    page = await (await come(site)).go("/queues/orders/jobs")
    await live(page)
    failures = page.locator(".tabs [data-count=failed]")
    await expect(failures).to_be_hidden()
    job = await site.queue.add({"n": 1}, group_id="a")
    await expect(page.locator(".segments [data-count=waiting]")).to_have_text("1")
    await site.queue.fail(job.id, "no")
    await expect(failures).to_have_text("1")
    await expect(failures).to_be_visible()
    await expect(page.locator(".segments [data-count=waiting]")).to_have_text("0")
    await site.work()
    await expect(page.locator(".tabs [data-count=workers]")).to_have_text("1")


async def test_a_tail_says_where_events_are_missing(site: Site, come: Come, monkeypatch: pytest.MonkeyPatch) -> None:
    page = await (await come(site)).go("/queues/orders/events")
    await live(page)
    await site.queue.add({"n": 1}, job_id="first")
    await expect(page.locator("#tail li[data-id]")).to_have_count(1)
    await expect(page.locator("#tail .gap")).to_have_count(0)
    monkeypatch.setattr(events, "MOST", 3)
    await site.queue.add_many([{"data": n, "job_id": f"n{n}"} for n in range(9)])
    gap = page.locator("#tail .gap")
    await expect(gap).to_have_count(1)
    rows = await page.locator("#tail > li").evaluate_all("(all) => all.map((one) => one.dataset.id ? 'row' : 'gap')")
    assert rows == ["row", "row", "row", "gap", "row"]


async def test_a_filtered_tail_misses_nothing_and_says_so_of_nothing(site: Site, come: Come) -> None:
    page = await (await come(site)).go("/queues/orders/events?kind=failed")
    await live(page)
    for n in range(3):
        await site.queue.add_many([{"data": i} for i in range(600)])  # more than the dashboard keeps
        job = await site.queue.add({"n": n}, job_id=f"fails-{n}")
        await site.queue.fail(job.id, "no")
        await expect(page.locator("#tail li[data-id]").first).to_contain_text(f"fails-{n}")
    await expect(page.locator("#tail li[data-id]")).to_have_count(3)
    await expect(page.locator("#tail .gap")).to_have_count(0)


async def test_a_search_that_is_not_understood_stays_in_its_dialog(busy: Site, come: Come) -> None:
    visitor = await come(busy)
    page = await visitor.go("/queues/orders/failures")
    await page.locator("main .head [data-action=retry-matching]").click()
    search = page.locator("#action [name=q]")
    for button, typed in (("Count again", "older:soon"), ("Retry them", "older:later")):
        await search.fill(typed)
        await page.get_by_role("button", name=button).click()
        await expect(page.locator("#field-q-error")).to_contain_text(f"{typed}: ")
        await expect(search).to_have_value(typed)
    await search.fill("group:user:1")
    await page.get_by_role("button", name="Count again").click()
    await expect(page.locator("#action")).to_contain_text("1 failed job matching group:user:1")
    assert [one["outcome"] for one in busy.audit] == ["refused"]
    visitor.problems = [one for one in visitor.problems if "422" not in one]


async def test_a_chosen_row_is_still_the_same_when_others_come_in_front(site: Site, come: Come) -> None:
    await site.work()
    await site.queue.add({"do": "fail", "why": "the first"}, group_id="a", max_attempts=1)
    await site.states(failed=1)
    page = await (await come(site)).go("/queues/orders/failures")
    await live(page)
    await page.keyboard.press("j")
    await expect(page.locator(".here[data-row]")).to_contain_text("the first")
    for n in range(2):
        await site.queue.add({"do": "fail", "why": "another one"}, group_id=f"b{n}", max_attempts=1)
    await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page.locator("tbody tr").first).to_contain_text("another one")
    await expect(page.locator(".here[data-row]")).to_contain_text("the first")
