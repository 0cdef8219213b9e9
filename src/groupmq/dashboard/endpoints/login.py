"""Logging in with a token, and logging out."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from groupmq.dashboard.documents.login import LoginPage
from groupmq.dashboard.endpoints.page import HttpEndpoint
from groupmq.dashboard.errors import Refused
from groupmq.dashboard.security.auth import SESSION, TokenAuth
from groupmq.dashboard.security.csrf import FIELD
from groupmq.dashboard.security.forms import read_fields
from groupmq.dashboard.security.sessions import LIFETIME
from groupmq.dashboard.visit import Heading, Services, Visit

_PAUSE = 0.5
"""Seconds until a wrong token is refused. Tokens are too long to be guessed; the pause only slows down a flood."""


def login_endpoint(services: Services) -> HttpEndpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, services)
        auth = services.auth
        if not isinstance(auth, TokenAuth):
            return visit.redirect(visit.to("queues"))
        if request.method != "POST":
            where = visit.back(request.query_params.get("next"), visit.to("queues"))
            return await _ask(visit, where, None)
        fields = await read_fields(request)
        where = visit.back(fields.get("next"), visit.to("queues"))
        if not services.csrf.accepts(request, fields.get(FIELD, ""), ""):
            return await _ask(visit, where, "The form was out of date. Try again.", 403)
        if not auth.accepts(fields.get("token", "").strip()):
            await asyncio.sleep(_PAUSE)
            return await _ask(visit, where, "That is not the token.", 403)
        response = visit.redirect(where)
        visit.set_cookie(response, SESSION, auth.sessions.begin(), LIFETIME)
        return response

    return endpoint


def logout_endpoint(services: Services) -> HttpEndpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, services)
        fields = await read_fields(request)
        if not services.csrf.accepts(request, fields.get(FIELD, ""), visit.user):
            raise Refused(403, "The form is out of date", "Reload the page and try again.")
        if isinstance(services.auth, TokenAuth):
            services.auth.log_out(request)
        response = visit.redirect(visit.to("login" if services.auth.has_login else "queues"))
        response.delete_cookie(SESSION, path=visit.base or "/")
        return response

    return endpoint


async def _ask(visit: Visit, where: str, problem: str | None, status: int = 200) -> Response:
    document = LoginPage(next=where, problem=problem, kind="token")
    return await visit.answer(document, Heading(name="login", title="Log in"), status=status)
