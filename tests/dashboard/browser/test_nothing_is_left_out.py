"""A page or an action that is added later must come with a test in the browser."""

from __future__ import annotations

from groupmq.dashboard.actions.catalogue import ACTIONS
from groupmq.dashboard.pages import PAGES
from tests.dashboard.browser import pages, test_actions


def test_every_action_is_done_in_the_browser() -> None:
    assert {case.action for case in test_actions.CASES} | {"resume"} == set(ACTIONS)


def test_every_page_is_looked_at_in_the_browser() -> None:
    looked_at = {name for name in pages.PAGES if name in PAGES} | {"jobs", "job", "group", "task", "suggest"}
    assert set(PAGES) - looked_at == set()
