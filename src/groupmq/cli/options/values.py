"""The values that operators type: durations, instants, JSON. Reads and checks them."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from groupmq import Backoff

if TYPE_CHECKING:
    Type = click.ParamType[Any]
else:
    Type = click.ParamType  # generic only in newer releases of click

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)")


class DurationType(Type):
    """Seconds, or a number with a unit: 30, 1.5, 500ms, 10m, 2h, 7d."""

    name = "duration"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = _DURATION.fullmatch(str(value).strip().lower())
        if found is None or (found[2] or "s") not in _UNITS:
            self.fail(f"{value!r} is not a duration; write seconds or a unit: 30, 1.5, 500ms, 10m, 2h, 7d.", param, ctx)
        found_seconds = float(found[1]) * _UNITS[found[2] or "s"]
        if found_seconds < self._least:
            self.fail(f"{value!r} is too short; it must be at least {self._least:g} s.", param, ctx)
        return found_seconds


class BackoffType(DurationType):
    """A duration, or two of them: 1s..5m grows from the first to the second, twice as long each time."""

    name = "backoff"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        first, dots, last = str(value).partition("..")
        if not dots:
            return super().convert(value, param, ctx)
        return [super().convert(first, param, ctx), super().convert(last, param, ctx)]


def backoff_of(given: Any) -> Any:
    """The value of such an option for the library; None stays None."""
    return Backoff.exponential(base=given[0], max=given[1]) if isinstance(given, list) else given


def instant(value: Any) -> datetime | float:
    """Read ISO 8601 with a zone, or epoch seconds; ValueError says what is wrong."""
    try:
        return float(value)
    except (TypeError, ValueError):
        pass
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a time; write 2026-01-31T09:00:00+01:00 or epoch seconds.") from None
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; add Z or an offset such as +01:00.")
    return moment


class InstantType(Type):
    """A moment, as `instant` reads it."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | float:
        try:
            return instant(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def read_json(text: str) -> Any:
    """Read strict JSON: no NaN, no infinities. ValueError says in one line what is wrong and where."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno} column {error.colno}"
        raise ValueError(f"{error.msg}, {where}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class PayloadType(Type):
    """JSON as it stands, `-` for standard input, `@file` for a file."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = self._text(str(value), param, ctx)
        try:
            # In a tuple: the payload `null` is a payload, and None would be "not given".
            return (read_json(text),)
        except ValueError as error:
            hint = " Text needs quotes of its own: '\"hello\"'." if text[:1].isalpha() else ""
            self.fail(f"not JSON: {error}.{hint}", param, ctx)

    def _text(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            if value == "-":
                return sys.stdin.read()
            return Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value
        except OSError as error:
            self.fail(f"cannot read {value[1:]}: {error.strerror}.", param, ctx)
        except UnicodeDecodeError:
            self.fail("it is not UTF-8 text.", param, ctx)


DURATION, BACKOFF, INSTANT, PAYLOAD = DurationType(), BackoffType(), InstantType(), PayloadType()
