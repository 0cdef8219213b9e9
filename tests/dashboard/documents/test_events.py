"""The tail of events for clients without a stream: pages without JavaScript, and scripts that poll."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq import Queue
from groupmq.dashboard.documents import events
from tests.conftest import MakeQueue
from tests.dashboard.serving import listening_to, serving, until
from tests.dashboard.visitor import Site
from tests.support.waiting import eventually


async def after(site: Site, queue: Queue, n: int, **params: Any) -> Any:
    """Wait until the page has this many events. Returns it."""
    found: dict[str, Any] = {}

    async def there() -> bool:
        found.update(await site.json("events", queue=queue.name, **params))
        return len(found["events"]) >= n

    await eventually(there, f"{n} events are read")
    return found


async def test_events_are_read_while_somebody_asks_for_them(queue: Queue, site: Site) -> None:
    await queue.get_job_counts()
    first = await site.json("events", queue=queue.name)
    assert (first["events"], first["missed"]) == ([], False)
    await queue.add({}, job_id="one")
    page = await after(site, queue, 1)
    assert [row["job_id"] for row in page["events"]] == ["one"]
    assert "one" in await site.page("events", queue=queue.name)


async def test_a_script_goes_on_from_a_position_whatever_it_filters(queue: Queue, site: Site) -> None:
    await queue.get_job_counts()
    begin = (await site.json("events", queue=queue.name))["position"]
    await queue.add({}, job_id="one")
    page = await after(site, queue, 1, since=begin)
    nothing = await site.json("events", queue=queue.name, since=begin, kind="failed")
    assert (nothing["events"], nothing["missed"]) == ([], False)
    assert nothing["position"] == page["position"] != begin
    await queue.add({}, job_id="two")
    page = await after(site, queue, 1, since=nothing["position"])
    assert [row["job_id"] for row in page["events"]] == ["two"]
    assert not page["missed"]


async def test_more_events_than_a_page_holds_are_said_to_be_missed(
    queue: Queue, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.get_job_counts()
    begin = (await site.json("events", queue=queue.name))["position"]
    monkeypatch.setattr(events, "MOST", 3)
    await queue.add_many([{"data": n} for n in range(3)])
    assert not (await after(site, queue, 3, since=begin))["missed"]
    await queue.add({}, job_id="fourth")

    async def missed() -> bool:
        page = await site.json("events", queue=queue.name, since=begin)
        return bool(page["missed"] and page["events"][0]["job_id"] == "fourth" and len(page["events"]) == 3)

    await eventually(missed, "the page says that events are missing")
    rows = await site.get(site.at("events", queue=queue.name, since=begin), X_Fragment="rows")
    assert 'class="gap"' in rows.text
    assert 'class="gap"' not in await site.page("events", queue=queue.name)


async def test_a_position_has_a_part_for_each_partition(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders", partitions=16)
    await queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(64)])
    begin = (await site.json("events", queue="orders"))["position"]
    assert len(begin) > 200
    await queue.add({}, job_id="one")
    page = await after(site, queue, 1, since=begin)
    assert ([row["job_id"] for row in page["events"]], page["missed"]) == (["one"], False)
    path = f"/queues/orders/stream?events=1&since={begin}"
    async with serving(site.dashboard) as at, listening_to(at + path) as stream:
        assert not (await until(stream, "hello")).data["missed"]
        assert [row["job_id"] for row in (await until(stream, "events")).data["events"]] == ["one"]


async def test_a_queue_that_writes_no_events_says_so(make_queue: MakeQueue, site: Site) -> None:
    queue = make_queue("orders", events=False)
    await queue.add({})
    page = await site.json("events", queue="orders")
    assert (page["events"], page["written"]) == ([], False)
    assert "This queue writes no events" in await site.page("events", queue="orders")
    await queue.reconfigure(events=True)
    assert "No events yet" in await site.page("events", queue="orders")
