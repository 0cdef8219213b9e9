"""Nothing of the blocking client: a handler is given a job of the asynchronous one."""

from __future__ import annotations

from groupmq.core.snapshot import Snapshot


class JobInHandler(Snapshot):
    """The values of a job."""
