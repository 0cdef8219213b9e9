"""Loading of the Lua scripts: includes, SHA, and the way back from a server's line number to file and line."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_PRIVATE = "--- @private"
_INCLUDE = re.compile(r'^--- @include "([\w/]+)"\s*$')
_SERVER_LINE = re.compile(r"user_script:(\d+)")


@dataclass(frozen=True, slots=True)
class Script:
    """A script as the server sees it: one text with every include expanded once, in dependency order."""

    name: str
    text: str
    sha: str
    origins: tuple[tuple[str, int], ...]

    def explain(self, message: str) -> str:
        """Rewrite a server's error so that it names the Lua file and line."""

        def place(match: re.Match[str]) -> str:
            file, line = locate(self.name, int(match[1]))
            return f"{file}:{line}"

        return _SERVER_LINE.sub(place, message)


def names() -> list[str]:
    """The scripts that can be called, by name."""
    folder = resources.files("groupmq") / "lua"
    return sorted(f.name.removesuffix(".lua") for f in folder.iterdir() if f.name.endswith(".lua"))


@cache
def load(name: str) -> Script:
    """Read a script with all it includes. Raises FileNotFoundError or ValueError for a broken include."""
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    _expand(name, lines, origins, done=set(), above=())
    text = "\n".join(lines) + "\n"
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, sha, tuple(origins))


def expand(name: str) -> str:
    """The full text of a script, as it is sent."""
    return load(name).text


def locate(name: str, line: int) -> tuple[str, int]:
    """The file and line where `line` (from 1) of the expanded script was written."""
    origins = load(name).origins
    if 1 <= line <= len(origins):
        return origins[line - 1]
    return f"{name}.lua", line


def _expand(
    name: str, lines: list[str], origins: list[tuple[str, int]], done: set[str], above: tuple[str, ...]
) -> None:
    if name in above:
        raise ValueError(f"Lua include cycle: {' -> '.join((*above, name))}")
    if name in done:
        return
    done.add(name)
    source = (resources.files("groupmq") / "lua" / f"{name}.lua").read_text("utf-8")
    written = source.splitlines()
    for number, line in enumerate(written, start=1):
        include = _INCLUDE.match(line)
        if include:
            _expand(include[1], lines, origins, done, (*above, name))
            continue
        # What follows is a block of its own, to the end of the file: no other file sees its locals.
        lines.append("do" if line == _PRIVATE else line)
        origins.append((f"{name}.lua", number))
    if _PRIVATE in written:
        lines.append("end")
        origins.append((f"{name}.lua", len(written)))
