"""The connection that reads the logs of all queues that have listeners: one per server and event loop."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from groupmq.client.connection.blocking_reads import StreamConnection
from groupmq.client.connection.connections import Connection
from groupmq.core.errors import GroupMQError
from groupmq.core.events import newer
from groupmq.core.tasks import end_tasks

if TYPE_CHECKING:
    from groupmq.client.events.channel import Channel

_logger = logging.getLogger("groupmq.events")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LINGER, _LINGER_EVENTS = 5.0, 500
"""Seconds, and events, for which a log is read on after the last listener has gone. In a busy queue, that many events
take only a moment."""


class Hub:
    """Reads for all channels of one server, over one connection, while anybody listens."""

    def __init__(self) -> None:
        self._channels: set[Channel] = set()
        self._task: asyncio.Task[None] | None = None
        self._stream: StreamConnection | None = None

    def ensure(self, channel: Channel) -> None:
        """Make sure that this channel is read."""
        new = channel not in self._channels
        self._channels.add(channel)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(
                self._read(StreamConnection(channel.connection.endpoint))
            )
        elif new and self._stream is not None:
            self._stream.unblock(channel.connection)

    async def _read(self, stream: StreamConnection) -> None:
        self._stream = stream
        pause = 0.0
        try:
            while self._forget_unwanted():
                try:
                    found = await stream.read(self._positions(), wait=not pause)
                except GroupMQError as error:
                    _logger.warning("the log of events cannot be read: %s; trying again", error)
                    pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
                    await asyncio.sleep(pause * (0.75 + 0.5 * random.random()))  # noqa: S311
                    continue
                if pause:
                    # The log has what happened meanwhile, unless the server has lost its data.
                    pause = 0.0
                    for channel in tuple(self._channels):
                        channel.check_again()
                for channel in tuple(self._channels):
                    channel.feed(found.get(channel.key, []))
        finally:
            if self._stream is stream:
                self._task = self._stream = None
            await stream.close()

    def _positions(self) -> dict[str, str]:
        """Where to read on in each log: where the channel is that has seen the least of it."""
        found: dict[str, str] = {}
        for channel in self._channels:
            at = channel.position or "0-0"
            if channel.key not in found or newer(found[channel.key], at):
                found[channel.key] = at
        return found

    def _forget_unwanted(self) -> bool:
        now = asyncio.get_running_loop().time()
        for channel in tuple(self._channels):
            if channel.wanted:
                channel.idle_since = None
            elif channel.idle_since is None:
                # A caller that waits for one result after the other must not pay for a new connection each time.
                channel.idle_since, channel.read_for_nobody = now, 0
            elif now - channel.idle_since >= _LINGER or channel.read_for_nobody >= _LINGER_EVENTS:
                channel.rest()
                self._channels.discard(channel)
        if not self._channels:
            self._task = self._stream = None
        return bool(self._channels)

    async def drop(self, channel: Channel) -> None:
        """Stop reading a log whose queue is closed: it has no listener any more."""
        self._channels.discard(channel)
        if not self._channels:
            task, self._task, self._stream = self._task, None, None
            await end_tasks([task])


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, Hub]] = WeakKeyDictionary()


def hub_of(connection: Connection) -> Hub:
    """The hub of this event loop for the server behind a connection."""
    return _hubs.setdefault(asyncio.get_running_loop(), {}).setdefault(connection.endpoint.identity, Hub())
