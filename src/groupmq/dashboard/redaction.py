"""Values that readers of the dashboard must not see are removed here, before they reach a document.

Every path goes through a Redactor: lists, pages, JSON, search, events, errors, attempts, logs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

from groupmq import ConfigurationError

REDACTED = "[redacted]"
Redact = Callable[[Any, str], Any]
"""redact(value, kind) -> value to show; kind: data, result, progress, error, stack, log, header."""
_logger = logging.getLogger("groupmq.dashboard")


class Redactor:
    """Applies the user's rule. If the rule raises, the value is hidden: showing it would be the worse mistake."""

    def __init__(self, rule: Redact | Iterable[str] | None) -> None:
        self._by_name = rule is not None and not callable(rule)
        if rule is None or callable(rule):
            self._rule: Redact | None = rule
        else:
            self._rule = named(rule)

    @property
    def active(self) -> bool:
        return self._rule is not None

    def value(self, value: Any, kind: str) -> Any:
        if self._rule is None:
            return value
        try:
            return self._rule(value, kind)
        except Exception as error:
            _logger.error("redact raised %s for a value of kind %s; the value is hidden", type(error).__name__, kind)
            return REDACTED

    def text(self, text: str | None, kind: str) -> str | None:
        if text is None or self._rule is None:
            return text
        return str(self.value(text, kind))

    def header(self, name: str, text: str) -> str:
        """The text of a header. A rule by names treats the name of the header like that of a field."""
        if self._by_name:
            return str(self.value({name: text}, "header")[name])
        return self.text(text, "header") or ""


def named(names: Iterable[str]) -> Redact:
    """A rule that hides the values of these names, at any depth and in any case, and `name=...` in text."""
    words = {name.lower() for name in _checked(names)}
    either = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    in_text = re.compile(
        rf"""(?P<name>["']?\b(?:{either})["']?\s*[:=]\s*)(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s,;&)}}\]]+)""",
        re.IGNORECASE,
    )

    def hide(value: Any, kind: str) -> Any:
        if isinstance(value, dict):
            return {k: REDACTED if str(k).lower() in words else hide(v, kind) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [hide(item, kind) for item in value]
        if isinstance(value, str):
            return in_text.sub(rf"\g<name>{REDACTED}", value)
        return value

    return hide


def _checked(names: Iterable[str]) -> list[str]:
    found: list[object] = [names] if isinstance(names, str) else list(names)
    checked = [name for name in found if isinstance(name, str) and name]
    if not found or len(checked) < len(found):
        raise ConfigurationError.expected("redact", "a function (value, kind) -> value, or names of fields", names)
    return checked
