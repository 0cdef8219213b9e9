"""The contract of each Lua function is checked: headings, their order, and the arguments that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import lua_contracts

LUA = Path(__file__).resolve().parents[3] / "src" / "groupmq" / "protocol" / "lua"
SOUND = """--[[
Rename a thing.

Arguments
  id          of the thing
  name        its new name
              and how it is spelt
Blob       the thing
Reply      1
Events     none
Cost       O(1)
]]
--- @include "lib/thing"
--- @writes
return rename(A.id, A.name, blob)
"""
LIB = '--- @include "lib/deeper"\nlocal thing = {}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "thing.lua").write_text(LIB)
    (tmp_path / "lib" / "deeper.lua").write_text("local deeper = {}\n")
    (tmp_path / "rename.lua").write_text(SOUND)
    return tmp_path


def plant(folder: Path, text: str, instead: str) -> list[str]:
    """Replace `text` in the file of a function. Returns the faults that are found."""
    assert text in SOUND
    (folder / "rename.lua").write_text(SOUND.replace(text, instead))
    return lua_contracts.faults(folder)


def test_a_sound_contract_has_no_fault(folder: Path) -> None:
    assert lua_contracts.faults(folder) == []


def test_all_contracts_of_the_library_are_sound() -> None:
    assert lua_contracts.faults(LUA) == []


@pytest.mark.parametrize("line", ["Blob       the thing\n", "Reply      1\n", "Events     none\n", "Cost       O(1)\n"])
def test_a_missing_heading_is_found(folder: Path, line: str) -> None:
    assert plant(folder, line, "") == [
        f"src/groupmq/protocol/lua/rename.lua: the contract has no heading {line.split()[0]}"
    ]


def test_missing_arguments_are_found(folder: Path) -> None:
    found = plant(folder, "Arguments\n", "")
    assert "src/groupmq/protocol/lua/rename.lua: the contract has no heading Arguments" in found


def test_a_heading_without_text_is_found(folder: Path) -> None:
    assert plant(folder, "Events     none", "Events") == [
        "src/groupmq/protocol/lua/rename.lua: the contract says nothing about Events"
    ]


def test_headings_in_another_order_are_found(folder: Path) -> None:
    (found,) = plant(folder, "Events     none\nCost       O(1)", "Cost       O(1)\nEvents     none")
    assert "headings of the contract are in the order" in found


def test_a_missing_purpose_is_found(folder: Path) -> None:
    assert plant(folder, "Rename a thing.\n\n", "") == [
        "src/groupmq/protocol/lua/rename.lua: the contract does not say what the function is for"
    ]


def test_a_file_without_a_contract_is_found(folder: Path) -> None:
    (folder / "rename.lua").write_text("return A.id\n")
    assert lua_contracts.faults(folder) == ["src/groupmq/protocol/lua/rename.lua: does not open with a contract"]


def test_a_blob_that_is_not_read_is_found(folder: Path) -> None:
    assert plant(folder, ", blob)", ")") == [
        "src/groupmq/protocol/lua/rename.lua: the contract has Blob, which it must not have"
    ]


def test_an_argument_that_is_not_read_is_found(folder: Path) -> None:
    assert plant(folder, "A.id, A.name", "A.id") == [
        "src/groupmq/protocol/lua/rename.lua: Arguments names name, which is not read"
    ]


def test_an_argument_that_only_a_comment_reads_is_found(folder: Path) -> None:
    assert plant(folder, "A.id, A.name, blob)", "A.id, blob) -- A.name") == [
        "src/groupmq/protocol/lua/rename.lua: Arguments names name, which is not read"
    ]


def test_an_argument_that_is_not_named_is_found(folder: Path) -> None:
    assert plant(folder, "A.name, blob", "A.name, A.color, blob") == [
        "src/groupmq/protocol/lua/rename.lua: reads color, which Arguments does not name"
    ]


def test_an_argument_that_an_included_file_reads_is_found(folder: Path) -> None:
    (folder / "lib" / "deeper.lua").write_text("local deeper = A.color\n")
    assert lua_contracts.faults(folder) == [
        "src/groupmq/protocol/lua/rename.lua: reads color, which Arguments does not name"
    ]


def test_an_argument_read_after_all_were_passed_on_is_found(folder: Path) -> None:
    (folder / "lib" / "deeper.lua").write_text("local function paint(who) return who.color end\n")
    assert lua_contracts.faults(folder) == []
    assert plant(folder, "blob)", "blob, A)") == [
        "src/groupmq/protocol/lua/rename.lua: reads color, which Arguments does not name"
    ]


def test_now_is_an_argument_of_every_call(folder: Path) -> None:
    (folder / "lib" / "deeper.lua").write_text("local deeper = A.now\n")
    assert lua_contracts.faults(folder) == []
