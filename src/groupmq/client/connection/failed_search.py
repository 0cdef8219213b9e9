"""Why no node that was asked could name the primary."""

from __future__ import annotations

from redis.exceptions import ConnectionError as Unreachable

from groupmq.client.connection.address import Node
from groupmq.client.connection.faults import may_pass, speaks_no_tls, understood
from groupmq.core.errors import ConfigurationError, ServerRefused

_OTHER_KIND = ("unknown command", "cluster support disabled")
"""How servers refuse a question that only sentinels, or only nodes of a cluster, can answer."""


class FailedSearch:
    """The answers of a search that has found nothing so far."""

    def __init__(self) -> None:
        self._seen: list[str] = []
        self._errors: list[Exception] = []

    def add(self, node: Node, answer: Exception | str) -> None:
        """`answer`: the exception in place of an answer, or what the answer lacks."""
        error = answer if isinstance(answer, Exception) else Unreachable(answer)
        self._seen.append(f"{node[0]}:{node[1]}: {str(error) or type(error).__name__}")
        self._errors.append(error)

    def error(self, summary: str, kind: str) -> Exception:
        """The error to raise. `kind`: what the nodes should be. Where waiting cannot help, it is our error: one of
        the client library would make callers try again for as long as a failover may take."""
        sentence = f"{summary} ({'; '.join(self._seen)})"
        known = [understood(error, "") for error in self._errors]
        refusals = [error for error in known if isinstance(error, ServerRefused) and not may_pass(error)]
        if self._errors and len(refusals) == len(known):
            return ServerRefused(refusals[0].kind, sentence)
        if self._errors and all(any(words in str(error) for words in _OTHER_KIND) for error in self._errors):
            return ConfigurationError(f"redis: {sentence}; this is not a {kind}: write redis:// for a single server")
        lost = Unreachable(sentence)
        if self._errors and all(speaks_no_tls(error) for error in self._errors):
            lost.__cause__ = self._errors[0]
        return lost
