"""Generate the blocking client from the asynchronous one: `make sync` writes it, `make check` fails if it is stale.

`client/` is the source. For each file of GENERATED the same path below `sync/` is written, without `async` and `await`,
and with imports of the other twins. Code that cannot be translated (sockets, threads, event loops) is written by hand
on both sides, in the modules of BY_HAND: private methods of the same names, under public ones that are translated
(`tools/spelled_twice.py`).

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
    "connection/connections.py",
    "connection/function_client.py",
    "connection/link.py",
    "duties/due_work.py",
    "duties/duty.py",
    "duties/presence.py",
    "duties/promotion.py",
    "duties/queue_duties.py",
    "duties/recovery.py",
    "duties/retention.py",
    "duties/scheduler.py",
    "events/followed.py",
    "job.py",
    "libraries.py",
    "partitions/cleanup.py",
    "partitions/inspection.py",
    "partitions/methods.py",
    "partitions/moving.py",
    "partitions/overriding.py",
    "partitions/routing.py",
    "partitions/spreading.py",
    "partitions/walks.py",
    "partitions/whereabouts.py",
    "queue/adding.py",
    "queue/base.py",
    "queue/bulk.py",
    "queue/caller.py",
    "queue/changes.py",
    "queue/checking.py",
    "queue/directory.py",
    "queue/duties.py",
    "queue/group_changes.py",
    "queue/groups.py",
    "queue/inspection.py",
    "queue/matching.py",
    "queue/marks.py",
    "queue/measures.py",
    "queue/methods.py",
    "queue/overtaking.py",
    "queue/queue.py",
    "queue/reading.py",
    "queue/repeats.py",
    "queue/searching.py",
    "queue/settling.py",
    "queue/stored_settings.py",
    "queue/surveying.py",
    "queue/indexed_groups.py",
    "queue/walks.py",
    "registry.py",
    "server.py",
)
WITHIN = {"connection/locating.py": "connection/blocking_locating.py"}
"""Files whose blocking twin stays in `client/`, where the client library may be imported."""
BY_HAND = ("connection/runtime.py", "connection/transport.py", "job_in_handler.py", "queue/runtime.py")
HEADER = "# Generated from src/groupmq/client/{source} by `make sync`; do not edit.\n"
NAMES = {
    "Connection": "BlockingConnection",
    "PerLoop": "PerProcess",
    "Locator": "BlockingLocator",
    "LocatingPrimary": "BlockingLocatingPrimary",
    "LocatingConnection": "BlockingLocatingConnection",
    "LocatingSSLConnection": "BlockingLocatingSSLConnection",
    "search_in_loop": "search_in_thread",
    "AsyncGenerator": "Iterator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
}
_ANSWER = ["[", "Any", ",", "Any", ","]
"""The tokens after `Coroutine` in the type of an awaited answer, `Coroutine[Any, Any, T]`, which becomes `T`."""
_MODULES = {path.removesuffix(".py").replace("/", ".") for path in (*GENERATED, *BY_HAND)}
_IMPORT = re.compile(r"\bgroupmq\.client\.([a-z_.]+)")
_LIBRARY = re.compile(r"\bredis\.asyncio\b")
_PACKAGE_IMPORT = re.compile(r"^from groupmq\.client((?:\.[a-z_]+)*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
WORD = re.compile(r"\b(?:await|async) (?=\S)")


def translated(text: str, source: str) -> str:
    """Translate a file to its blocking version, not formatted yet."""
    text = _IMPORT.sub(lambda found: f"groupmq.{'sync' if found[1] in _MODULES else 'client'}.{found[1]}", text)
    text = _LIBRARY.sub("redis", text)
    text = _PACKAGE_IMPORT.sub(_package_import, text)
    return HEADER.format(source=source) + _without_await(text)


def _package_import(found: re.Match[str]) -> str:
    """Translate `from groupmq.client import registry, server`: each module comes from `sync` if it is there."""
    package, names = found[1], found[2] or found[3]
    modules = [name.strip() for name in names.split(",") if name.strip()]
    twins = [name for name in modules if f"{package}.{name}".lstrip(".") in _MODULES]
    others = [name for name in modules if name not in twins]
    lines = [f"from groupmq.client{package} import {', '.join(others)}"] if others else []
    return "\n".join(lines + ([f"from groupmq.sync{package} import {', '.join(twins)}"] if twins else []))


def _without_await(text: str) -> str:
    """Drop `async` and `await`, in strings and comments too, and brackets that are needed only around an `await`."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    dropped = set[int]()
    replaced: dict[int, str] = {}
    for at, token in enumerate(tokens):
        if token.string == "Coroutine" and [one.string for one in tokens[at + 1 : at + 6]] == _ANSWER:
            dropped.update((*range(at, at + 6), _closing(tokens, at + 2)))
        elif token.string == "AsyncGenerator" and tokens[at + 1].string == "[":
            end = _closing(tokens, at + 2)
            replaced[at] = NAMES[token.string]
            dropped.update((end - 2, end - 1))  # the send type, which is the None of `AsyncGenerator[Event, None]`
        elif token.type == tokenize.NAME and token.string in ("async", "await"):
            dropped.add(at)
            if token.string == "await" and (brackets := _only_brackets(tokens, at)) is not None:
                dropped.update(brackets)
        elif token.type == tokenize.NAME and token.string in NAMES and tokens[at - 1].string != ".":
            replaced[at] = NAMES[token.string]
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            replaced[at] = WORD.sub("", token.string)
    lines = text.splitlines(keepends=True)
    for at in range(len(tokens) - 1, -1, -1):
        if at not in dropped and at not in replaced:
            continue
        (first, begin), (last, end) = tokens[at].start, tokens[at].end
        instead = replaced.get(at, "")
        if at in dropped and tokens[at].string in ("async", "await", ",") and lines[last - 1][end : end + 1] == " ":
            end += 1
        head, tail = lines[first - 1][:begin], lines[last - 1][end:]
        lines[first - 1 : last] = [head + instead + tail]
        if last > first:
            lines[first:first] = [""] * (last - first)  # keep the numbers of earlier tokens' lines
    return "".join(lines)


