"""One request: its user, what it asks for, and the form of the answer."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from groupmq import ConnectionLost, GroupMQError, ServerRefused
from groupmq.dashboard import paths
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.layout import Flash, NavQueue, layout
from groupmq.dashboard.live.shared_state import SharedState
from groupmq.dashboard.negotiation import prefers_json
from groupmq.dashboard.rendering import Renderer, context
from groupmq.dashboard.security.auth import Auth
from groupmq.dashboard.security.csrf import COOKIE, LIFETIME, Csrf
from groupmq.dashboard.security.signing import Signer

FLASH = "groupmq_flash"
_MOST_QUEUES = 200
_BLOCK_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that every request needs, made once with the app."""

    shared: SharedState
    renderer: Renderer
    auth: Auth
    csrf: Csrf
    flashes: Signer


@record
class Heading:
    """The name, title and queue of a page, for its frame."""

    name: str
    title: str
    queue: str | None = None


class Visit:
    """A request, after the gate has let it in."""

    def __init__(self, request: Request, services: Services) -> None:
        self.request = request
        self.services = services
        self.user: str = request.scope.get("groupmq.user", "")
        self.allowed: frozenset[str] = request.scope.get("groupmq.allowed", frozenset())
        self.base: str = request.scope.get("root_path", "").rstrip("/")

    @property
    def wants_json(self) -> bool:
        """Whether the path asks for JSON, or the client prefers it to a page."""
        if self.path.startswith(paths.API + "/"):
            return True
        return prefers_json(", ".join(self.request.headers.getlist("accept")))

    @property
    def path(self) -> str:
        """The path below the mount point."""
        return self.request.scope["path"].removeprefix(self.base) or "/"

    @property
    def by_script(self) -> bool:
        """Whether a script of the page made the request. Otherwise the browser loads a whole page."""
        return "hx-request" in self.request.headers

    @property
    def block(self) -> str | None:
        """The part of the page that is asked for; None = the whole."""
        found = self.request.headers.get("x-fragment") or self.request.query_params.get("fragment")
        return found[:_BLOCK_LENGTH] if found else None

    @property
    def here(self) -> str:
        """The page's own address, local, without the part that names a fragment."""
        kept = [(k, v) for k, v in self.request.query_params.multi_items() if k != "fragment"]
        query = str(self.request.url.remove_query_params(["fragment"]).query) if kept else ""
        path: str = self.request.scope["path"]
        return path + (f"?{query}" if query else "")

    def can(self, action: str) -> bool:
        return action in self.allowed

    def to(self, name: str, **params: object) -> str:
        return paths.build(self.base, name, params)

    def back(self, given: str | None, otherwise: str) -> str:
        """Where to go afterwards: the given path if it is one of this site, else `otherwise`."""
        return given if given and paths.is_local(given) else otherwise

    async def answer(self, document: Any, heading: Heading, *, status: int = 200, block: str | None = None) -> Response:
        """The document as JSON, or as the page of its name."""
        if self.wants_json:
            return Response(msgspec.json.encode(document), status, media_type="application/json")
        return await self._page(document, heading, status, block or self.block)

    async def _page(self, document: Any, heading: Heading, status: int, block: str | None) -> Response:
        nonce = self.services.csrf.nonce(self.request)
        values = context(
            document,
            name=heading.name,
            layout=await self._layout(document, heading, block),
            csrf=self.services.csrf.token(nonce, self.user),
            read_only=self.services.shared.options.read_only,
            can=self.can,
            here=self.here,
        )
        began = time.monotonic()
        html = self.services.renderer.render(heading.name, block, values)
        if block is not None:
            self.services.shared.spent(heading.queue, time.monotonic() - began)
        response = Response(html, status, media_type="text/html")
        if self.request.cookies.get(COOKIE) != nonce:
            self.set_cookie(response, COOKIE, nonce, LIFETIME)
        if FLASH in self.request.cookies and block is None:
            response.delete_cookie(FLASH, path=self.base or "/")
        return response

    async def _row(self, document: Any, heading: Heading, block: str | None) -> QueueRow | None:
        """The queue in one row, for the numbers of the frame: a document that has none gets it from here."""
        if heading.queue is None or block is not None:
            return None
        found = getattr(document, "queue", None)
        if isinstance(found, QueueRow):
            return found
        try:
            return await self.services.shared.named_row(heading.queue)
        except GroupMQError:
            return None  # the frame is shown without numbers

    async def _layout(self, document: Any, heading: Heading, block: str | None) -> Any:
        shared, queue = self.services.shared, heading.queue
        names: list[str] = []
        if heading.name not in ("login", "error"):
            with contextlib.suppress(ConnectionLost, ServerRefused):  # the page itself shows the error
                names = (await shared.catalogue.names())[:_MOST_QUEUES]
        return layout(
            base=self.base,
            name=heading.name,
            title=heading.title,
            user=self.user or None,
            auth=self.services.auth.has_login and bool(self.user),
            queues=[NavQueue(name, shared.catalogue.display_name(name)) for name in names],
            queue=queue,
            display_name=shared.catalogue.display_name(queue) if queue else "",
            description=shared.catalogue.description(queue) if queue else "",
            row=await self._row(document, heading, block),
            flash=self._flash(),
            tasks=[task.row() for task in shared.tasks.running(queue)] if queue else (),
            since=shared.last_event_id(queue) if queue else None,
        )

    def _flash(self) -> Flash | None:
        flash = self.services.flashes.read(self.request.cookies.get(FLASH, ""))
        if flash is None:
            return None
        level, _, text = flash.partition(" ")
        return Flash(level, text)

    def redirect(self, path: str, *, level: str = "", text: str = "") -> Response:
        """Redirect to a page of this site, which shows once what happened."""
        response = RedirectResponse(path, status_code=303)
        if text:
            self.set_cookie(response, FLASH, self.services.flashes.sign(f"{level} {text}"[:1500], lifetime=60), 60)
        return response

    def set_cookie(self, response: Response, name: str, value: str, lifetime: float) -> None:
        response.set_cookie(
            name,
            value,
            max_age=int(lifetime),
            path=self.base or "/",
            secure=self.request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
