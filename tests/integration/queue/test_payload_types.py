"""Payloads that JSON would change are refused wherever they come from; TypedJSON keeps them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from groupmq import ConfigurationError, Job, JobFailed, Queue, TypedJSON, Worker
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue

BAD = {"items": [1, {"price": math.nan}]}
WHERE = r"items\[1\]\.price: cannot be serialized: nan"
KEPT: Any = {
    "price": Decimal("9.90"),
    "at": datetime(2024, 2, 29, 12, tzinfo=UTC),
    "tags": {"a"},
    7: (1, b"x"),
    "ratio": math.inf,
}


async def test_data_that_would_be_changed_is_refused_and_nothing_is_added(queue: Queue) -> None:
    with pytest.raises(ConfigurationError, match=rf"^data\.{WHERE}"):
        await queue.add(BAD)
    with pytest.raises(ConfigurationError, match=rf"^items\[1\]\.data\.{WHERE}"):
        await queue.add_many([{"data": 1}, {"data": BAD}])
    job = await queue.add({"fine": True})
    with pytest.raises(ConfigurationError, match=rf"^data\.{WHERE}"):
        await job.update_data(BAD)
    assert (await queue.require_job(job.id)).data == {"fine": True}
    assert (await queue.get_job_counts()).total == 1


def test_the_blocking_client_refuses_it_too(url: str) -> None:
    with SyncQueue("q", url) as queue:
        with pytest.raises(ConfigurationError, match=rf"^data\.{WHERE}"):
            queue.add(BAD)
        assert queue.get_job_counts().total == 0


async def test_a_return_value_that_would_be_changed_fails_the_job_and_says_where(queue: Queue) -> None:
    job = await queue.add(1)

    async def handle(job: Job) -> Any:
        return BAD

    async with Worker(queue, handle):
        with pytest.raises(JobFailed, match=rf"return value\.{WHERE}"):
            await job.result(5)


async def test_progress_that_would_be_changed_is_refused_and_the_job_goes_on(queue: Queue) -> None:
    job = await queue.add(1)

    async def handle(job: Job) -> str:
        with pytest.raises(ConfigurationError, match=rf"^progress\.{WHERE}") as caught:
            await job.report_progress(BAD)
        assert "TypedJSON" not in str(caught.value), "progress is plain JSON in any queue"
        return "done"

    async with Worker(queue, handle):
        assert await job.result(5) == "done"


@pytest.mark.parametrize("kept", [0, 100])
async def test_typed_values_come_back_from_data_and_results(make_queue: MakeQueue, kept: int) -> None:
    queue = make_queue(serializer=TypedJSON(), keep_completed=kept)
    job = await queue.add(KEPT, delay=60)
    await job.update_data([KEPT])
    await job.promote()

    async def handle(job: Job) -> Any:
        assert job.data == [KEPT]
        assert type(job.data[0]["price"]) is Decimal
        return tuple(job.data)

    async with Worker(queue, handle):
        assert await job.result(5) == (KEPT,)
