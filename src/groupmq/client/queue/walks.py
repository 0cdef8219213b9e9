"""Going through the jobs of one state, a page at a time. Each call is bounded, however many jobs there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from groupmq.client.answers.cursors import packed, refused, unpacked
from groupmq.client.queue.caller import Caller
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK

_SCAN = re.compile(r"[0-9]{1,20}")
_SCORE = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e\+?[0-9]{1,3})?")


class Walk(Protocol):
    """The jobs of one state, of a queue or of all its partitions; `StateWalk` documents its members."""

    state: str
    total: int
    now: int
    newest_stamp: int
    ended: bool

    async def next_page(self, size: int) -> Iterator[tuple[str, commands.PagePosition]]: ...
    def stop_at(self, position: commands.PagePosition, *, last: bool) -> None: ...
    def cursor(self) -> str | None: ...


class StateWalk:
    """The jobs of one state. Finished ones by when they ended, the newest or the oldest first; running and delayed ones
    by the end of their lease or their due time; waiting ones group by group, or those of one group, in their order.

    Every job that stays in the state meanwhile is seen. A job that moves, because its lease is renewed or its delay is
    changed, may be seen twice.
    """

    def __init__(
        self,
        call: Caller,
        state: str,
        *,
        newest: bool = True,
        group_id: str | None = None,
        age_ms: int | None = None,
        cursor: str | None = None,
    ) -> None:
        self._call = call
        self.state = state
        self.total = self.now = self.newest_stamp = 0
        self.ended = False
        self._newest = newest and state in ("completed", "failed")
        self._age_ms = age_ms if self._newest else None
        self._group_id = group_id if state == "waiting" else None
        self._kind = state if self._group_id is None else "group"
        self._position: commands.PagePosition | None = None
        if cursor is not None:
            types = (str, str, bytes) if state == "waiting" else (str, str)
            self._position = tuple(unpacked(cursor, self._kind, *types))
            # A cursor may come from a URL. One that would make the server fail is refused here.
            if not (_SCAN if state == "waiting" else _SCORE).fullmatch(self._position[0]):
                raise refused(cursor)

    async def next_page(self, size: int) -> Iterator[tuple[str, commands.PagePosition]]:
        """At most `size` jobs, each with its position. Sets `ended` with the last page; may be empty before that."""
        size, page = min(size, CHUNK), None
        if self.state == "waiting":
            position = self._position or commands.FIRST_WAITING
            page = await self._call(commands.waiting_page(size, position, self._group_id))
        else:
            page = await self._call(
                commands.page(self.state, size, newest=self._newest, after=self._position, age_ms=self._age_ms)
            )
        self.now, self.total = page.now, page.total
        self.newest_stamp = self.newest_stamp or page.newest_stamp
        self._position, self.ended = page.following, page.following is None
        return zip(page.ids, page.positions, strict=True)

    def stop_at(self, position: commands.PagePosition, *, last: bool) -> None:
        """Begin the next page after this job of the current one; `last`: whether it is the last job of that page."""
        if not last:
            self._position, self.ended = position, False

    def cursor(self) -> str | None:
        """Where the next page begins; None at the end."""
        return None if self.ended or self._position is None else packed(self._kind, *self._position)


class WaitingWalk:
    """All jobs that wait, or those of one group, a page at a time. Every job that waits the whole time is seen.

    After its end it starts again.
    """

    def __init__(self, call: Caller, group_id: str | None = None) -> None:
        self._call = call
        self._group_id = group_id
        self._begin()

    def _begin(self) -> None:
        group_id = self._group_id
        self._cursor: str | None = "0" if group_id is None else None
        self._deep = [] if group_id is None else [group_id]
        self._after = b""
        # A hash that is resized while it is walked may show a group twice.
        self._seen: set[str] = set()

    async def next_full_page(self, size: int = CHUNK) -> list[str]:
        """At most `size` ids, and fewer only at the end: one page of a small group may have few."""
        ids: list[str] = []
        while len(ids) < size:
            page = await self.next_page(size - len(ids))
            if not page:
                break
            ids += page
        return ids

    async def next_page(self, size: int = CHUNK) -> list[str]:
        """At most `size` ids; none at the end."""
        while True:
            if self._deep:
                ids, after = await self._call(commands.list_group(self._deep[-1], self._after, size))
                self._after = after or b""
                if after is None:
                    self._deep.pop()
            elif self._cursor is not None:
                cursor, ids, self._deep = await self._call(commands.list_waiting(self._cursor, size))
                self._cursor = None if cursor == "0" else cursor
            else:
                self._begin()
                return []
            new = [job_id for job_id in ids if job_id not in self._seen]
            self._seen.update(new)
            if new:
                return new
