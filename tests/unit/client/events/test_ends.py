"""Searches for the ends of jobs in the log share the reading, its errors, and the closing of the queue."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from groupmq import ConnectionLost, Event, GroupMQError
from groupmq.client.events import ends
from groupmq.client.events.ends import EndSearches
from groupmq.client.events.subscription import PAGE
from groupmq.core.events import EndOf, Entry

AT = 1_000


def happened(kind: Any, job: int, at_ms: int) -> Event:
    return Event(f"{at_ms}-{job}", kind, f"job-{job}", "g", datetime.fromtimestamp(at_ms / 1000, UTC))


class Log:
    """A log whose entries have one event each. Counts how often it is read."""

    def __init__(self, *events: Event) -> None:
        self.entries = [Entry(f"{n}-0", n, [event]) for n, event in enumerate(events, AT)]
        self.pages = 0
        self.error: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def page(self, since: str, most: int) -> list[Entry]:
        self.pages += 1
        await self.open.wait()
        if self.error is not None:
            raise self.error
        behind = int(since.removeprefix("(").partition("-")[0])
        return [entry for entry in self.entries if int(entry.stream_id.partition("-")[0]) > behind][:most]


def wanted(job: int) -> EndOf:
    return EndOf(f"job-{job}", AT)


async def test_those_who_come_while_the_log_is_read_share_the_next_reading() -> None:
    log = Log(*(happened("completed", n, AT + 1) for n in range(PAGE // 2)))
    searches = EndSearches(log.page)
    log.open.clear()
    first = asyncio.create_task(searches.find(wanted(0)))
    await asyncio.sleep(0)
    others = [asyncio.create_task(searches.find(wanted(n))) for n in range(1, PAGE // 2 + 1)]
    await asyncio.sleep(0)
    log.open.set()
    assert (await first) is log.entries[0].events[0]
    found = await asyncio.gather(*others)
    assert found == [*(entry.events[0] for entry in log.entries[1:]), None]
    assert log.pages == 2, "the second page was read for the job that is not there"
    await searches.close()


async def test_a_later_search_reads_on_where_the_last_one_ended() -> None:
    log = Log(happened("failed", 1, AT + 1))
    searches = EndSearches(log.page)
    failed = await searches.find(wanted(1))
    assert failed is log.entries[0].events[0]
    log.entries.append(Entry(f"{AT + 50}-0", 2, [happened("completed", 1, AT + 2)]))
    assert (await searches.find(wanted(1))) is log.entries[1].events[0], "the job has run again since"
    assert (await searches.find(EndOf("job-1", AT - 10))) is log.entries[1].events[0], "this search begins earlier"
    await searches.close()


async def test_what_was_read_is_forgotten_where_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "_MOST", 1)
    log = Log(happened("completed", 1, AT + 1), happened("completed", 2, AT + 1))
    searches = EndSearches(log.page)
    for _ in range(2):
        assert await searches.find(wanted(2)) is not None
    assert log.pages == 2
    assert searches._read is None
    await searches.close()


async def test_an_error_is_raised_in_all_who_wait_and_the_next_search_tries_again() -> None:
    log = Log(happened("completed", 1, AT + 1))
    searches = EndSearches(log.page)
    log.error = ConnectionLost("away")
    failures = await asyncio.gather(*(searches.find(wanted(n)) for n in (1, 2)), return_exceptions=True)
    assert [str(failure) for failure in failures] == ["away", "away"]
    log.error = None
    assert await searches.find(wanted(1)) is not None
    await searches.close()


async def test_closing_ends_the_searches_and_one_who_gives_up_harms_no_other() -> None:
    log = Log(happened("completed", 1, AT + 1))
    searches = EndSearches(log.page)
    log.open.clear()
    gone, left = (asyncio.create_task(searches.find(wanted(1))) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    log.open.set()
    assert await left is not None
    log.open.clear()
    waiting = asyncio.create_task(searches.find(wanted(2)))
    await asyncio.sleep(0)
    await searches.close()
    with pytest.raises(GroupMQError, match="the queue was closed"):
        await waiting
