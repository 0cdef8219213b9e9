"""Fixtures of the monitor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from groupmq.cli.monitor.fetch import QueueWatcher
from groupmq.cli.options.target import Target
from tests.cli.monitor.streams import Stream


@pytest.fixture
async def watcher(url: str) -> AsyncIterator[QueueWatcher]:
    """The part of the monitor that reads the queue `orders`."""
    watcher = QueueWatcher(Target(url, None, "groupmq", False), "orders")
    yield watcher
    await watcher.close()


@pytest.fixture
def streams() -> Iterator[list[Stream]]:
    started: list[Stream] = []
    yield started
    for stream in started:
        if stream.process.poll() is None:
            stream.process.kill()
            stream.process.communicate()
