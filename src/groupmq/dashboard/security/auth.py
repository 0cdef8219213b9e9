"""Authentication: by a token, by names with hashed passwords, or by a check of the host app."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import inspect
import secrets
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import HTTPConnection

from groupmq import ConfigurationError
from groupmq.dashboard.security.passwords import hash_password, is_hash, verify
from groupmq.dashboard.security.sessions import Sessions

__all__ = ["Auth", "Check", "allow_anyone", "auth_of", "hash_password"]

Check = Callable[[HTTPConnection], "str | Awaitable[str | None] | None"]
"""check(request) -> name of the user, or None."""
SESSION = "groupmq_session"
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
_SHORTEST_TOKEN = 16
_SHORTEST_SECRET = 32
_MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"


def allow_anyone(request: HTTPConnection) -> str:
    """An `auth` that lets anyone in: for a dashboard behind something that protects it."""
    return "anyone"


class Auth(ABC):
    """A way to know who sends a request."""

    secret: bytes
    """The key that signs sessions and tokens."""
    identity: bytes = b""
    """The credentials that the secret is bound to: once they change, nothing that was signed before is accepted."""
    challenge: str | None = None
    """The value of WWW-Authenticate."""
    has_login = False
    refusal = "You are not logged in."
    hint = ""

    @abstractmethod
    async def user(self, request: HTTPConnection) -> str | None:
        """The name of the user who sends the request; None if that is not known."""

    def sign_with(self, secret: object) -> None:
        """Sign with a secret that outlasts this process, and that other processes may have too."""
        if not isinstance(secret, str) or len(secret) < _SHORTEST_SECRET:
            raise ConfigurationError(f"secret: expected a text of at least {_SHORTEST_SECRET} characters; {_MAKE_ONE}")
        self.secret = hmac.digest(secret.encode(), b"groupmq dashboard" + self.identity, "sha256")

    def is_over(self, request: HTTPConnection) -> bool:
        """Whether the session of a request that was let in has ended since."""
        return False

    def is_ambient(self, request: HTTPConnection) -> bool:
        """Whether a browser would add the credentials to a request that another site makes."""
        return "authorization" not in request.headers or "cookie" in request.headers


class LocalOnly(Auth):
    """No authentication: only this machine is served, by its local names. Other sites can point their names at it."""

    refusal = "This dashboard has no authentication, so it answers only to this machine by the name localhost."
    hint = "Give create_app(auth=...) or groupmq dashboard --auth to serve others."

    def __init__(self) -> None:
        self.secret = secrets.token_bytes(32)

    async def user(self, request: HTTPConnection) -> str | None:
        here = request.client is None or request.client.host in LOOPBACK
        host = request.headers.get("host", "").rsplit(":", 1)[0] if not _is_bare_v6(request) else "[::1]"
        return "local" if here and host.lower() in ("localhost", "127.0.0.1", "[::1]") else None


class TokenAuth(Auth):
    """One secret for all: as a bearer token, or typed into the login page, which gives a signed session."""

    challenge = "Bearer"
    has_login = True

    def __init__(self, token: str) -> None:
        if len(token) < _SHORTEST_TOKEN:
            raise ConfigurationError(
                f"auth: expected a token of at least {_SHORTEST_TOKEN} characters, got {len(token)}; {_MAKE_ONE}"
            )
        self._token = self.identity = hashlib.sha256(token.encode()).digest()
        self.secret = hashlib.sha256(b"groupmq dashboard" + self._token).digest()
        self.sessions = Sessions(self.secret)

    def sign_with(self, secret: object) -> None:
        super().sign_with(secret)
        self.sessions = Sessions(self.secret, lasting=True)

    async def user(self, request: HTTPConnection) -> str | None:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return "token" if self.accepts(given.strip()) else None
        return "token" if self.sessions.is_open(request.cookies.get(SESSION, "")) else None

    def accepts(self, token: str) -> bool:
        given = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        return hmac.compare_digest(given, self._token)

    def log_out(self, request: HTTPConnection) -> None:
        self.sessions.end(request.cookies.get(SESSION, ""))

    def is_over(self, request: HTTPConnection) -> bool:
        return self.is_ambient(request) and not self.sessions.is_open(request.cookies.get(SESSION, ""))

    def is_ambient(self, request: HTTPConnection) -> bool:
        return not request.headers.get("authorization", "").lower().startswith("bearer ")


class BasicAuth(Auth):
    """Names and hashed passwords, over HTTP basic authentication."""

    challenge = 'Basic realm="groupmq", charset="UTF-8"'

    def __init__(self, users: Mapping[str, str]) -> None:
        if not users or not all(is_hash(str(one)) for one in users.values()):
            raise ConfigurationError(
                "auth: expected names with hashed passwords, as groupmq.dashboard.hash_password makes them; "
                "plain passwords are refused"
            )
        self._users = dict(users)
        joined = "\n".join(f"{name}:{hashed}" for name, hashed in sorted(users.items()))
        self.identity = joined.encode()
        self.secret = hashlib.sha256(self.identity).digest()
        self._nobody = hash_password(secrets.token_urlsafe())
        self._seen: OrderedDict[bytes, str] = OrderedDict()

    async def user(self, request: HTTPConnection) -> str | None:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            name, found, password = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        if not found:
            return None
        return await self._verified(name, password)

    async def _verified(self, name: str, password: str) -> str | None:
        """The name, if the password is right. Every request has it and scrypt is slow, so a right one is remembered."""
        import asyncio

        digest = hmac.digest(self.secret, f"{name}:{password}".encode(), "sha256")
        if digest in self._seen:
            self._seen.move_to_end(digest)
            return self._seen[digest]
        # An unknown name takes as long as a wrong password.
        stored = self._users.get(name, self._nobody)
        if not await asyncio.to_thread(verify, password, stored) or name not in self._users:
            return None
        self._seen[digest] = name
        while len(self._seen) > 100:
            self._seen.popitem(last=False)
        return name

    def is_ambient(self, request: HTTPConnection) -> bool:
        return True


class HostAuth(Auth):
    """A check that the host app provides."""

    refusal = "You are not allowed to see this dashboard."

    def __init__(self, check: Check) -> None:
        self._check = check
        self.secret = secrets.token_bytes(32)

    async def user(self, request: HTTPConnection) -> str | None:
        found: Any = self._check(request)
        if inspect.isawaitable(found):
            found = await found
        # A check that reads an empty session may return an empty name.
        return None if found is None or found is False or found == "" else str(found)

    def is_ambient(self, request: HTTPConnection) -> bool:
        return True


def auth_of(auth: str | Mapping[str, str] | Check | Auth | None, secret: str | None = None) -> Auth:
    """The Auth for the arguments `auth` and `secret` of `create_app`."""
    found = _auth_of(auth)
    if secret is not None:
        found.sign_with(secret)
    return found


def _auth_of(auth: str | Mapping[str, str] | Check | Auth | None) -> Auth:
    if auth is None:
        return LocalOnly()
    if isinstance(auth, Auth):
        return auth
    if isinstance(auth, str):
        return TokenAuth(auth)
    if isinstance(auth, Mapping):
        return BasicAuth(auth)
    if callable(auth):
        return HostAuth(auth)
    raise ConfigurationError.expected(
        "auth", "a token, a mapping of names to hashed passwords, or a function (request) -> user or None", type(auth)
    )


def _is_bare_v6(request: HTTPConnection) -> bool:
    return request.headers.get("host", "") == "[::1]"
