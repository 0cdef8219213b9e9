"""Files that the pages name exist: a page that says where something is must not go stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "groupmq"
PROTOCOL = SOURCE / "protocol"
LUA = PROTOCOL / "lua"
PAGES = ("docs/life-of-a-job.md", "docs/internals.md", "docs/decisions/0040-small-calls.md", "docs/glossary.md")
NAMED = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.(?:lua|py))`")


def exists(name: str) -> bool:
    return any((folder / name).exists() for folder in (ROOT, SOURCE, PROTOCOL, LUA, LUA / "transitions"))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    names = set(NAMED.findall((ROOT / page).read_text("utf-8")))
    assert not sorted(name for name in names if not exists(name))


def test_a_name_that_is_none_is_found() -> None:
    assert not exists("lib/finish.lua")
    assert exists("lib/group.lua")
    assert NAMED.findall("see `lua/lib/group.lua`") == ["lua/lib/group.lua"]
