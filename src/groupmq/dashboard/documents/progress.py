"""How far a job has got. Handlers report any JSON, so a fraction is shown only where one can be read."""

from __future__ import annotations

import json
from typing import Any

from groupmq.dashboard.documents.payload import clean, cut
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.redaction import Redactor

_PAIRS = (("done", "total"), ("current", "total"), ("completed", "total"), ("step", "steps"))


@record
class Progress:
    fraction: float | None
    """From 0 to 1; None if the report has no such number."""
    text: str


def progress(value: Any, redactor: Redactor) -> Progress | None:
    """What a handler reported; None if it has not reported anything."""
    if value is None:
        return None
    shown = clean(redactor.value(value, "progress"))
    found = fraction(shown)
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    if isinstance(shown, dict):
        text = _pair(shown) or text
    elif found is not None:
        text = f"{found:.0%}"
    return Progress(fraction=found, text=cut(text, 120))


def fraction(value: Any) -> float | None:
    """A float up to 1 is a fraction, any other number up to 100 a percentage; `{"done": 3, "total": 10}` is 0.3."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and 0 <= value <= 1:
        return value
    if isinstance(value, int | float):
        return value / 100 if 0 <= value <= 100 else None
    if isinstance(value, dict):
        for part, whole in _PAIRS:
            done, total = _number(value.get(part)), _number(value.get(whole))
            if done is not None and total and 0 <= done <= total:
                return done / total
        for name in ("fraction", "percent", "progress"):
            if name in value:
                return fraction(value[name])
    return None


def _pair(value: dict[str, Any]) -> str | None:
    """`3 of 4`, if the report has no other fields."""
    for part, whole in _PAIRS:
        if set(value) == {part, whole} and _number(value[part]) is not None and _number(value[whole]) is not None:
            return f"{value[part]:,} of {value[whole]:,}"
    return None


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
