"""The document `outcome`: what an action did."""

from __future__ import annotations

from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.task import TaskRow


@record
class OutcomePage:
    queue: str
    action: str
    ok: bool
    level: str
    """done, warn or error."""
    text: str
    count: int | None
    task: TaskRow | None
    """The task that does it, if it takes more than one step."""
    back: str
