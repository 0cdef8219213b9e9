"""Check the includes of the Lua files: each file includes exactly what it uses, and read-only functions never write."""

from __future__ import annotations

import re
from pathlib import Path

from groupmq.protocol import functions

INCLUDE = re.compile(r'^--- @include "([\w/]+)"')
PRIVATE = "--- @private"
BODY = re.compile(r"^--- @(reads|writes|plain)\b", re.M)
LOCAL = re.compile(r"^local (?:function )?([\w, ]+)")
NAME = re.compile(r"(?<![\w.:])([A-Za-z_]\w*)")
FIELD = re.compile(r"([{,]\s*)\w+ =(?!=)")
WRITING = "lib/writes"
ANEW: dict[str, set[str]] = {
    "lib/args": {"A", "blob"},
    "lib/keys": {"K", "known", "n_known"},
    "lib/clock": {"now", "now_us"},
    "lib/meta": {"rules", "meta"},
    "lib/reading": {"call"},
}
"""Variables that the beginning of each call sets again, and the names of keys, which depend on nothing else."""
FRAMES = {"reads": "lib/reading", "writes": "lib/writing", "plain": "lib/plain"}


class File:
    """The names that one file includes, exports and uses."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        lines = text.splitlines()
        self.includes = [found[1] for found in map(INCLUDE.match, lines) if found]
        self.frame = next((FRAMES[found[1]] for found in map(BODY.match, lines) if found), None)
        self.reads = any(line.startswith("--- @reads") for line in lines)
        public = lines[: lines.index(PRIVATE)] if PRIVATE in lines else lines
        self.exports = set() if self.frame else {name for line in public for name in _declared(line)}
        code = _without_comments_and_strings(text)
        self.uses = set(NAME.findall(FIELD.sub(r"\1", code))) - _own(code)


def _declared(line: str) -> list[str]:
    found = LOCAL.match(line)
    return [name.strip() for name in found[1].split(",")] if found else []


def _own(code: str) -> set[str]:
    """Every name that the file declares anywhere: locals, parameters, loop variables."""
    own = set(re.findall(r"\blocal function (\w+)", code))
    for names in re.findall(r"\blocal ([\w, ]+)", code) + re.findall(r"\bfor ([\w, ]+?) (?:=|in)\b", code):
        own.update(name.strip() for name in names.split(","))
    for names in re.findall(r"\bfunction\s*[\w.]*\(([^)]*)\)", code):
        own.update(name.strip() for name in names.split(","))
    return own


def _without_comments_and_strings(text: str) -> str:
    text = re.sub(r"--\[\[.*?\]\]", "", text, flags=re.S)
    text = re.sub(r"'(?:\\.|[^'\\\n])*'", "''", text)
    return re.sub(r"--[^\n]*", "", text)


def faults(folder: Path) -> list[str]:
    """The faults of the includes, one line for each."""
    shared = [
        path.relative_to(folder).with_suffix("").as_posix()
        for part in ("lib", "transitions")
        for path in sorted((folder / part).rglob("*.lua"))
    ]
    names = shared + functions.names()
    files = {name: File(name, (folder / f"{name}.lua").read_text("utf-8")) for name in names}
    owner = {export: file.name for file in files.values() for export in file.exports}
    found = []
    for file in files.values():
        used = {owner[name] for name in file.uses if name in owner and owner[name] != file.name}
        used.discard(file.frame or "")
        where = f"src/groupmq/protocol/lua/{file.name}.lua"
        found += [f"{where}: uses what {name} offers and does not include it" for name in used - set(file.includes)]
        # A file without exports adds functions to the table of another file.
        unused = {name for name in file.includes if name not in used and files[name].exports}
        found += [f"{where}: includes {name} and uses nothing of it" for name in unused]
        if file.reads and WRITING in _closure(file.name, files):
            found.append(f"{where}: is read-only, but includes {WRITING} through another file")
    return sorted(found + _kept_beyond_a_call(folder, files))


def _kept_beyond_a_call(folder: Path, files: dict[str, File]) -> list[str]:
    """Variables of a file that change while a call runs. The state of a call belongs in `call` (lib/call.lua)."""
    found = []
    for name in files:
        # The body of a function runs once per call, so its variables belong to the call.
        before_body = re.split(BODY, (folder / f"{name}.lua").read_text("utf-8"), maxsplit=1)[0]
        lines = _without_comments_and_strings(before_body).splitlines()
        own = {declared for line in lines for declared in _declared(line)}
        allowed = ANEW.get(name, set())
        for line in lines:
            found += [
                f"src/groupmq/protocol/lua/{name}.lua: {root} changes while a call runs: {line.strip()}"
                for root in sorted(_assigned(line) & own - allowed)
            ]
    return found


def _assigned(line: str) -> set[str]:
    """The names that a line inside a function assigns to, directly or to a field of them."""
    targets, is_assignment, _ = line.partition(" = ")
    if not is_assignment or not line.startswith(" "):
        return set()
    last = re.split(r"\b(?:then|do|else|end)\b", targets)[-1].strip()
    if re.match(r"(?:local|for|if|return|function|repeat|while)\b", last) or "{" in last or "(" in last:
        return set()
    return {re.split(r"[.\[]", target.strip())[0] for target in last.split(",")}


def _closure(name: str, files: dict[str, File]) -> set[str]:
    found: set[str] = set()
    rest = [*files[name].includes, *([frame] if (frame := files[name].frame) else [])]
    while rest:
        included = rest.pop()
        if included not in found:
            found.add(included)
            rest += files[included].includes
    return found
