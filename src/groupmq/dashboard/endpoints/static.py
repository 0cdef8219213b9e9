"""Files of the page: scripts, styles, fonts. Ours and vendored ones, never a path outside."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from groupmq.dashboard.errors import Refused
from groupmq.dashboard.rendering import STATIC, version_of

_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain",
    ".json": "application/json",
}


async def static(request: Request) -> Response:
    name: str = request.path_params["file"]
    parts = PurePosixPath(name).parts
    # Checked by name, not by the resolved path: some installers make every file a symbolic link.
    found = STATIC.joinpath(*parts)
    if (
        ".." in parts
        or "/" in parts
        or "\\" in name
        or "\0" in name
        or found.suffix not in _TYPES
        or not found.is_file()
    ):
        raise Refused(404, "There is no such file", "")
    # With the version in its address a file never changes; without it, browsers ask each time.
    pinned = request.query_params.get("v") == version_of(name)
    cache = "public, max-age=31536000, immutable" if pinned else "no-cache"
    return FileResponse(found, media_type=_TYPES[found.suffix], headers={"Cache-Control": cache})
