"""The Lua side as texts that a server takes: one function library of everything, and each function as a script.

`lua/*.lua` are functions that clients call; the files in `lua/lib` and `lua/transitions` are their parts. A function's
file has, in this order: what it does, the files it includes, helpers, and one line that begins its body:

    --- @reads                        changes nothing
    --- @writes [flag ...] [remembers]  changes something, and ends with `commit(reply)`
    --- @plain [flag ...]             does not need the queue to exist

A flag is one of the server's own (`allow-oom`). `remembers`: its answers are kept for a while, for calls that are sent
again (`lua/lib/kept_replies.lua`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import NamedTuple

_PRIVATE = "--- @private"
_INCLUDE = re.compile(r'^--- @include "([\w/]+)"\s*$')
_BODY = re.compile(r"^--- @(reads|writes|plain)((?: [a-z-]+)*)\s*$")
_COMMENT = re.compile(r"^\s*--")
_SERVER_LINE = re.compile(r"user_(script|function):(\d+)")
_FRAMES = {"reads": "lib/reading", "writes": "lib/writing", "plain": "lib/plain"}
_REMEMBERS = "remembers"
_HASH_LENGTH = 12
LIBRARIES = "groupmq_"
"""The beginning of the names of all groupmq libraries, of every release."""

Origin = tuple[str, int]
"""File and line."""


class Text:
    """A text for the server, and the origin of each of its lines. A comment becomes an empty line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._origins: list[Origin] = []
        self._included: set[str] = set()
        self._in_comment = False

    def line(self, line: str, origin: Origin) -> None:
        if line.startswith("--[["):
            self._in_comment = True
        ends = self._in_comment and line.rstrip().endswith("]]")
        self._lines.append("" if self._in_comment or _COMMENT.match(line) else line)
        self._origins.append(origin)
        self._in_comment = self._in_comment and not ends

    def include(self, name: str, above: tuple[str, ...] = ()) -> None:
        """Add a file of the library and the files that it includes, each once, in dependency order."""
        if name in above:
            raise ValueError(f"Lua include cycle: {' -> '.join((*above, name))}")
        if name in self._included:
            return
        self._included.add(name)
        written = _read(name)
        for number, line in enumerate(written, start=1):
            included = _INCLUDE.match(line)
            if included:
                self.include(included[1], (*above, name))
                continue
            # The rest of the file becomes a block, so that no other file sees its locals.
            self.line("do" if line == _PRIVATE else line, (f"{name}.lua", number))
        if _PRIVATE in written:
            self.line("end", (f"{name}.lua", len(written)))

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def origins(self) -> tuple[Origin, ...]:
        return tuple(self._origins)


class Function(NamedTuple):
    """A function as it is written: its file, cut at the line that begins its body."""

    name: str
    frame: str
    flags: tuple[str, ...]
    remembers: bool
    written: list[str]
    body: int
    """Number of the line that begins the body."""

    @property
    def file(self) -> str:
        return f"{self.name}.lua"

    @property
    def includes(self) -> list[str]:
        found = [included[1] for included in map(_INCLUDE.match, self.written) if included]
        return [*found, _FRAMES[self.frame]]

    def write(self, text: Text, opening: str) -> None:
        """Add the file without its includes; `opening` replaces the line that begins the body."""
        for number, line in enumerate(self.written, start=1):
            if not _INCLUDE.match(line):
                text.line(opening if number == self.body else line, (self.file, number))

    def begin(self, keys: str, arguments: str) -> str:
        """Lua code that begins a call. If it has a reply already, it ends the call at once."""
        return f"local early = begin_{self.frame}({keys}, {arguments}) if early ~= nil then return early end"


@dataclass(frozen=True, slots=True)
class Library:
    """All functions as one text for FUNCTION LOAD. Its name has a hash of the text, so two releases never share one."""

    name: str
    text: str
    origins: tuple[Origin, ...]

    def function(self, name: str) -> str:
        """The name of a function on the server."""
        return f"{self.name}_{name}"


