"""The ASGI app."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from groupmq import Queue
from groupmq.dashboard.actions.catalogue import ACTIONS
from groupmq.dashboard.endpoints.action import action_endpoint, stop_endpoint
from groupmq.dashboard.endpoints.failing import Failing
from groupmq.dashboard.endpoints.login import login_endpoint, logout_endpoint
from groupmq.dashboard.endpoints.page import page_endpoint
from groupmq.dashboard.endpoints.static import static
from groupmq.dashboard.endpoints.stream import stream_endpoint
from groupmq.dashboard.live.shared_state import SharedState
from groupmq.dashboard.live.stream import Streams
from groupmq.dashboard.mounting import placed
from groupmq.dashboard.openapi import openapi_endpoint
from groupmq.dashboard.options import AuditHook, Options, Permissions
from groupmq.dashboard.pages import PAGES
from groupmq.dashboard.paths import API, PATHS
from groupmq.dashboard.redaction import Redact
from groupmq.dashboard.rendering import Renderer
from groupmq.dashboard.security.access import Access
from groupmq.dashboard.security.auth import Auth, Check, auth_of
from groupmq.dashboard.security.csrf import Csrf
from groupmq.dashboard.security.gate import Gate
from groupmq.dashboard.security.headers import SecurityHeaders
from groupmq.dashboard.security.signing import Signer
from groupmq.dashboard.visit import Services


class Dashboard:
    """The dashboard as an ASGI app. It opens queues when the first request asks for them, and needs no lifespan."""

    def __init__(self, options: Options, auth: Auth) -> None:
        self.shared = SharedState(options)
        services = Services(self.shared, Renderer(), auth, Csrf(auth.secret), Signer(auth.secret, "flash"))
        access = Access(options.permissions, ACTIONS, read_only=options.read_only)
        app: ASGIApp = Router(routes=routes(services), redirect_slashes=False)
        self._app = SecurityHeaders(Failing(Gate(app, auth, access), services))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            # With "app" in the scope, the router raises for an unknown path, and Failing answers with an error page.
            await self._app({**placed(scope), "app": self}, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Close the queues when a server that serves only this app stops. A mounted app gets no lifespan."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def close(self) -> None:
        """Close the queues that the dashboard opened. A host app may call this when it stops."""
        await self.shared.close()


def create_app(
    queues: Sequence[str | Queue] | None = None,
    *,
    read_only: bool = False,
    auth: str | Mapping[str, str] | Check | Auth | None = None,
    permissions: Permissions | None = None,
    redact: Redact | Iterable[str] | None = None,
    display_names: Mapping[str, str] | None = None,
    descriptions: Mapping[str, str] | None = None,
    redis: Any = None,
    prefix: str = "groupmq",
    audit: AuditHook | None = None,
    secret: str | None = None,
) -> Dashboard:
    """An ASGI app that shows and manages queues. Mounts under any path of Starlette, FastAPI, Litestar, Quart, Django.

    `queues`: names or Queue objects; None = all queues of the server `redis` (a URL or an asyncio client).
    `auth`: a token, names with hashed passwords (`hash_password`), or a function (request) -> user or None. Without it
    only this machine is served. `permissions(user, action)` decides what a user may do; the action "view" means
    to see the pages. `redact`: names of fields, or a function (value, kind) -> value. A hidden value appears nowhere.
    `audit(entry)` is called with every action: user, action, queue, target, count, outcome. `secret`: signs sessions
    and forms, so that they survive a restart and are valid in every process that has the same secret; without it
    everybody logs in again after a restart.

    >>> app.mount("/queues", create_app(["orders"], auth=check, redact=["password"]))
    """
    options = Options.checked(
        queues,
        redis=redis,
        prefix=prefix,
        read_only=read_only,
        permissions=permissions,
        redact=redact,
        display_names=display_names,
        descriptions=descriptions,
        audit=audit,
    )
    return Dashboard(options, auth_of(auth, secret))


def routes(services: Services) -> list[BaseRoute]:
    """All routes. Each page has two: one for people, and one below /api/v1."""
    streams = Streams()
    found: list[BaseRoute] = []
    for name, page in PAGES.items():
        endpoint = page_endpoint(page, services)
        for path in addresses(name):
            found.append(Route(path, endpoint, methods=["GET"]))
    for path in addresses("action"):
        found.append(Route(path, action_endpoint(services), methods=["GET", "POST"]))
    for path in addresses("stop_task"):
        found.append(Route(path, stop_endpoint(services), methods=["POST"]))
    stream = stream_endpoint(services, streams)
    return [
        Route(PATHS["openapi"], openapi_endpoint(services), methods=["GET"]),
        *found,
        Route(PATHS["stream"], stream, methods=["GET"]),
        Route(PATHS["queue_stream"], stream, methods=["GET"]),
        Route(PATHS["login"], login_endpoint(services), methods=["GET", "POST"]),
        Route(PATHS["logout"], logout_endpoint(services), methods=["POST"]),
        Route(PATHS["static"], static, methods=["GET"]),
        Route(PATHS["health"], health, methods=["GET"]),
    ]


def addresses(name: str) -> list[str]:
    path = PATHS[name]
    if name == "queues":
        return ["/", "/queues", f"{API}/queues"]
    return [path, API + path]


async def health(request: Request) -> Response:
    """Answer if the process is alive. The server of the queues is not checked: a restart would not help."""
    return PlainTextResponse("ok\n")
