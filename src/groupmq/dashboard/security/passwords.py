"""Passwords are kept as scrypt hashes: `scrypt$<salt>$<hash>`, both base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

_COST = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


def hash_password(password: str) -> str:
    """A hash for `auth={"ada": ...}`, or for a file of `groupmq dashboard --auth basic:FILE`."""
    salt = secrets.token_bytes(16)
    return f"scrypt${_text(salt)}${_text(_scrypt(password, salt))}"


def is_hash(text: str) -> bool:
    return _parts(text) is not None


def verify(password: str, stored: str) -> bool:
    parts = _parts(stored)
    return parts is not None and hmac.compare_digest(_scrypt(password, parts[0]), parts[1])


def _parts(text: str) -> tuple[bytes, bytes] | None:
    try:
        kind, salt, hashed = text.split("$")
        found = base64.b64decode(salt, validate=True), base64.b64decode(hashed, validate=True)
    except (ValueError, binascii.Error):
        return None
    return found if kind == "scrypt" and all(found) else None


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, **_COST)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
