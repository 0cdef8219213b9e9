"""Whether a client wants JSON or a page, by the Accept header of its request. Pure."""

from __future__ import annotations

JSON, HTML = "application/json", "text/html"
_MOST = 50


def prefers_json(accept: str) -> bool:
    """Whether JSON has the higher quality, or an equal one and is named more exactly. Otherwise the client gets a page.

    >>> prefers_json("application/json, text/plain, */*")
    True
    >>> prefers_json("text/html, application/json;q=0.9")
    False
    """
    wanted = dict(_read(one) for one in accept.lower().split(",")[:_MOST])
    return _liking(wanted, JSON) > _liking(wanted, HTML)


def _read(one: str) -> tuple[str, float]:
    kind, *parameters = (part.strip() for part in one.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return kind, 0.0
            return kind, quality if 0 <= quality <= 1 else 0.0
    return kind, 1.0


def _liking(wanted: dict[str, float], kind: str) -> tuple[float, int]:
    """The quality of a type, and how exactly the header names it."""
    for exactness, pattern in ((2, kind), (1, kind.partition("/")[0] + "/*"), (0, "*/*")):
        if pattern in wanted:
            return wanted[pattern], exactness if wanted[pattern] else 0
    return 0.0, 0