def _only_brackets(tokens: list[tokenize.TokenInfo], at: int) -> tuple[int, int] | None:
    """The brackets around `(await name.of(a, call))`, if they contain nothing else and are not those of a call."""
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


def _closing(tokens: list[tokenize.TokenInfo], at: int) -> int:
    """The bracket that closes the one before `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].string in ("(", "[", "{"):
            depth += 1
        elif tokens[i].string in (")", "]", "}"):
            if depth == 0:
                return i
            depth -= 1
    raise ValueError("a bracket is not closed")


_KEYWORDS = frozenset("and as assert else for if in is lambda not or return while yield".split())


def target(name: str) -> Path:
    """The path of a file's twin."""
    return PACKAGE / "client" / WITHIN[name] if name in WITHIN else PACKAGE / "sync" / name


def formatted(text: str, name: str) -> str:
    """Format the text with `ruff`: sort the imports and break the lines."""
    for words in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *words, "--stdin-filename", str(target(name)), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT)
        if not done.stdout and text:
            raise SystemExit(f"ruff cannot read the twin of {name}:\n{done.stderr}")
        text = done.stdout
    return text


def twin(name: str) -> str:
    return formatted(translated((PACKAGE / "client" / name).read_text("utf-8"), name), name)


def stale() -> list[str]:
    """Files of the blocking client that are missing or differ from the translation of their source."""
    found = []
    for name in (*GENERATED, *WITHIN):
        path = target(name)
        if not path.exists() or path.read_text("utf-8") != twin(name):
            found.append(path.relative_to(ROOT).as_posix())
    return found


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        found = stale()
        for one in found:
            print(f"{one}: does not match its source in client/; run `make sync`")
        return 1 if found else 0
    for name in (*GENERATED, *WITHIN):
        path = target(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = twin(name)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
