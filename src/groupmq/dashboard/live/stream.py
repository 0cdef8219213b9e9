"""The stream of one tab: server-sent events, for about five minutes, then the browser connects again."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from starlette.responses import StreamingResponse

from groupmq.dashboard.live.broadcast import Message, TabFeed

LIFETIME = 300.0
COMMENT_EVERY = 15.0
MOST_STREAMS = 200
"""Streams of one process; more would starve other requests of file descriptors."""


class Streams:
    """Counts the open streams of this process."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most = most
        self._open = 0

    @property
    def full(self) -> bool:
        return self._open >= self._most

    def answer(self, subscription: TabFeed, leave: Callable[[TabFeed], None], *, missed: bool) -> StreamingResponse:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        body = self._body(subscription, leave, missed=missed)
        return StreamingResponse(body, media_type="text/event-stream", headers=headers)

    async def _body(
        self, subscription: TabFeed, leave: Callable[[TabFeed], None], *, missed: bool
    ) -> AsyncIterator[bytes]:
        self._open += 1
        # Tabs that were opened together must not all reconnect in the same second.
        end = time.monotonic() + LIFETIME * random.uniform(0.9, 1.1)  # noqa: S311
        try:
            yield b": groupmq\nretry: 2000\n\n"
            yield Message.of("hello", {"at": datetime.now(UTC), "missed": missed}).raw
            while not subscription.closed and (left := end - time.monotonic()) > 0:
                found = await subscription.take(min(COMMENT_EVERY, left))
                yield b"".join(message.raw for message in found) or b": still here\n\n"
        finally:
            self._open -= 1
            leave(subscription)
