"""Reads the body of a request, a form or a JSON object of limited size, into plain text by name."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from groupmq.dashboard.errors import Refused

MOST_BODY = 2 * 1024 * 1024
MOST_FIELDS = 50


async def read_body(request: Request) -> bytes:
    """The body; one that is too long is not read to its end."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MOST_BODY:
        raise _too_long()
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            raise _too_long()
    return bytes(body)


def is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


async def read_fields(request: Request) -> dict[str, str]:
    """The fields of a form or of a JSON object. A JSON value that is not a string stands as JSON text."""
    body = await read_body(request)
    if not body:
        return {}
    if is_json(request):
        return _json_fields(body)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", ""):
        raise Refused(415, "Send a form or JSON", f"Content-Type {kind!r} is not understood.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400, "The form cannot be read", "It is not a form, or has too many fields.") from None
    return dict(pairs)


def _json_fields(body: bytes) -> dict[str, str]:
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "The body is not JSON", "Send a JSON object with the fields of the action.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The body is not a JSON object", "Send an object with the fields of the action.")
    for name, value in found.items():
        if isinstance(value, list | dict) and name != "data":
            raise Refused(422, "A field is invalid", f"{name}: expected text or a number.")
    return {
        name: value if isinstance(value, str) and name != "data" else json.dumps(value, ensure_ascii=False)
        for name, value in found.items()
        if value is not None or name == "data"
    }


def _too_long() -> Refused:
    return Refused(413, "That is too large", f"A request may have {MOST_BODY // 1024 // 1024} MB at most.")
