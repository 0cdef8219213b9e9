"""One stream per tab, one reader per process and queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from groupmq import Queue
from groupmq.dashboard.live import reader as readers
from groupmq.dashboard.live import stream as streams
from tests.conftest import MakeQueue
from tests.dashboard.conftest import MakeSite
from tests.dashboard.serving import Said, listening_to, serving, until
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SNAPSHOT_EVERY", "CHANGES_EVERY", "ROWS_EVERY"):
        monkeypatch.setattr(readers, name, 0.05)


async def changed_jobs(stream: AsyncIterator[Said]) -> Said:
    """Wait for the next message that names jobs. Those before it, at the start of a stream, say that anything may have
    changed."""
    while not (said := await until(stream, "changed")).data["jobs"]:
        assert said.data["more"]
    return said


async def test_a_tab_gets_what_changed(queue: Queue, site: Site) -> None:
    await queue.get_job_counts()
    async with (
        serving(site.dashboard) as at,
        listening_to(f"{at}/queues/{queue.name}/stream") as stream,
    ):
        hello = await until(stream, "hello")
        assert not hello.data["missed"]
        snapshot = await until(stream, "snapshot")
        assert snapshot.data["name"] == queue.name
        job = await queue.add({}, group_id="user:42")
        changed = await changed_jobs(stream)
        assert {"lanes", "jobs", "queue"} <= set(changed.data["pages"])
        assert changed.data["jobs"] == [job.id]
        assert changed.data["groups"] == ["user:42"]
        assert changed.id
        while (await until(stream, "snapshot")).data["counts"]["waiting"] != 1:
            pass


async def test_the_tail_gets_events_in_words_and_redacted(queue: Queue, make_site: MakeSite) -> None:
    site = make_site(redact=["password"])
    await queue.get_job_counts()
    async with (
        serving(site.dashboard) as at,
        listening_to(f"{at}/queues/{queue.name}/stream?events=1") as stream,
    ):
        await until(stream, "snapshot")
        job = await queue.add({})
        await queue.fail(job.id, "password=hunter2 is wrong")
        rows: list[Any] = []
        while len(rows) < 3:
            rows += (await until(stream, "events")).data["events"]
        assert [row["kind"] for row in rows] == ["added", "failed", "drained"]
        assert rows[1]["text"] == "failed for good: password=[redacted] is wrong"
        page = await site.json("events", queue=queue.name)
        assert [row["kind"] for row in page["events"]] == ["drained", "failed", "added"]
        since = await site.json("events", queue=queue.name, since=rows[0]["id"])
        assert [row["kind"] for row in since["events"]] == ["drained", "failed"]
        assert not since["missed"]
        assert [row["kind"] for row in (await site.json("events", queue=queue.name, kind="added"))["events"]] == [
            "added"
        ]


async def test_ten_tabs_share_one_reader(queue: Queue, site: Site, client: Any) -> None:
    await queue.get_job_counts()
    async with serving(site.dashboard) as at, asyncio.TaskGroup() as tabs:
        heard = []

        async def tab() -> None:
            async with listening_to(f"{at}/queues/{queue.name}/stream") as stream:
                await until(stream, "snapshot")
                heard.append(await changed_jobs(stream))

        for _ in range(10):
            tabs.create_task(tab())
        readers_of = site.dashboard.shared._readers
        await eventually(
            lambda: queue.name in readers_of and len(readers_of[queue.name]._broadcast) == 10, "ten streams are open"
        )
        assert len(readers_of) == 1
        await queue.add({}, group_id="a")
    assert len({said.id for said in heard}) == 1


async def test_a_tab_that_was_away_catches_up(queue: Queue, site: Site) -> None:
    await queue.get_job_counts()
    path = f"/queues/{queue.name}/stream?events=1"
    async with serving(site.dashboard) as at:
        async with listening_to(at + path) as stream:
            await until(stream, "snapshot")
            await queue.add({}, job_id="seen")
            last = (await until(stream, "events")).id
            async with listening_to(at + path) as other:  # keeps the reader awake
                await until(other, "snapshot")
                await queue.add({}, job_id="unseen")
                await until(other, "events")
        assert last is not None
        async with listening_to(at + path, Last_Event_ID=last) as stream:
            assert not (await until(stream, "hello")).data["missed"]
            rows = (await until(stream, "events")).data["events"]
            assert [row["job_id"] for row in rows] == ["unseen"]


@pytest.mark.parametrize("partitions", [1, 4])
async def test_a_new_process_catches_up_from_the_logs(
    make_queue: MakeQueue, make_site: MakeSite, partitions: int
) -> None:
    queue = make_queue(partitions=partitions)
    await queue.get_job_counts()
    path = f"/queues/{queue.name}/stream?events=1"
    async with serving(make_site().dashboard) as at, listening_to(at + path) as stream:
        await until(stream, "snapshot")
        await queue.add({}, job_id="seen")
        last = (await until(stream, "events")).id
    await queue.add({}, job_id="unseen")
    assert last is not None
    async with serving(make_site().dashboard) as at, listening_to(at + path, Last_Event_ID=last) as stream:
        rows = (await until(stream, "events")).data["events"]
        assert [row["job_id"] for row in rows] == ["unseen"]


@pytest.mark.parametrize("last", ["1-0/1/0", "x", "999-0/1/0"])
async def test_a_tab_that_missed_events_gets_missed(queue: Queue, site: Site, last: str) -> None:
    await queue.get_job_counts()
    path = f"/queues/{queue.name}/stream"
    async with serving(site.dashboard) as at, listening_to(at + path) as first:
        await until(first, "snapshot")
        await queue.add({})
        await changed_jobs(first)
        async with listening_to(at + path, Last_Event_ID=last) as stream:
            assert (await until(stream, "hello")).data["missed"]


async def test_a_stream_ends_after_a_while(queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LIFETIME", 0.2)
    await queue.get_job_counts()
    async with serving(site.dashboard) as at, listening_to(f"{at}/queues/{queue.name}/stream") as stream:
        async with asyncio.timeout(10):
            names = [said.name async for said in stream]
        assert names[0] == "hello"


async def test_streams_are_limited(queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    await queue.get_job_counts()
    monkeypatch.setattr(streams.Streams, "full", True)
    assert (await site.get(f"/queues/{queue.name}/stream")).status_code == 503


async def test_a_queue_without_events_is_live_too(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("quiet", events=False)
    await queue.get_job_counts()
    async with serving(site.dashboard) as at, listening_to(f"{at}/queues/quiet/stream") as stream:
        await until(stream, "snapshot")
        await until(stream, "changed")
        await queue.add({})
        changed = await until(stream, "changed")
        assert changed.data["more"]


async def test_the_list_of_queues_is_live(queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from groupmq.dashboard.live import overview

    monkeypatch.setattr(overview, "LOOK_EVERY", 0.05)
    await queue.get_job_counts()
    async with serving(site.dashboard) as at, listening_to(f"{at}/stream") as stream:
        first = await until(stream, "snapshot")
        assert [row["name"] for row in first.data["queues"]] == [queue.name]
        await queue.add({})
        while (await until(stream, "snapshot")).data["queues"][0]["counts"]["waiting"] != 1:
            pass


async def test_a_task_is_live(queue: Queue, site: Site) -> None:
    await queue.add({})
    async with serving(site.dashboard) as at, listening_to(f"{at}/queues/{queue.name}/stream") as stream:
        await until(stream, "snapshot")
        await site.act("clean", 202, queue=queue.name, state="waiting")
        while (await until(stream, "task")).data["state"] != "done":
            pass


async def test_a_stream_of_a_queue_that_is_not_there(site: Site) -> None:
    assert (await site.get("/queues/nobody/stream")).status_code == 404


async def test_a_busy_queue_is_looked_at_instead_of_read(
    queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.get_job_counts()
    monkeypatch.setattr(readers, "MOST_EVENTS", 0)
    async with serving(site.dashboard) as at, listening_to(f"{at}/queues/{queue.name}/stream") as stream:
        await until(stream, "snapshot")
        await queue.add({})
        await eventually(lambda: site.dashboard.shared.reader(queue)._busy, "the reader has stopped reading events")
        while not (said := await until(stream, "changed")).data["more"] or said.id is None:
            await queue.add({})
        await queue.add({})
        last = await queue.get_last_event_id()
        await eventually(lambda: site.dashboard.shared.last_event_id(queue.name) == last, "it knows the newest event")
        monkeypatch.setattr(readers, "MOST_EVENTS", 1_000_000)
        await eventually(lambda: not site.dashboard.shared.reader(queue)._busy, "the reader reads again")
        job = await queue.add({}, group_id="after")
        while job.id not in (await until(stream, "changed")).data["jobs"]:
            pass
