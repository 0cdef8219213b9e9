"""URLs of the dashboard. Ids may be any text, so they are put into a path in a form that no server or browser changes.

A plain id stands as it is: `/queues/orders/groups/user:42`. Any other (slashes, dots only, spaces, nothing at all)
stands as `~` and base64url: browsers resolve `..` even when it is percent-encoded, and proxies decode `%2F`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from urllib.parse import urlencode

_PLAIN = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.:@-]{1,200}")

PATHS = {
    "queues": "/",
    "queue": "/queues/{queue}",
    "jobs": "/queues/{queue}/jobs",
    "suggest": "/queues/{queue}/suggest",
    "job": "/queues/{queue}/jobs/{job}",
    "lanes": "/queues/{queue}/lanes",
    "group": "/queues/{queue}/groups/{group}",
    "failures": "/queues/{queue}/failures",
    "repeats": "/queues/{queue}/repeats",
    "workers": "/queues/{queue}/workers",
    "events": "/queues/{queue}/events",
    "settings": "/queues/{queue}/settings",
    "action": "/queues/{queue}/actions/{action}",
    "tasks": "/queues/{queue}/tasks",
    "task": "/queues/{queue}/tasks/{task}",
    "stop_task": "/queues/{queue}/tasks/{task}/stop",
    "queue_stream": "/queues/{queue}/stream",
    "stream": "/stream",
    "login": "/login",
    "logout": "/logout",
    "health": "/healthz",
    "static": "/static/{file:path}",
    "openapi": "/api/v1/openapi.json",
}
API = "/api/v1"


def segment(text: str) -> str:
    """An id as one segment of a path."""
    if _PLAIN.fullmatch(text):
        return text
    return "~" + base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def unsegment(text: str) -> str:
    """The id that a segment stands for. Raises ValueError if it is not one that `segment` could have made."""
    if not text.startswith("~"):
        return text
    try:
        raw = base64.b64decode(text[1:] + "=" * (-len(text[1:]) % 4), altchars=b"-_", validate=True)
        return raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("after ~, an id must be the base64url of its UTF-8 text") from error


def build(base: str, name: str, params: Mapping[str, object]) -> str:
    """The URL of a route below `base`. Parameters that are not in its path go into the query string, except None."""
    template = PATHS["queue_stream" if name == "stream" and params.get("queue") is not None else name]
    path = template.replace("{file:path}", str(params.get("file")))
    inside = ["file", *re.findall(r"\{(\w+)\}", path)]
    for part in inside[1:]:
        path = path.replace(f"{{{part}}}", segment(str(params[part])))
    rest = {key: _shown(value) for key, value in params.items() if key not in inside and value is not None}
    return base + path + ("?" + urlencode(rest, errors="replace") if rest else "")


def _shown(value: object) -> str:
    return ("1" if value else "0") if isinstance(value, bool) else str(value)


def is_local(path: str) -> bool:
    """Whether a path that came with a request leads to this site: a redirect goes nowhere else."""
    return bool(re.fullmatch(r"/(?![/\\])[^\\\x00-\x20\x7f]*", path))
