"""The gate: every request passes it before anything else looks at it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from groupmq.dashboard import paths
from groupmq.dashboard.errors import Refused
from groupmq.dashboard.security.access import Access
from groupmq.dashboard.security.auth import Auth
from groupmq.dashboard.security.csrf import is_foreign

OPEN = ("/healthz", "/login")
"""Served without a login; `/static/` too."""
HARMLESS = ("GET", "HEAD", "OPTIONS")
STILL_ALLOWED = ("/login", "/logout")
"""Posts that change no queue: a read-only dashboard has a login too."""


class LoginNeeded(Refused):
    """No user is logged in, and there is a page to log in."""


class Gate:
    """Checks the user, whether they may look, read-only, and whether another site made the request."""

    def __init__(self, app: ASGIApp, auth: Auth, access: Access) -> None:
        self._app = app
        self._auth = auth
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._check(Request(scope))
        await self._app(scope, receive, send)

    async def _check(self, request: Request) -> None:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", "").rstrip("/")) or "/"
        changes = request.method not in HARMLESS
        if changes and is_foreign(request):
            raise Refused(403, "Refused", "The request comes from another site.", "Open the dashboard itself.")
        if changes and self._access.read_only and path not in STILL_ALLOWED:
            raise Refused(403, "Read-only", "Nothing can be changed with this dashboard.")
        if path in OPEN or path.startswith("/static/"):
            return
        user = await self._auth.user(request)
        if user is None:
            raise self._refusal(path)
        if not await self._access.may_view(user):
            raise Refused(403, "Not allowed", "You may not see this dashboard.", "Ask those who run it.")
        request.scope["groupmq.user"] = user
        request.scope["groupmq.allowed"] = await self._access.allowed(user)

    def _refusal(self, path: str) -> Refused:
        auth = self._auth
        if auth.challenge is None:
            return Refused(403, "Not allowed", auth.refusal, auth.hint)
        kind = LoginNeeded if auth.has_login and not path.startswith(paths.API) else Refused
        refused = kind(401, "Not logged in", auth.refusal, auth.hint)
        refused.headers["WWW-Authenticate"] = auth.challenge
        return refused
