"""The blocking client has no handlers: every handler gets a job of the asynchronous client."""

from __future__ import annotations

from groupmq.core.snapshot import Snapshot


class JobInHandler(Snapshot):
    """The values of a job."""
