"""A page: its name, the parameters of its URL, its document, and how the document is built."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from groupmq.dashboard.documents.record import record


@record
class NoQuery:
    """A URL without parameters."""


@record
class QueueQuery:
    """A URL that names a queue."""

    queue: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the route, template and operation of the JSON API of the same name."""

    name: str
    title: str
    query: type
    """The record of the parameters in path and query string. Ids come from the path, everything else has a default."""
    document: type
    build: Callable[[Any, Any], Awaitable[Any]]
    """build(view, query) -> document."""
    words: str
    """For the description of the API."""
