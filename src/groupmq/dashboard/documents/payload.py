"""Job data and results, as a page shows them: text everywhere, integers exact, whatever the serializer was."""

from __future__ import annotations

import json
import math
from typing import Any

from groupmq.dashboard.documents.record import record
from groupmq.dashboard.redaction import Redactor

PREVIEW = 160
MOST_TEXT = 256 * 1024
"""Characters of a payload that a page shows; the JSON API returns all of it."""
_DEEPEST = 60


class Unreadable:
    """Bytes that are not JSON: the queue's workers use a serializer that the dashboard does not know."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def __str__(self) -> str:
        return f"{len(self.raw):,} bytes that are not JSON"


@record
class Payload:
    """A job's data or result."""

    value: Any
    text: str
    """Indented JSON."""
    size: int
    """Bytes of the JSON."""
    redacted: bool
    truncated: bool
    unreadable: str | None


def payload(value: Any, redactor: Redactor, kind: str) -> Payload:
    """Job data as a page shows it."""
    if isinstance(value, Unreadable):
        return Payload(value=None, text="", size=len(value.raw), redacted=False, truncated=False, unreadable=str(value))
    plain = clean(value)
    shown = clean(redactor.value(plain, kind))
    text = json.dumps(shown, indent=2, ensure_ascii=False)
    size = len(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())
    return Payload(
        value=shown,
        text=text[:MOST_TEXT],
        size=size,
        redacted=shown != plain,
        truncated=len(text) > MOST_TEXT,
        unreadable=None,
    )


def preview(value: Any, redactor: Redactor, kind: str) -> tuple[str, bool]:
    """One line of a payload, and whether something in it is redacted."""
    if isinstance(value, Unreadable):
        return str(value), False
    plain = clean(value)
    shown = clean(redactor.value(plain, kind))
    return cut(json.dumps(shown, ensure_ascii=False), PREVIEW), shown != plain


def clean(value: Any, depth: int = 0) -> Any:
    """A value that JSON can express. Anything else in it becomes text: a page must not fail because of a job."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= _DEEPEST:
        return "(nested too deeply to be shown)"
    if isinstance(value, dict):
        return {text(str(key)): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    return text(str(value))


def text(value: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate would make a page impossible to send."""
    return value.encode("utf-8", "backslashreplace").decode()


def cut(value: str, most: int) -> str:
    return value if len(value) <= most else value[: most - 1] + "…"
