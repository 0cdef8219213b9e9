"""Job ids made by the client, so that a call that is sent twice still adds one job."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode


def new_id() -> str:
    """A fresh id: 96 random bits as 16 URL-safe characters.

    Straight from the system's generator each time: a pool kept here would be shared by threads and by forks.
    """
    return urlsafe_b64encode(os.urandom(12)).decode()
