"""Callbacks on jobs: which events they get, past ones too, and how long they live."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from groupmq import ConfigurationError, Event, Job, Queue, Worker
from tests.support.listening import Heard, hears
from tests.support.waiting import eventually


async def handle(job: Job) -> Any:
    if job.data == "talk":
        await job.report_progress("half")
    return job.data


async def test_listeners_of_a_job_get_only_its_own_events(queue: Queue) -> None:
    heard = Heard()
    other, job = await queue.add(1), await queue.add("talk", group_id="g")
    for kind in ("active", "progress", "completed"):
        job.on(kind, heard.append)
    await Worker(queue, handle).run(burst=True)
    await heard.has("completed")
    assert heard.kinds() == ["active", "progress", "completed"]
    assert {event.job_id for event in heard} == {job.id} != {other.id}
    assert heard[1].progress == "half"


async def test_listeners_of_a_job_that_has_ended_get_its_past_events(queue: Queue) -> None:
    heard = Heard()
    job = await queue.add("talk")
    await Worker(queue, handle).run(burst=True)
    for kind in ("progress", "completed"):
        job.on(kind, heard.append)
    await heard.has("completed")
    assert heard.kinds() == ["progress", "completed"]


@pytest.mark.parametrize("again", [True, False])
async def test_a_later_listener_of_a_job_gets_its_past_events_too(queue: Queue, again: bool) -> None:
    first, second = Heard(), Heard()
    job = await queue.add("talk")
    job.on("completed", first.append)
    await Worker(queue, handle).run(burst=True)
    await first.has("completed")
    same = job if again else await queue.require_job(job.id)
    for kind in ("progress", "completed"):
        same.on(kind, second.append)
    await second.has("completed", timeout=3)
    assert second.kinds() == ["progress", "completed"]
    assert first.kinds() == ["completed"]


async def test_listening_to_a_job_ends_with_off(queue: Queue) -> None:
    heard, witness = Heard(), Heard()
    job = await queue.add("talk")
    listener = job.on("progress", lambda event: heard.append(event))
    job.on("completed", witness.append)
    assert job.off("progress", listener)
    assert not job.off("progress", listener)
    assert not (await queue.add(2)).off("progress", listener)
    await Worker(queue, handle).run(burst=True)
    await witness.has("completed")
    assert heard == []
    with pytest.raises(ConfigurationError, match="event: expected one of"):
        job.on("finished", print)


async def test_listeners_of_a_job_live_as_long_as_the_job_object(queue: Queue, client: Any) -> None:
    heard = Heard()

    class Callback:
        def __call__(self, event: Event) -> None:
            heard.append(event)

    callback = Callback()
    gone = weakref.ref(callback)
    job = await queue.add(1)
    job.on("completed", callback)
    witness = Heard()
    (await queue.add(2)).on("completed", witness.append)
    kept = await queue.add(3)
    kept.on("completed", witness.append)
    await hears(client, 1)
    job_id = job.id
    del callback, job

    def collected() -> bool:
        gc.collect()
        return gone() is None

    await eventually(collected, "the listener went with its job")
    await Worker(queue, handle).run(burst=True)
    await witness.has("completed")
    assert (await queue.require_job(job_id)).state == "completed"
    assert heard == []
    assert [event.job_id for event in witness] == [kept.id]
