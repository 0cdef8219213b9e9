"""Marks in the history of a queue, such as deployments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.core.checks import text
from groupmq.core.durations import Instant, epoch_millis, instant_of
from groupmq.core.errors import ConfigurationError
from groupmq.core.server_views import Mark
from groupmq.protocol import commands

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

LONGEST_LABEL = 200


async def mark(queue: QueueMethods, label: str, *, at: Instant | None = None) -> Mark:
    """Mark a moment in the history of the queue, such as a deployment; charts show it. The newest 100 are kept."""
    if len(text(label, "label")) > LONGEST_LABEL:
        raise ConfigurationError.expected("label", f"at most {LONGEST_LABEL} characters", label)
    ms = await queue._call(commands.put_mark(label, None if at is None else epoch_millis(at, "at")))
    return Mark(instant_of(ms), label)


async def get_marks(queue: QueueMethods, since: Instant | None = None) -> list[Mark]:
    """The marks from `since` on, oldest first."""
    found = await queue._call(commands.marks(None if since is None else epoch_millis(since, "since")))
    return [Mark(instant_of(ms), label) for ms, label in found]
