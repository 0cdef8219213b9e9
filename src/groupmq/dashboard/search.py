"""The search line: words and qualifiers, `group:user:42 error:Timeout older:10m`. Pure.

A value with spaces stands in quotes: `data:"card declined"`. Words without a qualifier are looked for in data and
reasons.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

MOST_TEXT = 500
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]*)", re.IGNORECASE)
_CENTURY = 3_155_760_000.0
_TOKEN = re.compile(r'(?:(?P<name>[a-z]+):)?(?:"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<plain>\S+))', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QualifierInfo:
    name: str
    argument: str
    """The argument of JobFilter that it becomes."""
    example: str
    words: str


QUALIFIERS = (
    QualifierInfo("group", "group_id", "group:user:42", "jobs of this group"),
    QualifierInfo("id", "job_id", "id:8f3a", "the job with this id"),
    QualifierInfo("error", "error", "error:TimeoutError", "failed with this error class: its name, or its whole path"),
    QualifierInfo("worker", "worker", "worker:web-1", "run by this worker"),
    QualifierInfo("data", "text", 'data:"card declined"', "with this text in the data or the reason of the failure"),
    QualifierInfo("older", "older", "older:10m", "older than this: 30s, 10m, 2h, 7d"),
    QualifierInfo("newer", "newer", "newer:1h", "younger than this: 30s, 10m, 2h, 7d"),
)
_BY_NAME = {qualifier.name: qualifier for qualifier in QUALIFIERS}


@dataclass(frozen=True, slots=True)
class TermInfo:
    qualifier: str
    value: str
    text: str
    """As it was typed."""


@dataclass(slots=True)
class Parsed:
    """A search line after parsing. `problems` lists the parts that were not understood and do not count."""

    terms: list[TermInfo] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    """For JobFilter."""
    problems: list[str] = field(default_factory=list)


def parse(line: str) -> Parsed:
    """Parse a search line. No text makes it raise: a search is typed letter by letter."""
    found = Parsed()
    if len(line) > MOST_TEXT:
        found.problems.append(f"the search is cut at {MOST_TEXT} characters")
        line = line[:MOST_TEXT]
    words: list[str] = []
    for token in _TOKEN.finditer(line):
        name = (token["name"] or "").lower()
        value = token["plain"] if token["quoted"] is None else re.sub(r"\\(.)", r"\1", token["quoted"])
        if name and name not in _BY_NAME:
            # `user:42` is a word like any other; only known names are qualifiers.
            value, name = token[0], ""
        if name:
            _take(found, _BY_NAME[name], value, token[0])
        elif value.endswith(":") and value[:-1].lower() in _BY_NAME:
            found.problems.append(f"{value} has no value; for example {_BY_NAME[value[:-1].lower()].example}")
        else:
            words.append(value)
    if words:
        _take(found, _BY_NAME["data"], " ".join(words), " ".join(words))
    return found


def _take(found: Parsed, qualifier: QualifierInfo, value: str, text: str) -> None:
    converted: Any = value
    if qualifier.name in ("older", "newer"):
        converted = duration(value)
        if converted is None:
            found.problems.append(f"{text}: {value!r} is not a duration; for example {qualifier.example}")
            return
    if qualifier.argument in found.arguments:
        found.problems.append(f"{qualifier.name}: is given twice; the last one counts")
        found.terms = [term for term in found.terms if term.qualifier != qualifier.name]
    found.arguments[qualifier.argument] = converted
    found.terms.append(TermInfo(qualifier.name, value, text))


def duration(text: str) -> float | None:
    """Seconds: `90`, `30s`, `10m`, `2h`, `7d`; None if the text is not a duration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or (match[2].lower() or "s") not in _UNITS:
        return None
    found = float(match[1]) * _UNITS[match[2].lower() or "s"]
    return found if found <= _CENTURY else None


def quoted(value: str) -> str:
    """A value as it is written after a qualifier."""
    if re.fullmatch(r'[^\s"]+', value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def last_word(line: str) -> tuple[str, str, str]:
    """The word that is being typed at the end of the line: the text before it, its qualifier (or ""), its beginning."""
    match = re.search(r'(?:^|\s)((?:[a-z]+:)?(?:"[^"]*|[^\s"]*))$', line, re.IGNORECASE)
    if match is None:
        return line, "", ""
    before, word = line[: match.start(1)], match[1]
    name, colon, value = word.partition(":")
    if colon and name.lower() in _BY_NAME:
        return before, name.lower(), value.lstrip('"')
    return before, "", word
