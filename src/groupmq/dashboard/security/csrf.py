"""Requests that another site makes in a reader's name are refused.

Browsers say where a request comes from (Sec-Fetch-Site, Origin); a form also carries a token that only our pages have.
A script without a browser sends neither header: JSON is taken from it, since no form of another site can send JSON.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from groupmq.dashboard.security.signing import Signer

COOKIE = "groupmq_csrf"
FIELD = "csrf"
HEADER = "x-csrf-token"
LIFETIME = 30 * 86_400.0


class Csrf:
    """Tokens for forms: signed, and bound to a cookie of the browser that got the page."""

    def __init__(self, secret: bytes) -> None:
        self._signer = Signer(secret, "csrf")

    def nonce(self, request: HTTPConnection) -> str:
        """The browser's own secret, from its cookie or new."""
        found = request.cookies.get(COOKIE, "")
        return found if 20 <= len(found) <= 100 and found.isascii() else secrets.token_urlsafe(24)

    def token(self, nonce: str, user: str) -> str:
        return self._signer.sign(f"{nonce} {user}", lifetime=LIFETIME)

    def accepts(self, request: HTTPConnection, token: str, user: str) -> bool:
        signed = self._signer.read(token)
        wanted = f"{request.cookies.get(COOKIE, '')} {user}"
        return signed is not None and hmac.compare_digest(signed.encode(), wanted.encode())


def is_foreign(request: HTTPConnection) -> bool:
    """Whether a browser says that another site made this request.

    Sec-Fetch-Site is the browser's own judgement; Origin is compared with Host, which a proxy may have changed.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is None:
        return False
    return urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
