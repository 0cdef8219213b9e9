"""Settings of a queue are changed on its page: a mistake is shown beside its field, then the list of changes, then the
change is made."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.dashboard.browser.conftest import Come
from tests.dashboard.browser.site import Site
from tests.dashboard.browser.visitor import violations
from tests.support.workers import one_kind

pytestmark = one_kind
SETTINGS = "/queues/orders/settings"


@pytest.mark.parametrize("javascript", [True, False])
async def test_a_mistake_is_corrected_the_change_is_looked_at_edited_again_and_made(
    site: Site, come: Come, javascript: bool
) -> None:
    await site.queue.add(1)
    visitor = await come(site, javascript=javascript)
    page = await visitor.go(SETTINGS)
    await page.get_by_role("link", name="Change settings").click()
    form = page.locator("#action")
    await expect(form.get_by_label("job_timeout")).to_have_value("30s")
    await expect(form).to_contain_text("a job whose worker is silent for this long is taken back", ignore_case=True)
    await form.get_by_label("job_timeout").fill("soon")
    await form.get_by_label("on_failed").select_option("hold")
    await form.get_by_role("button", name="Review the change").click()
    wrong = form.locator("#field-job_timeout-error")
    await expect(wrong).to_have_text("Expected a duration: 30, 1.5, 500ms, 10m, 2h, 7d, got 'soon'; it is 30s now")
    await expect(form.get_by_label("job_timeout")).to_have_value("soon")
    await expect(form.get_by_label("on_failed")).to_have_value("hold")
    if javascript:
        await expect(form.get_by_label("job_timeout")).to_be_focused()
        assert await violations(page) == []
    await form.get_by_label("job_timeout").fill("2m")
    await form.get_by_role("button", name="Review the change").click()
    await expect(form).to_contain_text("job_timeout: 30s becomes 2m.")
    await expect(form).to_contain_text("on_failed: continue becomes hold.")
    if javascript:
        assert await violations(page) == []
    await form.get_by_role("link", name="Edit again").click()
    await expect(form.get_by_label("job_timeout")).to_have_value("2m")
    await form.get_by_label("job_timeout").fill("45s")
    await form.get_by_role("button", name="Review the change").click()
    await expect(form).to_contain_text("job_timeout: 30s becomes 45s.")
    assert (await site.queue.get_settings()).job_timeout == 30, "nothing is changed before it is confirmed"
    assert "csrf" not in page.url
    await form.get_by_role("button", name="Change 2 settings").click()
    row = page.locator("tr", has_text="job_timeout")
    await expect(row).to_contain_text("45s")
    stored = await site.queue.get_settings()
    assert (stored.job_timeout, stored.on_failed) == (45, "hold")
    assert [(one["action"], one["target"], one["outcome"]) for one in site.audit] == [
        ("reconfigure", {"job_timeout": "45s", "on_failed": "hold"}, "done")
    ]


async def test_the_form_of_settings_fits_a_phone(site: Site, come: Come) -> None:
    await site.queue.add(1)
    visitor = await come(site)
    page = await visitor.go(SETTINGS)
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.get_by_role("link", name="Change settings").click()
    form = page.locator("#action")
    await expect(form.get_by_role("button", name="Review the change")).to_be_in_viewport()
    wide = await page.evaluate(
        "document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth"
    )
    assert wide == 0
