"""Every field of a group that a Lua file uses is declared, once, and none is declared for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import lua_groups

LUA = Path(__file__).resolve().parents[3] / "src" / "groupmq" / "protocol" / "lua"
DECLARING = """local function read(gid)
  local g = {
    id = gid, -- its id
    head = false, -- the member that starts first
  }
  -- Fields that few groups have:
  --   rest       until when it rests
  return g
end
"""
USING = "local function rest(g)\n  g.rest = g.id and g.head -- not g.other\nend\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / lua_groups.DECLARING).write_text(DECLARING)
    (tmp_path / "lib" / "using.lua").write_text(USING)
    return tmp_path


def test_sound_files_have_no_fault(folder: Path) -> None:
    assert lua_groups.faults(folder) == []


def test_our_files_have_no_fault_and_declare_the_fields_of_groups() -> None:
    assert lua_groups.faults(LUA) == []
    assert {"id", "running", "holds", "adopted"} <= set(lua_groups.declared(LUA))


def test_a_field_that_is_not_declared_is_found_with_its_file(folder: Path) -> None:
    (folder / "using.lua").write_text("return g.waits")
    [fault] = lua_groups.faults(folder)
    assert fault == "src/groupmq/protocol/lua/using.lua: g.waits is not declared in lib/group_value.lua"


def test_a_field_that_is_declared_twice_is_found(folder: Path) -> None:
    (folder / lua_groups.DECLARING).write_text(DECLARING.replace("rest  ", "head  "))
    assert any("head is declared twice" in fault for fault in lua_groups.faults(folder))


def test_a_field_that_nobody_uses_is_found(folder: Path) -> None:
    (folder / "lib" / "using.lua").write_text("return g.id, g.head")
    [fault] = lua_groups.faults(folder)
    assert fault.endswith("rest is declared and not used")
