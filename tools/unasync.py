"""Make the blocking client from the asynchronous one: `make sync` writes it, `make check` fails where it is stale.

`client/` is the source. For each file of GENERATED the same path below `sync/` is written, without `async` and `await`,
and with imports of the other twins. What cannot be translated (sockets, threads, event loops) is written by hand on
both sides, in the modules of BY_HAND, under the same names.

    python -m tools.unasync [--check]
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "groupmq"
GENERATED = (
    "connection/function_client.py",
    "job_actions.py",
    "libraries.py",
    "partitions/looking.py",
    "partitions/methods.py",
    "partitions/moving.py",
    "partitions/routing.py",
    "partitions/spreading.py",
    "partitions/walks.py",
    "partitions/whereabouts.py",
    "queue/adding.py",
    "queue/base.py",
    "queue/since.py",
    "queue/bulk.py",
    "queue/caller.py",
    "queue/changes.py",
    "queue/directory.py",
    "queue/duties.py",
    "queue/groups.py",
    "queue/inspection.py",
    "queue/matching.py",
    "queue/measures.py",
    "queue/methods.py",
    "queue/oversight.py",
    "queue/overtaking.py",
    "queue/repeats.py",
    "queue/search.py",
    "queue/settling.py",
    "queue/upkeep.py",
    "queue/walks.py",
    "registry.py",
    "server.py",
)
BY_HAND = ("connection/connections.py", "job.py", "partitions/replies.py", "queue/queue.py")
HEADER = "# Generated from src/groupmq/client/{source} by `make sync`; do not edit.\n"
NAMES = {"Connection": "BlockingConnection", "__aenter__": "__enter__", "__aexit__": "__exit__"}
_MODULES = {path.removesuffix(".py").replace("/", ".") for path in (*GENERATED, *BY_HAND)}
_IMPORT = re.compile(r"\bgroupmq\.client\.([a-z_.]+)")
_PACKAGE_IMPORT = re.compile(r"^from groupmq\.client import (.*)$", re.MULTILINE)
_WORD = re.compile(r"\b(?:await|async) (?=\S)")


def translated(text: str, source: str) -> str:
    """The blocking twin of a file, not formatted yet."""
    text = _IMPORT.sub(lambda found: f"groupmq.{'sync' if found[1] in _MODULES else 'client'}.{found[1]}", text)
    text = _PACKAGE_IMPORT.sub(lambda found: _package_import(found[1]), text)
    return HEADER.format(source=source) + _without_await(text)


def _package_import(names: str) -> str:
    """`from groupmq.client import registry, server`: each from where it is for the blocking client."""
    modules = [name.strip() for name in names.split(",")]
    twins = [name for name in modules if name in _MODULES]
    others = [name for name in modules if name not in _MODULES]
    lines = [f"from groupmq.client import {', '.join(others)}"] if others else []
    return "\n".join(lines + ([f"from groupmq.sync import {', '.join(twins)}"] if twins else []))


def _without_await(text: str) -> str:
    """Drop `async` and `await`, in strings and comments too, and brackets that are needed only around an `await`."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    dropped = set[int]()
    replaced: dict[int, str] = {}
    for at, token in enumerate(tokens):
        if token.type == tokenize.NAME and token.string in ("async", "await"):
            dropped.add(at)
            if token.string == "await" and (brackets := _only_brackets(tokens, at)) is not None:
                dropped.update(brackets)
        elif token.type == tokenize.NAME and token.string in NAMES:
            replaced[at] = NAMES[token.string]
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            replaced[at] = _WORD.sub("", token.string)
    lines = text.splitlines(keepends=True)
    for at in range(len(tokens) - 1, -1, -1):
        if at not in dropped and at not in replaced:
            continue
        (first, begin), (last, end) = tokens[at].start, tokens[at].end
        instead = replaced.get(at, "")
        if at in dropped and tokens[at].type == tokenize.NAME:
            end += 1  # the space behind it
        head, tail = lines[first - 1][:begin], lines[last - 1][end:]
        lines[first - 1 : last] = [head + instead + tail]
        if last > first:
            lines[first:first] = [""] * (last - first)  # keep the numbers of earlier tokens' lines
    return "".join(lines)


def _only_brackets(tokens: list[tokenize.TokenInfo], at: int) -> tuple[int, int] | None:
    """The brackets around `(await name.of(a, call))`, if there is nothing else in them and they are no call."""
    before = tokens[at - 2] if at >= 2 else None
    if tokens[at - 1].string != "(" or before is None:
        return None
    if before.string in (")", "]") or (before.type == tokenize.NAME and before.string not in _KEYWORDS):
        return None
    depth = 0
    for i in range(at + 1, len(tokens)):
        text = tokens[i].string
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            if depth == 0:
                return at - 1, i
            depth -= 1
        elif (depth == 0 and tokens[i].type != tokenize.NAME and text != ".") or (depth == 0 and text in _KEYWORDS):
            return None
    return None


_KEYWORDS = frozenset("and as assert else for if in is lambda not or return while yield".split())


def formatted(text: str, name: str) -> str:
    """As `ruff` would leave it: imports sorted and lines broken."""
    for words in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *words, "--stdin-filename", str(PACKAGE / "sync" / name), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
        if not done.stdout and text:
            raise SystemExit(f"ruff cannot read the twin of {name}:\n{done.stderr}")
        text = done.stdout
    return text


def twin(name: str) -> str:
    return formatted(translated((PACKAGE / "client" / name).read_text("utf-8"), name), name)


def stale() -> list[str]:
    """Files of the blocking client that are missing or differ from what the source gives."""
    found = []
    for name in GENERATED:
        target = PACKAGE / "sync" / name
        if not target.exists() or target.read_text("utf-8") != twin(name):
            found.append(f"src/groupmq/sync/{name}")
    return found


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        found = stale()
        for path in found:
            print(f"{path}: not what client/ gives; run `make sync`")
        return 1 if found else 0
    for name in GENERATED:
        target = PACKAGE / "sync" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = twin(name)
        if not target.exists() or target.read_text("utf-8") != text:
            target.write_text(text, encoding="utf-8")
            print(f"wrote src/groupmq/sync/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
