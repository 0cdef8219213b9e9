"""The drawn state machines of docs/images name what the Lua files have: no transition and no state is left out."""

from __future__ import annotations

import re
from pathlib import Path

from groupmq.core.filters import STATES

ROOT = Path(__file__).parents[3]
LUA = ROOT / "src" / "groupmq" / "protocol" / "lua"


def drawn(name: str, kind: str) -> set[str]:
    """The texts of one class in a diagram: `name` for the boxes of states, `file` for transitions."""
    text = (ROOT / "docs" / "images" / f"{name}-states.svg").read_text("utf-8")
    return set(re.findall(rf'class="{kind}"[^>]*>([^<]*)<', text))


def test_the_job_diagram_has_each_state() -> None:
    assert drawn("job", "name") == set(STATES)


def test_the_job_diagram_has_each_transition_that_has_a_file() -> None:
    files = {path.stem for path in (LUA / "transitions").glob("*.lua")}
    assert len(files) > 10
    assert not files - drawn("job", "file")


def test_the_page_of_internals_lists_each_transition_that_has_a_file() -> None:
    page = (ROOT / "docs" / "internals.md").read_text("utf-8")
    listed = re.search(r"in `lua/transitions/`:\s+([a-z,\s]+)\.", page)
    assert listed
    assert not {path.stem for path in (LUA / "transitions").glob("*.lua")} - set(re.split(r",\s+", listed[1]))


def test_the_group_diagram_has_each_state_that_is_decided_in_the_order_of_the_questions() -> None:
    source = (LUA / "lib" / "group_state.lua").read_text("utf-8")
    decide = source[source.index("function group_state.decide") : source.index("function group_state.refresh")]
    decided = re.findall(r"return '([a-z]+)'", decide)
    text = (ROOT / "docs" / "images" / "group-states.svg").read_text("utf-8")
    assert re.findall(r'class="name"[^>]*>([a-z]+)<', text) == decided
