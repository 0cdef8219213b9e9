"""The document `login`."""

from __future__ import annotations

from groupmq.dashboard.documents.record import record


@record
class LoginPage:
    next: str
    """Where to go afterwards, a path of this site."""
    problem: str | None
    kind: str
    """token: one field of this name."""
