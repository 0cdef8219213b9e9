"""The connection that reads the logs of all queues that have listeners: one per server and event loop."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from groupmq.client.connection.blocking_reads import StreamConnection
from groupmq.client.connection.connections import Connection
from groupmq.client.outage import OutageLog
from groupmq.core.errors import GroupMQError
from groupmq.core.events import newer
from groupmq.runtime.pauses import growing
from groupmq.runtime.tasks import end_tasks

if TYPE_CHECKING:
    from groupmq.client.events.channel import Channel

_logger = logging.getLogger("groupmq.events")
_FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
_READ = "read the log of events"
_LINGER, _LINGER_EVENTS = 5.0, 500
"""Seconds, and events, for which a log is read on after the last listener has gone. In a busy queue, that many events
take only a moment."""


class Hub:
    """Reads for all channels of one server, over one connection, while any of them is wanted."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.outages = self._outage_log()
        """Logs that the server is away; shared by all readers of its events."""
        self._channels: set[Channel] = set()
        self._task: asyncio.Task[None] | None = None
        self._stream: StreamConnection | None = None

    def ensure(self, channel: Channel) -> None:
        """Make sure that this channel is read."""
        new = channel not in self._channels
        self._channels.add(channel)
        if self._task is None:
            self.outages = self._outage_log()  # an outage that ended while the hub read nothing was not noticed
            self._task = asyncio.get_running_loop().create_task(
                self._read(StreamConnection(channel.connection.endpoint))
            )
        elif new and self._stream is not None:
            self._stream.unblock(channel.connection)

    def _outage_log(self) -> OutageLog:
        next_step = f"it tries again, with pauses of up to {LONGEST_PAUSE:g} s"
        log = OutageLog(
            f"the listener for events at {self._where}", next_step, "then resumes where it stopped", _logger
        )
        log.answered(_READ, time.monotonic())  # a channel has just asked for the end of its log
        return log

    async def _read(self, stream: StreamConnection) -> None:
        self._stream = stream
        pauses: Iterator[float] | None = None
        """The pauses between tries while the server is away; None if it has answered."""
        try:
            while self._forget_unwanted():
                began = time.monotonic()
                try:
                    found = await stream.read(self._positions(), wait=pauses is None)
                except GroupMQError as error:
                    self.outages.failed(_READ, error)
                    pauses = pauses or growing(_FIRST_PAUSE, LONGEST_PAUSE)
                    await asyncio.sleep(next(pauses) * (0.75 + 0.5 * random.random()))  # noqa: S311
                    continue
                self.outages.answered(_READ, began)
                if pauses is not None:
                    # The log has what happened meanwhile, unless the server has lost its data.
                    pauses = None
                    for channel in tuple(self._channels):
                        channel.check_again()
                for channel in tuple(self._channels):
                    channel.feed(found.get(channel.key, []))
        finally:
            if self._stream is stream:
                self._task = self._stream = None
            await stream.close()

    def _positions(self) -> dict[str, str]:
        """The position from which to read each log: that of the channel that has read the least of it."""
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
                channel.forget_position()
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
    hubs = _hubs.setdefault(asyncio.get_running_loop(), {})
    return hubs.setdefault(connection.endpoint.identity, Hub(connection.session.where))
