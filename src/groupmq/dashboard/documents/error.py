"""The document `error`: what went wrong and what to do about it. It never names the server or a secret."""

from __future__ import annotations

from groupmq.dashboard.documents.record import record


@record
class ErrorPage:
    status: int
    title: str
    text: str
    hint: str
    unreachable: bool
    """The server that holds the queues does not answer: the page tries again."""
    back: str
