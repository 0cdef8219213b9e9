"""Where the dashboard is mounted. Hosts report it in different ways; the rest of the dashboard sees one.

The ASGI standard: `root_path` is the mount point and `path` is the whole path, which begins with it. Some hosts cut the
mount point off `path`, and Litestar does so without setting `root_path` and adds a slash at the end.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from groupmq.dashboard.paths import PATHS

_FIRST = {path.split("/")[1] for path in PATHS.values()}
"""First segments of the dashboard's own paths; "" is the list of queues."""
_MOUNT_POINT = re.compile(r"(/(?!\.{1,2}(/|$))[^/\\?#\x00-\x20\x7f]+)+")
"""A mount point that was read from a request must be a plain path: every link begins with it."""


def placed(scope: Scope) -> dict[str, Any]:
    """The scope in the form of the ASGI standard, without a slash at the end of the path."""
    root = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"].rstrip("/") or "/"
    if not root:
        root = _cut_off(scope.get("raw_path"), path)
        path = root + path
    elif not _is_whole(path, root):
        path = root + path
    return {**scope, "root_path": root, "path": path if path != root else f"{root}/"}


def below(root_path: str, app: ASGIApp) -> ASGIApp:
    """The app for a proxy that serves it below a path, whether the proxy passes that path on or cuts it off."""
    root = root_path.rstrip("/")

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "root_path": root} if scope["type"] == "http" else scope, receive, send)

    return served if root else app


def _is_whole(path: str, root: str) -> bool:
    """Whether a path still has the mount point in front.

    Below the mount point `/queues`, a path that was cut begins with `/queues/` too: it is whole if one of the
    dashboard's own paths follows.
    """
    if path == root:
        return True
    if not path.startswith(root + "/"):
        return False
    return _first(path.removeprefix(root)) in _FIRST or _first(path) not in _FIRST


def _first(path: str) -> str:
    return path.split("/")[1]


def _cut_off(raw_path: bytes | None, path: str) -> str:
    """The part that the host cut off the path without setting `root_path`; "" if none."""
    whole = unquote((raw_path or b"").decode("latin-1")).rstrip("/")
    rest = path.rstrip("/")
    if not whole.endswith(rest) or not path.startswith("/"):
        return ""
    found = whole.removesuffix(rest)
    return found if _MOUNT_POINT.fullmatch(found) else ""
