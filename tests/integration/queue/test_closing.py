"""Calls of a closed queue raise an error that says so."""

from __future__ import annotations

import pytest

from groupmq import ConfigurationError, GroupMQError, Queue
from groupmq.sync import Queue as SyncQueue


async def test_a_closed_queue_refuses_further_calls(url: str) -> None:
    queue = Queue("shut", url)
    await queue.add(1)
    await queue.close()
    await queue.close()
    with pytest.raises(GroupMQError, match="queue 'shut' is closed"):
        await queue.add(2)
    sync = SyncQueue("shut", url)
    sync.close()
    with pytest.raises(GroupMQError, match="queue 'shut' is closed"):
        sync.get_job_counts()


def test_an_empty_url_is_no_url() -> None:
    with pytest.raises(ConfigurationError, match="redis"):
        SyncQueue("q", "")
