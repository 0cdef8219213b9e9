"""The frame of a page: tabs with their numbers, even where the document of the page does not have them."""

from __future__ import annotations

import re

import pytest

from groupmq import Queue
from tests.dashboard.busy import HELD, Busy
from tests.dashboard.conftest import MakeSite
from tests.dashboard.visitor import Site


def counted(html: str) -> dict[str, str]:
    """The numbers that tabs show."""
    return dict(re.findall(r'<span class="tag num" data-count="(\w+)">([^<]*)</span>', html))


@pytest.mark.parametrize("name", ["queue", "tasks", "failures"])
async def test_tabs_have_their_numbers_on_every_page(busy: Busy, site: Site, name: str) -> None:
    assert counted(await site.page(name, queue="orders")) == {"failed": "1", "workers": "1"}


async def test_the_form_of_an_action_has_them_too(busy: Busy, site: Site) -> None:
    assert counted(await site.page("action", queue="orders", action="pause")) == {"failed": "1", "workers": "1"}


async def test_a_job_that_is_gone_leaves_its_reader_in_the_queue(busy: Busy, site: Site) -> None:
    answer = await site.get(site.at("job", queue="orders", job="nothing"))
    assert answer.status_code == 404
    assert counted(answer.text) == {"failed": "1", "workers": "1"}
    assert f'href="{site.at("jobs", queue="orders")}" data-close>Back' in answer.text


async def test_a_queue_that_is_not_there_has_no_tabs(queue: Queue, site: Site) -> None:
    answer = await site.get(site.at("job", queue="nobody", job="nothing"))
    assert answer.status_code == 404
    assert 'class="tabs"' not in answer.text


async def test_a_search_without_a_match_leads_to_the_other_states(busy: Busy, site: Site) -> None:
    html = await site.page("jobs", queue="orders", q="error:FailJob")
    assert site.at("jobs", queue="orders", state="failed", q="error:FailJob").replace("&", "&amp;") in html
    assert "Search elsewhere" in html


async def test_the_span_under_way_is_drawn_as_unfinished(busy: Busy, site: Site) -> None:
    """The current span is not complete yet. Drawn with a solid line, it would look like a drop."""
    html = await site.page("queue", queue="orders")
    assert len(re.findall(r'<path class="series unfinished \w+" d="M[^"L]+L[^"L]+"/>', html)) == 3


async def test_a_reader_who_may_do_nothing_sees_no_empty_places_for_buttons(busy: Busy, make_site: MakeSite) -> None:
    html = await make_site(read_only=True).page("group", queue="orders", group=HELD)
    assert "The first job" not in html
    assert '<div class="titles"></div>' not in html
    assert "The first job" in await make_site().page("group", queue="orders", group=HELD)


@pytest.mark.parametrize(("chosen", "per"), [("hour", "minute"), ("day", "5 minutes"), ("weeks", "hour")])
async def test_a_mark_of_this_moment_is_on_the_charts(busy: Busy, site: Site, chosen: str, per: str) -> None:
    """It is shown even though the span of time that it belongs to is not over."""
    html = await site.page("queue", queue="orders", range=chosen)
    assert f">Completed per {per}<" in html
    assert html.count('<path class="markline"') == 4
