# Generated from src/groupmq/client/partitions/walks.py by `make sync`; do not edit.
"""Going through the jobs of one state in all partitions, a page at a time, as if they were in one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from groupmq.client.answers.cursors import packed, refused, unpacked
from groupmq.core.views import JobCounts
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK
from groupmq.sync.queue.walks import Walk

WalkEntry = tuple[str, commands.PagePosition]


def key_of(position: commands.PagePosition) -> tuple[float, bytes]:
    """The order of a sorted set: by score, then by the bytes of the member. `position`: score and id."""
    return float(position[0]), position[1].encode()


class OneByOne:
    """Goes through waiting jobs, one partition after the other: they have no order across groups."""

    def __init__(self, walks: Sequence[Walk], at: int, count: Callable[[], JobCounts]) -> None:
        """`at`: the partition to begin with. `count`: counts the jobs of the whole queue."""
        self._walks = walks
        self._at = self._shown = at
        self._count = count
        self.state = "waiting"
        self.total = self.now = self.newest_stamp = 0
        self.ended = False

    def next_page(self, size: int) -> Iterator[WalkEntry]:
        if not self.now:
            counted = self._count()
            self.total = counted.waiting
        self._shown = self._at
        walk = self._walks[self._at]
        entries = walk.next_page(size)
        self.now, self.newest_stamp = walk.now, self.newest_stamp or walk.newest_stamp
        if walk.ended:
            self.ended = self._at == len(self._walks) - 1
            self._at = min(self._at + 1, len(self._walks) - 1)
        return entries

    def stop_at(self, position: commands.PagePosition, *, last: bool) -> None:
        if not last:
            self._at, self.ended = self._shown, False
            self._walks[self._at].stop_at(position, last=False)

    def cursor(self) -> str | None:
        return None if self.ended else packed("part", self._at, self._walks[self._at].cursor() or "")


def inner_cursor(cursor: str | None, n: int) -> tuple[int, str | None]:
    """The partition that a cursor of `OneByOne` has come to, and the cursor in that partition."""
    if cursor is None:
        return 0, None
    at, inner = unpacked(cursor, "part", int, str)
    if not 0 <= at < n:
        raise refused(cursor)
    return at, inner or None


def after_of(cursor: str | None, state: str) -> commands.PagePosition | None:
    """The position after which a cursor of `Merged` continues. The cursor has the form of one of a single partition."""
    return None if cursor is None else tuple(unpacked(cursor, state, str, str))


class Merged:
    """Goes through jobs that have an order (by their end or due time): the next one is the first of all partitions.

    The position of a job is its score and id, which mean the same in each partition, so one position is enough for all
    of them. A partition without that job continues at its score, and leaves out the jobs that were shown already.
    """

    def __init__(self, walks: Sequence[Walk], state: str, *, newest: bool, after: commands.PagePosition | None) -> None:
        self._walks = walks
        self.state = state
        self._newest = newest and state in ("completed", "failed")
        self._after = after
        self.total = self.now = self.newest_stamp = 0
        self.ended = False
        self._waiting: list[deque[WalkEntry]] = [deque() for _ in walks]
        self._begun = False

    def next_page(self, size: int) -> Iterator[WalkEntry]:
        size = min(size, CHUNK)
        page: list[WalkEntry] = []
        while len(page) < size:
            self._fill(size - len(page))
            first = self._first()
            if first is None:
                self.ended = True
                break
            entry = self._waiting[first].popleft()
            self._after = entry[1]
            page.append(entry)
        else:
            self._fill(1)
            self.ended = self._first() is None
        return iter(page)

    def _fill(self, size: int) -> None:
        """Read the next page of each partition whose jobs are used up, so that the next job of each is known."""
        for waiting, walk in zip(self._waiting, self._walks, strict=True):
            while not waiting and not walk.ended:
                entries = walk.next_page(size)
                waiting.extend(entry for entry in entries if self._is_new(entry))
        if not self._begun:
            self._begun = True
            self.total = sum(walk.total for walk in self._walks)
            self.now = max(walk.now for walk in self._walks)
            self.newest_stamp = max(walk.newest_stamp for walk in self._walks)

    def _is_new(self, entry: WalkEntry) -> bool:
        if self._after is None:
            return True
        one, other = key_of(entry[1]), key_of(self._after)
        return one < other if self._newest else one > other

    def _first(self) -> int | None:
        found = [at for at, waiting in enumerate(self._waiting) if waiting]
        if not found:
            return None
        pick = max if self._newest else min
        return pick(found, key=lambda at: key_of(self._waiting[at][0][1]))

    def stop_at(self, position: commands.PagePosition, *, last: bool) -> None:
        """Set the cursor to this job. This object itself does not return the jobs after it again."""
        if not last:
            self._after, self.ended = position, False

    def cursor(self) -> str | None:
        return None if self.ended or self._after is None else packed(self.state, *self._after)
