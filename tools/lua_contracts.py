"""Check the contract at the top of each Lua function: its headings, their order, and the arguments it names.

A contract is the opening comment of the file: a purpose, then the headings below. Each argument has its own line,
indented by two spaces, with its name first. The heading `Blob` is there only if the function reads the
blob. `Cost` counts the commands that the function makes, without the few that begin and end every call: TIME and one
read of `meta`; of a function that writes also the check of its keys, the numbers in `meta`, the event, the kept reply.
"""

from __future__ import annotations

import re
from pathlib import Path

HEADINGS = ("Arguments", "Blob", "Reply", "Events", "Cost")
OPTIONAL = "Blob"
NO_ARGUMENTS = "none"
COMMENT = re.compile(r"\A--\[\[\n(.*?)\n\]\]\n", re.S)
HEADING = re.compile(rf"^({'|'.join(HEADINGS)})\b[ \t]*(.*)$", re.M)
ARGUMENT = re.compile(r"^  (\w+)  ", re.M)
INCLUDE = re.compile(r'^--- @include "([\w/]+)"', re.M)
READ = re.compile(r"\bA\.(\w+)")
READ_OF_ALL = re.compile(r"\bwho\.(\w+)")
"""A function that takes the table of all arguments calls it `who`."""
ALL_ARGUMENTS = re.compile(r"[(,]\s*A\s*[,)]")
BLOB = re.compile(r"\bblob\b")
OF_EVERY_CALL = {"now"}
"""Arguments that every function may get. lib/clock.lua reads `now`, which only tests send."""


def faults(folder: Path) -> list[str]:
    """The faults of the contracts of all functions, one line for each."""
    return [fault for path in sorted(folder.glob("*.lua")) for fault in faults_of(path.stem, folder)]


def faults_of(name: str, folder: Path) -> list[str]:
    """The faults of the contract of one function, one line for each."""
    text = (folder / f"{name}.lua").read_text("utf-8")
    where = f"src/groupmq/protocol/lua/{name}.lua"
    comment = COMMENT.match(text)
    if comment is None:
        return [f"{where}: does not open with a contract"]
    sections = HEADING.findall(comment[1])
    found = [heading for heading, _ in sections]
    code = _code(text)
    wanted = [heading for heading in HEADINGS if heading != OPTIONAL or BLOB.search(code)]
    wrong = [f"{where}: the contract has no heading {heading}" for heading in wanted if heading not in found]
    wrong += [
        f"{where}: the contract has {heading}, which it must not have" for heading in found if heading not in wanted
    ]
    if not wrong and found != wanted:
        wrong.append(f"{where}: the headings of the contract are in the order {found}, expected {wanted}")
    if HEADING.match(comment[1]):
        wrong.append(f"{where}: the contract does not say what the function is for")
    wrong += [f"{where}: the contract says nothing about {heading}" for heading in _empty(comment[1])]
    named, read = _named(comment[1]), _read(name, folder)
    wrong += [f"{where}: Arguments names {argument}, which is not read" for argument in sorted(named - read)]
    wrong += [f"{where}: reads {argument}, which Arguments does not name" for argument in sorted(read - named)]
    return wrong


def _sections(contract: str) -> list[tuple[str, str]]:
    """Each heading with all of its text."""
    starts = list(HEADING.finditer(contract))
    ends = [start.start() for start in starts[1:]] + [len(contract)]
    return [(start[1], contract[start.end(1) : end]) for start, end in zip(starts, ends, strict=True)]


def _empty(contract: str) -> list[str]:
    return [heading for heading, text in _sections(contract) if not text.strip()]


def _named(contract: str) -> set[str]:
    named: set[str] = set()
    for heading, text in _sections(contract):
        if heading == "Arguments" and text.strip() != NO_ARGUMENTS:
            named.update(ARGUMENT.findall(text))
    return named


def _read(name: str, folder: Path) -> set[str]:
    """The arguments that a function reads, in its file or in files that it includes."""
    own = _code((folder / f"{name}.lua").read_text("utf-8"))
    passes_all = ALL_ARGUMENTS.search(own) is not None
    read = set(READ.findall(own))
    for included in _closure(name, folder):
        code = _code((folder / f"{included}.lua").read_text("utf-8"))
        read.update(READ.findall(code))
        if passes_all:
            read.update(READ_OF_ALL.findall(code))
    return read - OF_EVERY_CALL


def _closure(name: str, folder: Path) -> set[str]:
    found: set[str] = set()
    rest = [name]
    while rest:
        for included in INCLUDE.findall((folder / f"{rest.pop()}.lua").read_text("utf-8")):
            if included not in found:
                found.add(included)
                rest.append(included)
    return found


def _code(text: str) -> str:
    text = re.sub(r"--\[\[.*?\]\]", "", text, flags=re.S)
    text = re.sub(r"'(?:\\.|[^'\\\n])*'", "''", text)
    return re.sub(r"--[^\n]*", "", text)
