"""Jobs that are known to have begun, by their leases as they are stored."""

from __future__ import annotations

from typing import Any

import redis

from groupmq.protocol.keys import Keys
from tests.support.waiting import eventually


def stages(client: Any, leases: str) -> list[int]:
    """How far each leased job has come, 0 = it has begun (`lua/lib/lease.lua`)."""
    return [raw[17] for raw in client.hvals(leases)]


async def known_to_have_begun(url: str, queue: str) -> None:
    """Wait until the server knows that the only leased job has begun. Before that, an operation on it waits for its
    worker, or for the end of its lease."""
    leases = Keys("groupmq", queue).fixed("leases")
    with redis.Redis.from_url(url) as client:
        await eventually(lambda: stages(client, leases) == [0], "the job is known to have begun")
