"""The page `queues`: every queue of the server in a row."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from groupmq import ConnectionLost, ServerRefused
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.server import Server, server
from groupmq.dashboard.documents.view import View

MOST = 25
"""Queues on one page: each takes several calls."""


@record
class QueuesQuery:
    offset: Annotated[int, Meta(ge=0, le=100_000)] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST)] = MOST


@record
class QueuesPage:
    queues: list[QueueRow]
    total: int
    offset: int
    limit: int
    next: int | None
    """Offset of the next page."""
    server: Server | None
    unreachable: str | None
    """Why the list is empty: the server does not answer."""


async def build(view: View, query: QueuesQuery) -> QueuesPage:
    try:
        return await _build(view, query)
    except (ConnectionLost, ServerRefused):
        return QueuesPage(
            queues=[],
            total=0,
            offset=query.offset,
            limit=query.limit,
            next=None,
            server=None,
            unreachable="The server that holds the queues does not answer.",
        )


async def _build(view: View, query: QueuesQuery) -> QueuesPage:
    names = await view.shared.catalogue.names()
    here = names[query.offset : query.offset + query.limit]
    rows = await asyncio.gather(*(view.shared.named_row(name, fresh=view.fresh) for name in here))
    after = query.offset + query.limit
    return QueuesPage(
        queues=[row for row in rows if row is not None],
        total=len(names),
        offset=query.offset,
        limit=query.limit,
        next=after if after < len(names) else None,
        server=server(await view.shared.server_info()),
        unreachable=None,
    )


PAGE = Page("queues", "Queues", QueuesQuery, QueuesPage, build, "The queues of the server, one row each.")
