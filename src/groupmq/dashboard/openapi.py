"""The description of the JSON API, generated from the records that the API returns."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from groupmq import __version__
from groupmq.dashboard.actions.action import Action
from groupmq.dashboard.actions.catalogue import ACTIONS
from groupmq.dashboard.documents.error import ErrorPage
from groupmq.dashboard.documents.outcome import OutcomePage
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.plan import PlanPage
from groupmq.dashboard.pages import PAGES
from groupmq.dashboard.paths import API, PATHS
from groupmq.dashboard.visit import Services

_REF = "#/components/schemas/{name}"
_ID = {"type": "string", "minLength": 1, "maxLength": 3000}
_SEGMENT = (
    "An id. If it has characters other than A-Z a-z 0-9 _ . : @ - it is written as ~ and the base64url of its UTF-8."
)
_ERRORS = {
    "400": "The request is not understood.",
    "401": "Nobody is logged in.",
    "403": "Not allowed, or read-only.",
    "404": "There is no such queue, job, task or page.",
    "503": "The server that holds the queues does not answer.",
}
_TEXT = {"type": "string", "maxLength": 2000}
_NUMBER = {"type": ["string", "number"]}
_FIELDS: dict[str, dict[str, Any]] = {
    "data": {"description": "Any JSON."},
    "delay": {**_NUMBER, "description": "Seconds, or with a unit: 30s, 10m, 2h."},
    "older": {**_NUMBER, "description": "Seconds, or with a unit: 30s, 10m, 2h."},
    "per": {**_NUMBER, "description": "Seconds, or with a unit: 1s, 1m."},
    "q": {**_TEXT, "description": "A search: words and qualifiers, such as error:TimeoutError older:1h."},
    **dict.fromkeys(("priority", "attempts", "limit", "rate", "concurrency"), _NUMBER),
}


def openapi_endpoint(services: Services) -> Any:
    async def endpoint(request: Request) -> Response:
        base = request.scope.get("root_path", "").rstrip("/")
        return JSONResponse(describe(base))

    return endpoint


def describe(base: str = "") -> dict[str, Any]:
    """The description as an OpenAPI 3.1 document."""
    types = [*(page.document for page in PAGES.values()), PlanPage, OutcomePage, ErrorPage]
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    described: dict[str, Any] = {}
    for page in PAGES.values():
        path = "/queues" if page.name == "queues" else PATHS[page.name]
        described[API + path] = {"get": _page(page)}
    for action in ACTIONS.values():
        path = API + PATHS["action"].replace("{action}", action.name)
        described[path] = {"get": _plan(action), "post": _act(action)}
    described[API + PATHS["stop_task"]] = {"post": _stop()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "groupmq dashboard",
            "version": __version__,
            "description": "The pages and actions of the dashboard. The address of a page with "
            "Accept: application/json returns the same document. POST takes JSON; forms need a token from a page.",
        },
        "servers": [{"url": base or "/"}],
        "paths": described,
        "components": {"schemas": components},
    }


def _page(page: Page) -> dict[str, Any]:
    path = PATHS[page.name]
    return {
        "operationId": page.name,
        "summary": page.words,
        "parameters": _parameters(page.query, _ids(path)),
        "responses": _responses({"200": ("The document.", page.document)}),
    }


def _plan(action: Action) -> dict[str, Any]:
    fields = [{"name": name, "in": "query", "schema": _TEXT} for name in action.takes]
    return {
        "operationId": f"plan-{action.name}",
        "summary": f"What this would do: {action.words}",
        "parameters": [_path_parameter("queue"), *fields],
        "responses": _responses({"200": ("The plan. Nothing was changed.", PlanPage)}, "409", "413", "422"),
    }


def _act(action: Action) -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: _FIELDS.get(name, _TEXT) for name in action.takes}}
    done = {} if action.bulk else {"200": ("Done.", OutcomePage)}
    if action.bulk or action.bulk_if_many:
        done["202"] = ("A task does it.", OutcomePage)
    refused = {
        "400": ("A value is invalid.", OutcomePage, ErrorPage),
        "404": ("There is no such queue or job.", OutcomePage, ErrorPage),
        "409": ("Not possible in this state.", OutcomePage, ErrorPage),
        "413": ("Too large.", OutcomePage, ErrorPage),
    }
    return {
        "operationId": action.name,
        "summary": action.words,
        "parameters": [_path_parameter("queue")],
        "requestBody": {"required": False, "content": {"application/json": {"schema": schema}}},
        "responses": _responses(done | refused, "415", "422", "429"),
    }


def _stop() -> dict[str, Any]:
    return {
        "operationId": "stop_task",
        "summary": "Stop a task after the step under way.",
        "parameters": [_path_parameter("queue"), _path_parameter("task")],
        "responses": _responses({"200": ("It stops.", OutcomePage)}),
    }


def _parameters(query: type, ids: list[str]) -> list[dict[str, Any]]:
    """The parameters of the path and of the query string, from the record of the query."""
    _, components = msgspec.json.schema_components([query], ref_template=_REF)
    (schema,) = components.values()
    found = [_path_parameter(name) for name in ids]
    for name, described in schema.get("properties", {}).items():
        if name not in ids:
            found.append({"name": name, "in": "query", "schema": described})
    return found


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _ID, "description": _SEGMENT}


def _ids(path: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", path)


def _responses(known: dict[str, Any], *more: str) -> dict[str, Any]:
    found = {code: _response(*response) for code, response in known.items()}
    for code, words in (_ERRORS | dict.fromkeys(more, "Refused; the document says why.")).items():
        found.setdefault(code, _response(words, ErrorPage))
    return dict(sorted(found.items()))


def _response(words: str, *documents: type) -> dict[str, Any]:
    schemas = [{"$ref": _REF.format(name=document.__name__)} for document in documents]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"description": words, "content": {"application/json": {"schema": schema}}}
