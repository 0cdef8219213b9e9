# Generated from src/groupmq/client/partitions/whereabouts.py by `make sync`; do not edit.
"""Where a job is if its id does not carry its place: a user gave the id, and the group is in another partition.

The partition that the id hashes to, its home, has an entry that names the place of the group. It is written before the
job: a crash between the two leaves an entry without a job, which finds nothing and is swept away by the clean-up duty
after ten minutes. A job without its entry would exist and not be found.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from groupmq.client.connection.replies import decoded
from groupmq.protocol import commands
from groupmq.sync.connection.connections import BlockingConnection

YOUNG_MS = 600_000
"""A younger entry may belong to an add that is still under way; no call is retried for longer than this."""
SLOW_ADD = 60.0
"""Seconds. An add that took longer writes its entries again: they may have been swept while its process was
suspended."""
PAGE = 100
PAGES, WORTHWHILE = 5, 25
"""The least number of pages of each partition that a sweep reads, and the number of entries swept from a page for which
it reads on. Entries of live jobs are read in vain: with millions of them, reading all each minute would cost more than
the jobs do."""
_ENTRY = re.compile(r"([0-9]{1,8}) ([0-9]{1,16})")


def entry_of(place: int, now_ms: int) -> str:
    return f"{place} {now_ms}"


def place_in(entry: str) -> int | None:
    """The place that an entry names; None if it is not an entry of ours."""
    found = _ENTRY.fullmatch(entry)
    return None if found is None else int(found[1])


def is_old(entry: str, now_ms: int) -> bool:
    """Whether no add under way can have written this entry."""
    found = _ENTRY.fullmatch(entry)
    return found is None or int(found[2]) < now_ms - YOUNG_MS


class Whereabouts:
    """The entries of one partition. Plain commands about one key, each safe to send again."""

    def __init__(self, connection: BlockingConnection) -> None:
        self._connection = connection
        self._key = connection.session.keys.elsewhere

    def find(self, ids: Sequence[str]) -> list[int | None]:
        """The place that the entry of each id names."""
        if not ids:
            return []
        reply = self._connection.command("HMGET", self._key, *ids, key=self._key)
        return [None if raw is None else place_in(decoded(raw)) for raw in reply]

    def enter(self, places: Mapping[str, int]) -> None:
        now_ms = int(time.time() * 1000)
        flat = [part for job_id, place in places.items() for part in (job_id, entry_of(place, now_ms))]
        self._connection.command("HSET", self._key, *flat, key=self._key)

    def old_page(self, cursor: str) -> tuple[str, dict[str, str]]:
        """The next cursor, and entries by id that no add under way has written."""
        reply = self._connection.command("HSCAN", self._key, cursor, "COUNT", PAGE, key=self._key)
        flat, now_ms = reply[1], int(time.time() * 1000)
        pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        found = {decoded(job_id): decoded(entry) for job_id, entry in pairs}
        return decoded(reply[0]), {job_id: entry for job_id, entry in found.items() if is_old(entry, now_ms)}

    def strike(self, entries: Mapping[str, str]) -> int:
        """Remove the entries that were not written again meanwhile, and return how many."""
        return self._connection.call(commands.strike(list(entries), list(entries.values()))) if entries else 0
