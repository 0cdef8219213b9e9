"""The settings that are stored with a queue: reading and changing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from groupmq.core.queue_options import QueueArguments
from groupmq.core.settings import QueueSettings, storable
from groupmq.protocol import commands

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods


async def get_settings(queue: QueueMethods) -> QueueSettings:
    """The settings that are stored with the queue, whatever this process was given."""
    stored = await queue._call(commands.look_at_queue())
    if stored.schema is None:
        await queue._call(commands.counts())  # it was removed after it was opened: open it again, or raise
        stored = await queue._call(commands.look_at_queue())
    return QueueSettings.of(stored)


async def reconfigure(queue: QueueMethods, /, **changes: Unpack[QueueArguments]) -> QueueSettings:
    """Change settings that are stored with the queue, in one write, and return the stored settings.

    `changes` are options of `Queue`; those that are stored are the fields of `QueueSettings`. Without any, the options
    that this object was given are stored. A change applies to waiting jobs too, and running processes use it from their
    next call on.

    >>> await queue.reconfigure(max_attempts=7, on_retry="yield")

    With partitions, they use it from their next call to a partition that has received it. If this is interrupted, the
    other partitions receive it from the next process that uses them. To sort waiting jobs there, make the same call
    again.
    """
    wanted = changes or storable(queue._given)
    changed = await queue._connection.reconfigure(wanted)
    if await queue._spread_settings(wanted, changed=changed):
        await queue.repair()
    return await queue.get_settings()


async def spread_settings(queue: QueueMethods, wanted: QueueArguments, *, changed: bool) -> bool:
    """Finish a change of stored settings; returns whether waiting jobs have to be put in order again.

    `changed`: whether a setting that the scripts act on has changed.
    """
    return changed
