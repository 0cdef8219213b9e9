"""Searches of the log for the ends of jobs that are gone.

The log is read forward from the time at which a job was made. A reading for each job would take as long as the number
of jobs times the length of the log, so readings are shared: all searches that begin while the log is read are served by
the next reading, and for some seconds a reading continues where the last one ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from groupmq.client.events.subscription import PAGE
from groupmq.core.errors import GroupMQError
from groupmq.core.events import ENDS, EndOf, Entry, Event
from groupmq.runtime.tasks import end_tasks

_LASTS = 5.0
"""Seconds after the last search for which the events read are kept."""
_MOST = 20_000
"""The most events that are kept after a search. If more were read, all are forgotten."""


class _Search(NamedTuple):
    end: EndOf
    found: asyncio.Future[Event | None]


class _Read:
    """The beginnings and ends of jobs that were read from the log, in their order."""

    def __init__(self, first: EndOf) -> None:
        self.created_ms = first.created_ms
        """Everything that the log had about jobs made at this time or later, up to `until`, is here."""
        self.until = first.since
        self._events: dict[str, list[Event]] = {}
        self.kept = 0

    def add(self, entry: Entry, wanted: Mapping[str, Sequence[EndOf]]) -> None:
        """Keep the beginnings and ends in the next entry, and show them to the searches `wanted`, by job."""
        self.until = entry.stream_id
        for event in entry.events:
            if event.job_id is not None and (event.kind == "added" or event.kind in ENDS):
                self._events.setdefault(event.job_id, []).append(event)
                self.kept += 1
                for end in wanted.get(event.job_id, ()):
                    end.see(event)

    def show(self, end: EndOf) -> None:
        for event in self._events.get(end.job_id, ()):
            end.see(event)


class EndSearches:
    """The searches of one log. `page` reads entries of it, from a stream id on."""

    def __init__(self, page: Callable[[str, int], Awaitable[list[Entry]]]) -> None:
        self._page = page
        self._searches: list[_Search] = []
        """Searches that the next reading serves."""
        self._reading: asyncio.Task[None] | None = None
        self._read: _Read | None = None
        self._forgetting: asyncio.TimerHandle | None = None

    async def find(self, end: EndOf) -> Event | None:
        """The event that ended the job; None if the log does not have it any more."""
        loop = asyncio.get_running_loop()
        search = _Search(end, loop.create_future())
        self._searches.append(search)
        if self._reading is None:
            self._reading = loop.create_task(self._serve())
        return await search.found

    async def close(self) -> None:
        await end_tasks([self._reading])
        self._end_searches(self._searches)  # those left by a task that was cancelled before its first step
        self._forget()

    def _forget(self) -> None:
        self._read = None
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None

    async def _serve(self) -> None:
        searches: list[_Search] = []
        try:
            while self._searches:
                searches, self._searches = self._searches, []
                try:
                    await self._look_for([search.end for search in searches])
                except Exception as error:
                    _raise_in(searches, error)
                for search in searches:
                    if not search.found.done():
                        search.found.set_result(search.end.found)
        finally:
            self._end_searches([*searches, *self._searches])
            self._forget_later()

    def _end_searches(self, searches: Sequence[_Search]) -> None:
        _raise_in(searches, GroupMQError("the queue was closed while its log was read"))
        self._searches, self._reading = [], None

    def _forget_later(self) -> None:
        read = self._read
        self._forget()
        if read is not None and read.kept <= _MOST:
            self._read = read
            self._forgetting = asyncio.get_running_loop().call_later(_LASTS, self._forget)

    async def _look_for(self, ends: list[EndOf]) -> None:
        first = min(ends, key=lambda end: end.created_ms)
        read = self._read
        if read is None or first.created_ms < read.created_ms:
            read = self._read = _Read(first)
        for end in ends:
            read.show(end)
        while left := [end for end in ends if not end.sure]:
            wanted: dict[str, list[EndOf]] = {}
            for end in left:
                wanted.setdefault(end.job_id, []).append(end)
            page = await self._page(f"({read.until}", PAGE)
            for entry in page:
                read.add(entry, wanted)
            if len(page) < PAGE:
                return


def _raise_in(searches: Sequence[_Search], error: Exception) -> None:
    for search in searches:
        if not search.found.done():
            search.found.set_exception(error)
