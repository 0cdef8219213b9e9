"""Which pages an event may have changed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.dashboard.documents.record import record

if TYPE_CHECKING:
    from groupmq import Event

ALL = ("events", "failures", "group", "job", "jobs", "lanes", "queue", "queues", "repeats", "settings", "workers")
_ALWAYS = frozenset(("events", "group", "job", "jobs", "lanes", "queue", "workers"))
_ALSO = {
    "added": frozenset(("repeats",)),
    "failed": frozenset(("failures",)),
    "retrying": frozenset(("failures",)),
    "removed": frozenset(("failures",)),
    "paused": frozenset(("settings",)),
    "resumed": frozenset(("settings",)),
}
_PROGRESS = frozenset(("events", "group", "job", "lanes", "workers"))
_MOST_IDS = 200


@record
class Changed:
    pages: list[str]
    jobs: list[str]
    groups: list[str]
    more: bool
    """There are more jobs or groups than are named here."""


def all_changed() -> Changed:
    """Every page may have changed: it is not known what happened."""
    return Changed(pages=list(ALL), jobs=[], groups=[], more=True)


class Changes:
    """What has changed since the last notification."""

    def __init__(self) -> None:
        self._pages: set[str] = set()
        self._jobs: set[str] = set()
        self._groups: set[str] = set()
        self._more = False

    def __bool__(self) -> bool:
        return bool(self._pages)

    def see(self, event: Event) -> None:
        if event.kind == "progress":
            self._pages |= _PROGRESS
        else:
            self._pages |= _ALWAYS
            self._pages |= _ALSO.get(event.kind, frozenset())
        if len(self._jobs) >= _MOST_IDS or len(self._groups) >= _MOST_IDS:
            self._more = True
            return
        if event.job_id is not None:
            self._jobs.add(event.job_id)
        if event.group_id is not None:
            self._groups.add(event.group_id)

    def see_all(self) -> None:
        """Count every page as changed: it is not known what happened."""
        self._pages |= set(ALL)
        self._more = True

    def take(self) -> Changed:
        found = Changed(
            pages=sorted(self._pages), jobs=sorted(self._jobs), groups=sorted(self._groups), more=self._more
        )
        self._pages, self._jobs, self._groups, self._more = set(), set(), set(), False
        return found
