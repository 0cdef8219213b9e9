"""Text that only this dashboard can have written: sessions, tokens of forms, messages after a redirect."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time


class Signer:
    """Signs text for one purpose. The key is derived from a secret, so every process with that secret accepts it."""

    def __init__(self, secret: bytes, purpose: str) -> None:
        self._key = hashlib.blake2b(purpose.encode(), key=hashlib.sha256(secret).digest()).digest()

    def sign(self, text: str, *, lifetime: float) -> str:
        until = int(time.time() + lifetime)
        body = f"{until}.{_text(text.encode('utf-8', 'surrogatepass'))}"
        return f"{body}.{self._signature(body)}"

    def read(self, signed: str) -> str | None:
        """The text; None if it was not written here, or has expired."""
        body, _, signature = signed.rpartition(".")
        if not body or not hmac.compare_digest(signature.encode(), self._signature(body).encode()):
            return None
        until, _, text = body.partition(".")
        if int(until) < time.time():
            return None
        try:
            return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "surrogatepass")
        except (binascii.Error, UnicodeDecodeError):
            return None

    def _signature(self, body: str) -> str:
        return _text(hmac.digest(self._key, body.encode(), "sha256"))


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
