"""The document `suggest`: completions of a search line that is being typed."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from groupmq.dashboard import search
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View

MOST = 8


@record
class SuggestQuery:
    queue: str
    q: Annotated[str, Meta(max_length=2000)] = ""


@record
class Suggestion:
    text: str
    """The whole search line."""
    label: str
    """What a qualifier means; empty for a value."""


@record
class Suggestions:
    q: str
    suggestions: list[Suggestion]


async def build(view: View, query: SuggestQuery) -> Suggestions:
    before, name, start = search.last_word(query.q)
    if name:
        values = await _values(view, name, start)
        found = [Suggestion(text=f"{before}{name}:{search.quoted(value)} ", label="") for value in values]
    else:
        found = [
            Suggestion(text=f"{before}{one.name}:", label=one.words)
            for one in search.QUALIFIERS
            if one.name.startswith(start.lower())
        ]
    return Suggestions(q=query.q, suggestions=found[:MOST])


async def _values(view: View, name: str, start: str) -> list[str]:
    if name == "group":
        page = await view.queue.get_groups(sort="name", match=start or None, limit=MOST)
        return [found.group.id for found in page.groups]
    if name == "worker":
        found = {worker.name for worker in await view.queue.get_workers()}
    elif name == "error":
        groups = (await view.queue.get_failure_groups(20, scan=1000)).groups
        found = {group.error_class for group in groups if group.error_class}
    elif name in ("older", "newer"):
        return [value for value in ("30s", "10m", "1h", "6h", "1d", "7d") if value.startswith(start)]
    else:
        return []
    return sorted(value for value in found if start.lower() in value.lower())


PAGE = Page("suggest", "Suggestions", SuggestQuery, Suggestions, build, "Completions of a search that is being typed.")
