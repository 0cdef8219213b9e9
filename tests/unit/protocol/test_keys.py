"""Key names are spelled once in Python and once in Lua, in the same way."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from groupmq.protocol.keys import FIXED, Keys

LUA = Path(str(resources.files("groupmq.protocol"))) / "lua"
KEYS_LUA = (LUA / "lib" / "keys.lua").read_text("utf-8")


def spelled_in_lua() -> dict[str, str]:
    """The names in the table K, each with the part of the key after the base."""
    fixed = re.search(r"local FIXED = \{(.*?)\}", KEYS_LUA, re.DOTALL)
    by_name = re.search(r"local BY_NAME = \{(.*?)\}", KEYS_LUA)
    renamed = re.search(r"local RENAMED = \{(.*?)\}", KEYS_LUA)
    assert fixed is not None
    assert by_name is not None
    assert renamed is not None
    names = re.findall(r"'(\w+)'", fixed[1])
    others = re.findall(r"(\w+) = '([\w:]+)'", by_name[1] + renamed[1])
    return dict(zip(names, names, strict=True)) | dict(others)


def test_lua_and_python_spell_the_same_names() -> None:
    names = spelled_in_lua()
    assert {name: names.pop(name) for name in ("group", "rate", "wake_of", "mail", "grants")} == {
        "group": "g:",
        "rate": "r:",
        "wake_of": "wake:",
        "mail": "mail:",
        "grants": "grants:",
    }
    assert names.pop("reservers") == "holders"
    assert names == {name: name for name in FIXED if name != "holders"}


def test_lua_takes_the_base_from_the_meta_key() -> None:
    keys = Keys("p", "q")
    cut = re.search(r"local base, names = string\.sub\(meta_key, 1, (-\d+)\)", KEYS_LUA)
    assert cut is not None
    assert keys.meta[: int(cut[1]) + 1] == keys.base


def test_the_legend_describes_every_key() -> None:
    legend = KEYS_LUA[: KEYS_LUA.index("local SCHEMA")]
    described = re.findall(r"^  ([\w:]+(?:<\w+>)?) +(?:hash|zset|list|stream|text|none)  ", legend, re.MULTILINE)
    assert sorted(described) == sorted([*FIXED, "g:<group>", "r:<group>", "wake:<w>", "mail:<w>", "grants:<w>"])


def test_nobody_else_spells_a_key() -> None:
    for path in LUA.rglob("*.lua"):
        if path.name != "keys.lua":
            assert "base .." not in path.read_text("utf-8"), path.name


def test_all_keys_of_a_queue_share_one_hash_tag() -> None:
    keys = Keys("groupmq", "orders")
    every = [keys.fixed(name) for name in FIXED] + [keys.group("x:active"), keys.group("{y}"), keys.wake, keys.meta]
    assert {re.search(r"\{(.*?)\}", key)[1] for key in every} == {"orders"}  # type: ignore[index]
    assert all(key.startswith("groupmq:{orders}:") for key in every)


def test_no_group_id_can_reach_another_key() -> None:
    keys = Keys("groupmq", "orders")
    fixed = {keys.fixed(name) for name in FIXED}
    for group_id in (*FIXED, "", "g:", "g:x", "x:active", "}:{", "\n", "../meta"):
        assert keys.group(group_id) not in fixed
