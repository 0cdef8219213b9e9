"""Job ids. The client makes them, so that a call that is sent twice adds one job."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator

_BYTES, _CHARACTERS = 9, 12
"""Bytes of an id. Three bytes are four characters, so ids that are drawn together can be separated."""
_AT_ONCE = 64


def new_id() -> str:
    """A fresh id: 72 random bits as 12 URL-safe characters.

    An id has to differ from those of the jobs that exist: with ten million of them and 100,000 more a second, two meet
    once in more than a hundred years. Each further character would be stored three times for a waiting job, and the
    thirteenth takes the server 16 bytes. The bits come straight from the system's generator each time: a pool kept here
    would be shared by threads and by forks.
    """
    return urlsafe_b64encode(os.urandom(_BYTES)).decode()


def new_ids() -> Iterator[str]:
    """Yield fresh ids without end, for the jobs of one call: asking the system for each takes five times as long.

    Consume it at once in one thread; do not keep the iterator.
    """
    while True:
        text = urlsafe_b64encode(os.urandom(_BYTES * _AT_ONCE)).decode()
        for at in range(0, len(text), _CHARACTERS):
            yield text[at : at + _CHARACTERS]
