"""Sessions of logged-in users: one signed cookie each, and a list of the sessions that were ended early."""

from __future__ import annotations

import secrets
import time

from groupmq.dashboard.security.signing import Signer

LIFETIME = 12 * 3600.0
MOST_ENDED = 10_000


class Sessions:
    """Begins, checks and ends sessions. A session that was ended is refused wherever its cookie was copied to.

    The ids of ended sessions are kept in memory until their cookies expire. An ended session must not become
    valid again: sessions from before this process began are refused, and if the list is full, all sessions end. With
    `lasting`, sessions of earlier processes are accepted, even those that were ended there before their time.
    """

    def __init__(self, secret: bytes, *, lasting: bool = False, most_ended: int = MOST_ENDED) -> None:
        self._signer = Signer(secret, "session")
        self._most_ended = most_ended
        self._ended: dict[str, float] = {}
        """Id of the session -> when its cookie expires."""
        self._oldest = 0.0 if lasting else time.time()
        """Sessions that began before this are refused."""

    def begin(self) -> str:
        """The cookie of a new session."""
        # A clock that was put back must not make new sessions look like old ones.
        began = max(time.time(), self._oldest)
        return self._signer.sign(f"{secrets.token_urlsafe(16)} {began!r}", lifetime=LIFETIME)

    def is_open(self, cookie: str) -> bool:
        found = self._read(cookie)
        return found is not None and found[1] >= self._oldest and found[0] not in self._ended

    def end(self, cookie: str) -> None:
        """End the session of this cookie and of every copy of it."""
        found = self._read(cookie)
        if found is None:
            return
        now = time.time()
        self._ended = {session: until for session, until in self._ended.items() if until > now}
        session, began = found
        self._ended[session] = began + LIFETIME + 1
        if len(self._ended) > self._most_ended:
            self._oldest = max(now, *(until - LIFETIME for until in self._ended.values()))
            self._ended.clear()

    def _read(self, cookie: str) -> tuple[str, float] | None:
        """Id of the session and when it began; None if the cookie was not signed here or has expired."""
        session, _, began = (self._signer.read(cookie) or "").partition(" ")
        return (session, float(began)) if began else None
