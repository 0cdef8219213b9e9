"""Lint the Lua scripts as the server sees them: expanded, one file per script.

A library file alone is noise to luacheck: it uses tables that other files define, and defines one that others
use. So every script is expanded as the loader does it, the result is linted, and each finding is told at the
line of the file it came from. A finding in a library file that several scripts include is told once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from groupmq import scripts

ROOT = Path(__file__).resolve().parent.parent
FINDING = re.compile(r"^(?P<path>.+?):(?P<line>\d+):(?P<column>\d+)(?:-\d+)?: \((?P<code>[EW]\d+)\) (?P<text>.*)$")
# "Defined but not used": true of a script that uses half of a library, a fault only if no script uses it.
UNUSED = ("W21", "W22", "W23", "W24", "W31")


class Finding(NamedTuple):
    """One complaint of luacheck, at its place in the source."""

    file: str
    line: int
    column: int
    code: str
    text: str

    def __str__(self) -> str:
        return f"src/groupmq/lua/{self.file}:{self.line}:{self.column}: ({self.code}) {self.text}"


def lint(luacheck: str, folder: Path) -> dict[Finding, set[str]]:
    """Run luacheck over the expanded scripts in folder; return each finding with the scripts that have it."""
    command = [
        luacheck,
        "--config",
        str(ROOT / ".luacheckrc"),
        "--formatter",
        "plain",
        "--codes",
        "--no-color",
    ]
    files = sorted(folder.glob("*.lua"))
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
    found: dict[Finding, set[str]] = defaultdict(set)
    for line in filter(None, done.stdout.splitlines()):
        match = FINDING.match(line)
        if match is None:
            raise SystemExit(f"lint_lua: cannot read luacheck's answer: {line}")
        name = Path(match["path"]).stem
        file, number = scripts.locate(name, int(match["line"]))
        finding = Finding(file, number, int(match["column"]), match["code"], match["text"])
        found[finding].add(name)
    if done.returncode and not found:
        raise SystemExit(f"lint_lua: luacheck failed: {done.stderr.strip()}")
    return found


def includers(texts: dict[str, str]) -> dict[str, set[str]]:
    """Return for every source file the scripts whose expansion contains it."""
    users: dict[str, set[str]] = defaultdict(set)
    for name, text in texts.items():
        for number in range(1, len(text.splitlines()) + 1):
            users[scripts.locate(name, number)[0]].add(name)
    return users


def faults(found: dict[Finding, set[str]], users: dict[str, set[str]]) -> list[Finding]:
    """Return the findings to report: all but what some script does use."""
    return sorted(
        finding
        for finding, names in found.items()
        if not finding.code.startswith(UNUSED) or names >= users[finding.file]
    )


def missing_luacheck() -> int:
    """Say that nothing was linted; in CI that is a failure unless GROUPMQ_LUA_LINT=optional."""
    print("lint_lua: NOT RUN: luacheck is not installed (Debian: apt-get install lua-check)", file=sys.stderr)
    return int(bool(os.environ.get("CI")) and os.environ.get("GROUPMQ_LUA_LINT") != "optional")


def main() -> int:
    """Lint every script; return the exit status."""
    luacheck = shutil.which("luacheck")
    if luacheck is None:
        return missing_luacheck()
    texts = {name: scripts.expand(name) for name in scripts.names()}
    with tempfile.TemporaryDirectory(prefix="groupmq-lua-") as folder:
        for name, text in texts.items():
            (Path(folder) / f"{name}.lua").write_text(text)
        reported = faults(lint(luacheck, Path(folder)), includers(texts))
    for finding in reported:
        print(finding)
    print(f"lint_lua: {len(texts)} scripts, {len(reported)} findings")
    return int(bool(reported))


if __name__ == "__main__":
    sys.exit(main())
