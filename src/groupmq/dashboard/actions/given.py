"""Reads and checks the fields that came with an action."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from groupmq.dashboard import search

_LONGEST_ID = 2000


class BadField(Exception):
    """A field has an invalid value; nothing was done."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class Given:
    """Reads field by field. An empty field counts as not given."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)

    def text(self, name: str, default: str = "") -> str:
        found = self.fields.get(name, "")
        if len(found) > _LONGEST_ID:
            raise BadField(name, f"at most {_LONGEST_ID:,} characters")
        return found or default

    def required(self, name: str) -> str:
        found = self.text(name)
        if not found:
            raise BadField(name, "is missing")
        return found

    def duration(self, name: str) -> float | None:
        """Seconds: `90`, `30s`, `10m`, `2h`."""
        found = self.text(name).strip()
        if not found:
            return None
        seconds = search.duration(found)
        if seconds is None:
            raise BadField(name, "write seconds or a unit: 90, 30s, 10m, 2h, 7d")
        return seconds

    def whole(self, name: str, lowest: int, highest: int) -> int | None:
        found = self.text(name).strip().replace(",", "")
        if not found:
            return None
        if not found.removeprefix("-").isdecimal() or not lowest <= int(found[:20]) <= highest:
            raise BadField(name, f"a whole number from {lowest:,} to {highest:,}")
        return int(found)

    def number(self, name: str, lowest: float, highest: float) -> float | None:
        found = self.text(name).strip()
        if not found:
            return None
        try:
            value = float(found)
        except ValueError:
            value = float("nan")
        if not lowest <= value <= highest:
            raise BadField(name, f"a number from {lowest:g} to {highest:g}")
        return value

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        found = self.text(name, choices[0])
        if found not in choices:
            raise BadField(name, f"one of {', '.join(choices)}")
        return found

    def json(self, name: str) -> Any:
        """Strict JSON."""
        found = self.fields.get(name, "")
        if not found.strip():
            raise BadField(name, 'is missing; for example {"amount": 999}')
        try:
            return json.loads(found, parse_constant=_no_constant, parse_float=_finite)
        except json.JSONDecodeError as error:
            raise BadField(name, f"not JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
        except (ValueError, RecursionError) as error:
            raise BadField(name, f"not JSON: {error}") from None


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large for a number")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
