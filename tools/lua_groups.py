"""Check that every field of a group that a Lua file uses is declared in lib/group_value.lua.

A group is the variable `g` everywhere. A field is declared in the table that builds a group, or in the comment below
that table.
"""

from __future__ import annotations

import re
from pathlib import Path

DECLARING = "lib/group_value.lua"
TABLE = re.compile(r"^  local g = \{\n(.*?)^  \}", re.S | re.M)
BUILT = re.compile(r"^    (\w+) = ", re.M)
DESCRIBED = re.compile(r"^  --   (\w+)  +\S", re.M)
USED = re.compile(r"\bg\.(\w+)")
COMMENT = re.compile(r"--\[\[.*?\]\]|--[^\n]*", re.S)


def declared(folder: Path) -> list[str]:
    """The declared fields; one that is declared twice is there twice."""
    text = (folder / DECLARING).read_text("utf-8")
    table = TABLE.search(text)
    return (BUILT.findall(table[1]) if table else []) + DESCRIBED.findall(text)


def faults(folder: Path) -> list[str]:
    """The fields that are used and not declared, declared twice, or declared and not used; one line for each."""
    known = declared(folder)
    used: dict[str, str] = {}
    for path in sorted(folder.rglob("*.lua")):
        for field in USED.findall(COMMENT.sub("", path.read_text("utf-8"))):
            used.setdefault(field, path.relative_to(folder).as_posix())
    where = "src/groupmq/protocol/lua"
    home, unknown = f"{where}/{DECLARING}", sorted(set(used) - set(known))
    found = [f"{where}/{used[field]}: g.{field} is not declared in {DECLARING}" for field in unknown]
    found += [f"{home}: {field} is declared twice" for field in sorted(set(known)) if known.count(field) > 1]
    found += [f"{home}: {field} is declared and not used" for field in sorted(set(known) - set(used))]
    return found
