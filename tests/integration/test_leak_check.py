"""The check that runs after every test can fail: on damage, and on a key that no queue owns."""

from __future__ import annotations

import pytest
import redis

from groupmq import Queue
from tests.support import keyspace


async def test_a_healthy_queue_passes_the_check(queue: Queue, client: redis.Redis) -> None:
    await queue.add(1, group_id="g")
    keyspace.check(client)


async def test_a_key_that_belongs_to_no_queue_is_a_leak(queue: Queue, client: redis.Redis) -> None:
    await queue.add(1, group_id="g")
    client.zadd("groupmq:{nobody}:g:left", {"member": 0})
    with pytest.raises(AssertionError, match="belongs to no queue: a leak"):
        keyspace.check(client)
    client.delete("groupmq:{nobody}:g:left")


async def test_a_job_in_no_place_is_damage(queue: Queue, client: redis.Redis) -> None:
    jobs = [await queue.add(n, group_id="g") for n in range(2)]
    client.delete(f"groupmq:{{{queue.name}}}:g:g")
    with pytest.raises(AssertionError, match="no place"):
        keyspace.check(client)
    for job in jobs:
        assert await queue.remove(job.id)


async def test_a_key_of_another_kind_is_damage(queue: Queue, client: redis.Redis) -> None:
    await queue.add(1, group_id="g")
    key = f"groupmq:{{{queue.name}}}:parked"
    client.set(key, "not a sorted set")
    with pytest.raises(AssertionError, match="is a string, not a zset"):
        keyspace.check(client)
    client.delete(key)