@dataclass(frozen=True)
class Script:
    """A function, and the same function as a separate script for servers that do not accept libraries."""

    name: str
    library: Library
    function: str
    """Its name on the server."""
    reads: bool
    """It changes nothing, so a replica may run it."""
    remembers: bool

    @cached_property
    def _expanded(self) -> tuple[str, tuple[Origin, ...]]:
        # Made at its first use: a server that accepts the library never needs it.
        function, text = read(self.name), Text()
        flags = f" flags={','.join(function.flags)}" if function.flags else ""
        text.line(f"#!lua{flags}", (function.file, function.body))
        for included in function.includes:
            text.include(included)
        function.write(text, function.begin("KEYS", "ARGV"))
        return text.text(), text.origins()

    @property
    def text(self) -> str:
        return self._expanded[0]

    @property
    def origins(self) -> tuple[Origin, ...]:
        return self._expanded[1]

    @cached_property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def explain(self, message: str) -> str:
        """Rewrite a server's error so that it names the Lua file and line."""

        def in_file(match: re.Match[str]) -> str:
            origins = self.origins if match[1] == "script" else self.library.origins
            at = int(match[2])
            file, line = origins[at - 1] if 1 <= at <= len(origins) else (f"{self.name}.lua", at)
            return f"{file}:{line}"

        return _SERVER_LINE.sub(in_file, message)


def names() -> list[str]:
    """The names of the functions that clients can call, sorted."""
    folder = resources.files("groupmq.protocol") / "lua"
    return sorted(f.name.removesuffix(".lua") for f in folder.iterdir() if f.name.endswith(".lua"))


@cache
def load(name: str) -> Script:
    """Read a function with all its includes. Raises FileNotFoundError or ValueError for a broken file."""
    function, whole = read(name), library()
    return Script(name, whole, whole.function(name), "no-writes" in function.flags, function.remembers)


@cache
def library() -> Library:
    """All functions as one text."""
    text = Text()
    functions = [read(name) for name in names()]
    text.line("#!lua name=LIBRARY", ("library", 1))
    for function in functions:
        for included in function.includes:
            text.include(included)
    for function in functions:
        flags = ", ".join(f"'{flag}'" for flag in function.flags)
        text.line("do", (function.file, 1))
        opening = (
            f"redis.register_function({{ function_name = 'LIBRARY_{function.name}', flags = {{ {flags} }}, "
            f"callback = function(given, argv) {function.begin('given', 'argv')}"
        )
        function.write(text, opening)
        text.line("end }) end", (function.file, len(function.written)))
    return named(text.text(), text.origins())


def named(text: str, origins: tuple[Origin, ...]) -> Library:
    """Make a library of this text, in which LIBRARY stands for its name."""
    name = LIBRARIES + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    first, rest = text.split("\n", 1)
    first, rest = first.replace("LIBRARY", name), rest.replace("'LIBRARY_", f"'{name}_")
    return Library(name, f"{first}\n{rest}", origins)


@cache
def read(name: str) -> Function:
    written = _read(name)
    for number, line in enumerate(written, start=1):
        body = _BODY.match(line)
        if body:
            words = body[2].split()
            flags = tuple(word for word in words if word != _REMEMBERS)
            if body[1] == "reads":
                flags = ("no-writes", *flags)
            return Function(name, body[1], flags, _REMEMBERS in words, written, number)
    raise ValueError(f"{name}.lua: no line begins its body: --- @reads, --- @writes or --- @plain")


def expand(name: str) -> str:
    """The full text of a function as a script."""
    return load(name).text


def locate(name: str, line: int) -> Origin:
    """The file and line where `line` (from 1) of the script was written."""
    origins = load(name).origins
    return origins[line - 1] if 1 <= line <= len(origins) else (f"{name}.lua", line)


@cache
def _read(name: str) -> list[str]:
    return (resources.files("groupmq.protocol") / "lua" / f"{name}.lua").read_text("utf-8").splitlines()
