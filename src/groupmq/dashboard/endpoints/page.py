"""The endpoint of a page: build its document and return it as HTML or JSON."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from groupmq import QueueNotFound
from groupmq.dashboard import paths
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.errors import Refused
from groupmq.dashboard.visit import Heading, Services, Visit

HttpEndpoint = Callable[[Request], Awaitable[Response]]


def page_endpoint(page: Page, services: Services) -> HttpEndpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, services)
        query = read_query(page.query, visit)
        view = await view_of(visit, getattr(query, "queue", None), fresh=visit.block is None)
        document = await build(page, view, query, visit)
        status = 503 if getattr(document, "unreachable", None) else 200
        heading = Heading(name=page.name, title=page.title, queue=view.named)
        return await visit.answer(document, heading, status=status)

    return endpoint


async def build(page: Page, view: View, query: Any, visit: Visit) -> Any:
    """Build the document. Tabs that fetch the same part within a second share it."""
    if view.fresh:
        return await page.build(view, query)

    async def make() -> Any:
        began = time.monotonic()
        try:
            return await page.build(view, query)
        finally:
            view.shared.spent(view.named, time.monotonic() - began)

    # A page can depend on what its reader may do, so readers with other permissions do not share it.
    return await view.shared.answers.get((page.name, query, visit.allowed), make)


def read_query(kind: type, visit: Visit) -> Any:
    """The parameters in path and query string, checked. Raises msgspec.ValidationError, or Refused for a bad id."""
    found: dict[str, str] = dict(visit.request.query_params)
    found.pop("fragment", None)
    known = kind.__dataclass_fields__  # type: ignore[attr-defined]
    found = {name: value for name, value in found.items() if name in known}
    found |= read_ids(visit.request)
    return msgspec.convert(found, kind, strict=False)


def read_ids(request: Request) -> dict[str, str]:
    """The ids in the path."""
    try:
        return {name: paths.unsegment(value) for name, value in request.path_params.items()}
    except ValueError as error:
        raise Refused(404, "There is no such page", f"The address is not understood: {error}.") from None


async def view_of(visit: Visit, queue: str | None, *, fresh: bool = True) -> View:
    """The view of a queue, which is opened for it, or of the server."""
    shared = visit.services.shared
    opened = None
    if queue is not None:
        try:
            opened = await shared.catalogue.open(queue)
        except QueueNotFound:
            await shared.catalogue.forget(queue)
            raise
    return View(
        shared=shared,
        redactor=shared.options.redactor,
        user=visit.user,
        can=visit.can,
        fresh=fresh,
        named=queue,
        opened=opened,
    )
