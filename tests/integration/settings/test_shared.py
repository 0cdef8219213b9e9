"""Settings that every process must share are stored with the queue; a process that disagrees gets an error."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq import ConfigurationError, Job, Queue, Worker
from groupmq.protocol.keys import Keys
from tests.conftest import MakeQueue

DISAGREES = r"queue 'shared' exists with other settings: group_concurrency is 2 there and 1 here\. Leave out"


async def nothing(_job: Job) -> None: ...


async def test_processes_that_agree_share_a_queue(make_queue: MakeQueue) -> None:
    one, two = make_queue("shared", group_concurrency=2), make_queue("shared", group_concurrency=2)
    await one.add(1)
    assert (await two.get_job_counts()).waiting == 1


async def test_a_process_with_other_settings_is_refused_with_what_differs(make_queue: MakeQueue) -> None:
    await make_queue("shared", group_concurrency=2).add(1)
    other = make_queue("shared", group_concurrency=1)
    for attempt in (other.add(2), other.get_job_counts(), other.pause(), other.add_many([{"data": 1}])):
        with pytest.raises(ConfigurationError, match=DISAGREES):
            await attempt
    with pytest.raises(ConfigurationError, match=DISAGREES):
        await Worker(other, nothing).start()
    assert (await make_queue("shared", group_concurrency=2).get_job_counts()).total == 1


async def test_what_only_one_process_cares_about_may_differ(make_queue: MakeQueue) -> None:
    await make_queue("shared", max_payload=5000, backoff=lambda attempt: 1.0).add(1)
    assert (await make_queue("shared", backoff=lambda attempt: 2.0).get_job_counts()).waiting == 1


async def test_one_process_may_change_what_is_stored(make_queue: MakeQueue) -> None:
    old, new = make_queue("shared", group_concurrency=2), make_queue("shared", group_concurrency=3)
    await old.add_many({"data": i, "group_id": "g"} for i in range(5))
    await new.reconfigure()
    assert (await new.get_group("g")).concurrency == 3
    with pytest.raises(ConfigurationError, match="group_concurrency is 3 there and 2 here"):
        await make_queue("shared", group_concurrency=2).add(1)
    await Worker(new, nothing, concurrency=5).run(burst=True)
    assert (await new.get_job_counts()).completed == 5


async def test_a_lower_limit_that_is_stored_holds_for_what_waits(make_queue: MakeQueue) -> None:
    old, new = make_queue("shared", group_concurrency=2), make_queue("shared", group_concurrency=1)
    await old.add_many({"data": i, "group_id": "g"} for i in range(3))
    await new.reconfigure()
    assert (await new.get_group("g")).state == "ready"
    assert (await new.repair()).clean


async def test_a_queue_of_another_format_is_refused(make_queue: MakeQueue, client: Any) -> None:
    await make_queue("shared").add(1)
    client.hset(Keys("groupmq", "shared").meta, "schema", "999")
    with pytest.raises(ConfigurationError, match="'shared' is stored in format 999, this release of groupmq reads"):
        await make_queue("shared").add(1)
    opened: Queue = make_queue("other")
    await opened.add(1)
    client.hset(Keys("groupmq", "other").meta, "schema", "999")
    with pytest.raises(ConfigurationError, match="'other' is stored in format 999"):
        await opened.add(1)
    client.flushall()


async def test_looking_at_a_queue_that_does_not_exist_opens_it_with_these_settings(make_queue: MakeQueue) -> None:
    assert (await make_queue("shared", group_concurrency=2).get_job_counts()).total == 0
    with pytest.raises(ConfigurationError, match=DISAGREES):
        await make_queue("shared", group_concurrency=1).get_job_counts()
