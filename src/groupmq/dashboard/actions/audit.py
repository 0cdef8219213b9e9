"""The audit of actions: each one is written to the log as one line and passed to the host app's hook."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from groupmq import QueueSettings
from groupmq.dashboard.options import AuditHook

_audit = logging.getLogger("groupmq.dashboard.audit")
_logger = logging.getLogger("groupmq.dashboard")
TARGETS = ("job", "group", "q", "state", "older", "key", "delay", "rate", "limit", "concurrency", "label")
"""Fields that say what an action was about. Never data: a log is read by more people than a queue."""
SETTINGS = QueueSettings.names()
"""Fields that say what a setting was changed to."""


class Audit:
    def __init__(self, hook: AuditHook | None) -> None:
        self._hook = hook

    def record(
        self, user: str, action: str, queue: str, fields: Mapping[str, str], *, count: int | None, outcome: str
    ) -> None:
        """Log an action and call the hook. `outcome`: done, refused, begun, stopped, failed."""
        target = {name: fields[name] for name in (*TARGETS, *SETTINGS) if fields.get(name)}
        entry: dict[str, Any] = {
            "user": user,
            "action": action,
            "queue": queue,
            "target": target,
            "count": count,
            "outcome": outcome,
        }
        # repr escapes line breaks: otherwise text that a user typed could forge a line of the log.
        about = " ".join(f"{name}={value!r}" for name, value in target.items())
        _audit.info("user=%r action=%s queue=%r %s count=%s outcome=%s", user, action, queue, about, count, outcome)
        if self._hook is not None:
            try:
                self._hook(entry)
            except Exception:
                _logger.exception("the audit hook raised; the action is not affected")
