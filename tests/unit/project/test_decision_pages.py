"""Each page of docs/decisions has its context, its choice and its price, and a line in the list of all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "decisions"
PAGES = sorted(path.name for path in FOLDER.glob("0*.md"))


def headings(text: str) -> list[str]:
    """The first words of the paragraphs that begin in bold, such as "Choice" of `**Choice: the breaker.**`."""
    return re.findall(r"^\*\*(\w+)[^*]*\*\*", text, flags=re.MULTILINE)


def test_the_pages_are_numbered_without_a_gap() -> None:
    assert [int(page[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES)
def test_a_decision_has_its_context_its_choice_and_its_price_in_this_order(page: str) -> None:
    found = headings((FOLDER / page).read_text("utf-8"))
    places = [found.index(part) for part in ("Context", "Choice", "Price") if part in found]
    assert len(places) == 3, f"{page} has only {found}"
    assert places == sorted(places)
    assert found[0] == "Context"


@pytest.mark.parametrize("page", PAGES)
def test_the_list_of_all_decisions_has_each_page_under_its_title(page: str) -> None:
    title = (FOLDER / page).read_text("utf-8").splitlines()[0].removeprefix("# ")
    assert f"- [{title}]({page})" in (FOLDER / "README.md").read_text("utf-8")
