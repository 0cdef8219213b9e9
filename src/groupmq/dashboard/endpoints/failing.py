"""Turns every error into a page, or JSON, that says what to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groupmq import JobNotFound
from groupmq.dashboard import paths
from groupmq.dashboard.errors import Refused, error_page
from groupmq.dashboard.security.gate import LoginNeeded
from groupmq.dashboard.visit import Heading, Services, Visit

Answer = Callable[[Request], Awaitable[Response]]


class Failing:
    """Answers the errors of the app inside it, including those of the gate."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            response = await self._answer(Request(scope, receive), error)
            await response(scope, receive, send)

    async def _answer(self, request: Request, error: Exception) -> Response:
        visit = Visit(request, self._services)
        if isinstance(error, LoginNeeded) and request.method == "GET" and not visit.wants_json and not visit.by_script:
            return visit.redirect(visit.to("login", next=visit.here))
        # If a job is gone, its queue is still there, and so are the other pages of the queue.
        queue = request.path_params.get("queue") if isinstance(error, JobNotFound) else None
        queue = None if queue is None else paths.unsegment(queue)
        document = error_page(error, visit.to("queues") if queue is None else visit.to("jobs", queue=queue))
        heading = Heading(name="error", title=document.title, queue=queue)
        block = "live" if visit.by_script or visit.block else None
        response = await visit.answer(document, heading, status=document.status, block=block)
        if isinstance(error, Refused | HTTPException):
            response.headers.update(error.headers or {})
        if document.unreachable:
            response.headers["Retry-After"] = "5"
        return response
