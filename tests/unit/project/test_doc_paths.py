"""Files and identifiers that a page names exist, so that no page goes stale when they are moved or renamed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from groupmq import Job, Queue, Worker

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "groupmq"
PROTOCOL = SOURCE / "protocol"
LUA = PROTOCOL / "lua"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
)
FILE = re.compile(r"^(?:[a-z_]+/)*[a-z_0-9]+\.(?:lua|py)$")
WHOLE = re.compile(r"^[A-Za-z]\w+(?:\(\))?$")
WITHIN = re.compile(r"\b(?:[A-Za-z]+(?:_\w+)+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+)\b")
"""Within longer code, names that are not plain words: with an underscore, or a capital inside."""
DOTTED = re.compile(r"^([a-z_]+)\.([A-Za-z_]+)(?:\([^.]*\))?$")
CODE = (".py", ".lua", ".js", ".html", ".toml", ".yml", ".json")

API: dict[str, type] = {"queue": Queue, "worker": Worker, "job": Job, "Queue": Queue, "Worker": Worker, "Job": Job}

FOREIGN = {
    "docs/dashboard.md": {"asgi.py"},  # a file of Django projects
    "docs/decisions/0042-blocked-groups.md": {"on_discarded"},  # an option of another library
    "docs/guide.md": {  # names of bee-queue
        *("activateDelayedJobs", "checkStalledJobs", "delayUntil", "reportProgress"),
        *("job.reportProgress(n)", "queue.saveAll(jobs)"),
    },
    "docs/security.md": {
        "cluster_mode",
        "default_lua_flags",
        "lock_on_hashtags",
        "ssl_cert_reqs",
    },  # options of Dragonfly and redis-py
    "docs/decisions/0053-bytes-not-locale.md": {"strcoll"},  # a function of C
}
"""Names of other programs."""

OF_OLD = {
    "docs/decisions/0002-holds-bind-the-head.md": {"hold_until"},
}
"""Former names, on pages that say so."""

BUILT = {
    *("groupmq_worker_limited_total", "groupmq_worker_rate_limited_total"),
    *("groupmq_worker_loop_blocked_seconds", "groupmq_worker_snoozed_total"),
}
"""Metrics whose names are made of parts."""


def code_of(page: str) -> list[str]:
    """The texts in backticks, outside blocks of code."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


def exists(name: str) -> bool:
    if "/" not in name:
        return any(path.name == name for folder in ("src", "tests", "tools") for path in (ROOT / folder).rglob(name))
    return any((folder / name).exists() for folder in (ROOT, SOURCE, SOURCE / "client", PROTOCOL, LUA))


@cache
def words() -> frozenset[str]:
    """All words of the project's code."""
    found = set[str]()
    for folder in ("src", "tests", "tools", "bench", "contrib", "deploy"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in CODE and path != Path(__file__) and path.is_file():
                found.update(re.findall(r"[A-Za-z]\w*", path.read_text("utf-8")))
    for name in ("pyproject.toml", "Makefile", "deploy/Dockerfile"):
        found.update(re.findall(r"[A-Za-z]\w*", (ROOT / name).read_text("utf-8")))
    return frozenset(found)


@cache
def modules() -> dict[str, list[Path]]:
    """The files of the package by their names."""
    found: dict[str, list[Path]] = {}
    for path in (*SOURCE.rglob("*.py"), *SOURCE.rglob("*.lua")):
        found.setdefault(path.stem, []).append(path)
    return found


def is_unknown(name: str) -> bool:
    """Whether an identifier is nowhere in the code. One that ends with an underscore is a prefix of several names."""
    if name.endswith("_"):
        return not any(word.startswith(name) for word in words())
    return name not in words() and name not in BUILT


def is_missing_in_its_owner(code: str) -> bool:
    """Whether `owner.name` names an object of the API, or a file of the package, that has no such name."""
    found = DOTTED.match(code)
    if found is None or found[2] in ("py", "lua", "md", "js", "html", "toml"):
        return False
    owner, name = found.groups()
    if owner in API:
        return not any(name in (*vars(kind), *getattr(kind, "__annotations__", ())) for kind in API[owner].__mro__)
    files = modules().get(owner, [])
    return bool(files) and not any(re.search(rf"\b{name}\b", path.read_text("utf-8")) for path in files)


def names_in(code: str) -> list[str]:
    return [code.removesuffix("()")] if WHOLE.match(code) else WITHIN.findall(code)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    files = {name for name in code_of(page) if FILE.match(name)}
    assert not sorted(name for name in files - FOREIGN.get(page, set()) if not exists(name))


@pytest.mark.parametrize("page", PAGES)
def test_every_identifier_that_a_page_names_exists(page: str) -> None:
    codes = [code for code in code_of(page) if not re.search(r"\w/\w", code) and not FILE.match(code)]
    names = {name for code in codes for name in names_in(code)}
    unknown = {name for name in names if is_unknown(name)}
    known = FOREIGN.get(page, set()) | OF_OLD.get(page, set())
    assert not sorted(unknown - known)
    needless = {name for name in known if name.isidentifier()} - unknown
    assert not sorted(needless), "these exceptions are not needed"


@pytest.mark.parametrize("page", PAGES)
def test_a_name_is_where_a_page_says_it_is(page: str) -> None:
    assert not sorted({code for code in code_of(page) if is_missing_in_its_owner(code)} - FOREIGN.get(page, set()))


def test_a_name_that_is_none_is_found() -> None:
    assert not exists("lib/finish.lua")
    assert exists("lib/group.lua")
    assert FILE.match("lua/lib/group.lua")
    assert is_unknown("going" + "_on")
    assert is_missing_in_its_owner("group_state.tend")
    assert is_missing_in_its_owner("queue.tend()")
    assert not is_missing_in_its_owner("group_state.decide")
