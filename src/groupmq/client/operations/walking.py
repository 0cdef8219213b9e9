"""Going through waiting jobs: however many there are and however they lie in groups, each call is bounded."""

from __future__ import annotations

from groupmq.client.operations.steps import Steps
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK


class WaitingWalk:
    """All jobs that wait, or those of one group, a page at a time. Whatever waits all the while is seen.

    After its end it begins anew.
    """

    def __init__(self, group_id: str | None = None) -> None:
        self._group_id = group_id
        self._begin()

    def _begin(self) -> None:
        group_id = self._group_id
        self._cursor: str | None = "0" if group_id is None else None
        self._deep = [] if group_id is None else [group_id]
        self._after = b""
        # A hash that is resized while it is walked may show a group twice.
        self._seen: set[str] = set()

    def next_full_page(self, size: int = CHUNK) -> Steps[list[str]]:
        """As many ids as there are, up to `size`: groups may be small."""
        ids: list[str] = []
        while len(ids) < size:
            page = yield from self.next_page(size - len(ids))
            if not page:
                break
            ids += page
        return ids

    def next_page(self, size: int = CHUNK) -> Steps[list[str]]:
        """At most `size` ids; none at the end."""
        while True:
            if self._deep:
                ids, after = yield commands.list_group(self._deep[-1], self._after, size)
                self._after = after or b""
                if after is None:
                    self._deep.pop()
            elif self._cursor is not None:
                cursor, ids, self._deep = yield commands.list_waiting(self._cursor, size)
                self._cursor = None if cursor == "0" else cursor
            else:
                self._begin()
                return []
            new = [job_id for job_id in ids if job_id not in self._seen]
            self._seen.update(new)
            if new:
                return new
