"""Lint the Lua files: run luacheck on the library as the server sees it, and check the includes, the contracts
and the fields of groups.

luacheck cannot judge a file alone, since each file uses tables of other files and defines one for them. So the whole
library is linted, and each finding is reported at the line of the file that it comes from.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from groupmq.protocol import functions
from tools import lua_contracts, lua_groups, lua_includes

ROOT = Path(__file__).resolve().parent.parent
LUA = ROOT / "src" / "groupmq" / "protocol" / "lua"
FINDING = re.compile(r"^(?P<path>.+?):(?P<line>\d+):(?P<column>\d+)(?:-\d+)?: \((?P<code>[EW]\d+)\) (?P<text>.*)$")
LONG_LINE = "W631"
LONGEST = 120


def lint(luacheck: str, library: functions.Library) -> list[str]:
    """The findings of luacheck in the library, each with its source file and line."""
    with tempfile.NamedTemporaryFile("w", prefix="groupmq-", suffix=".lua") as file:
        first, rest = library.text.split("\n", 1)
        file.write(f"-- {first}\n{rest}")
        file.flush()
        command = [luacheck, "--config", str(ROOT / ".luacheckrc"), "--formatter", "plain", "--codes", "--no-color"]
        done = subprocess.run([*command, file.name], capture_output=True, text=True, check=False)
    found = []
    for line in filter(None, done.stdout.splitlines()):
        match = FINDING.match(line)
        if match is None:
            raise SystemExit(f"lint_lua: cannot read luacheck's answer: {line}")
        source, number = library.origins[int(match["line"]) - 1]
        if match["code"] == LONG_LINE and not is_long(source, number):
            continue  # the loader has generated this line
        found.append(f"src/groupmq/protocol/lua/{source}:{number}:{match['column']}: ({match['code']}) {match['text']}")
    if done.returncode and not found and not done.stdout:
        raise SystemExit(f"lint_lua: luacheck failed: {done.stderr.strip()}")
    return found


def is_long(source: str, number: int) -> bool:
    return len((LUA / source).read_text("utf-8").splitlines()[number - 1]) > LONGEST


def missing_luacheck() -> int:
    """Report that nothing was linted; in CI that is a failure unless GROUPMQ_LUA_LINT=optional."""
    print("lint_lua: NOT RUN: luacheck is not installed (Debian: apt-get install lua-check)", file=sys.stderr)
    return int(bool(os.environ.get("CI")) and os.environ.get("GROUPMQ_LUA_LINT") != "optional")


def main() -> int:
    """Lint the library, the includes, the contracts and the fields of groups; return the exit status."""
    reported = lua_includes.faults(LUA) + lua_contracts.faults(LUA) + lua_groups.faults(LUA)
    for finding in reported:
        print(finding)
    luacheck = shutil.which("luacheck")
    if luacheck is None:
        return missing_luacheck() or int(bool(reported))
    by_luacheck = lint(luacheck, functions.library())
    for finding in by_luacheck:
        print(finding)
    print(f"lint_lua: {len(functions.names())} functions, {len(reported) + len(by_luacheck)} findings")
    return int(bool(reported or by_luacheck))


if __name__ == "__main__":
    sys.exit(main())
