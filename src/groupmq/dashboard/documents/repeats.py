"""The page `repeats`: repeating jobs, their schedules in words and the next runs."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

from groupmq import ConfigurationError, Cron, Every
from groupmq.dashboard.documents.page import Page, QueueQuery
from groupmq.dashboard.documents.payload import preview
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq import RepeatingJob

MOST = 200
NEXT = 3
_CRON = re.compile(r"cron (?P<pattern>.+) \((?P<zone>[^()]+)\)")
_EVERY = re.compile(r"every (?P<seconds>[0-9.e+-]+) s")
_EVERY_NTH = re.compile(r"Every (\d+)(?:st|nd|rd|th) (minute|second) of every (?:hour|minute)")
_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@record
class RepeatRow:
    key: str
    group_id: str | None
    schedule: str
    words: str
    zone: str | None
    next_run: datetime
    next_runs: list[datetime]
    """The next three, or fewer if it ends before."""
    last_run: datetime | None
    count: int
    limit: int | None
    end: datetime | None
    preview: str


@record
class RepeatsPage:
    queue: QueueRow
    repeats: list[RepeatRow]
    total: int


async def build(view: View, query: QueueQuery) -> RepeatsPage:
    row, repeats = await asyncio.gather(view.row(), view.queue.get_repeating_jobs())
    return RepeatsPage(queue=row, repeats=[repeat_row(one, view) for one in repeats[:MOST]], total=len(repeats))


def repeat_row(repeat: RepeatingJob, view: View) -> RepeatRow:
    shown, _ = preview(repeat.data, view.redactor, "data")
    cron = _CRON.fullmatch(repeat.schedule)
    return RepeatRow(
        key=repeat.key,
        group_id=repeat.group_id,
        schedule=repeat.schedule,
        words=words(repeat.schedule),
        zone=cron["zone"] if cron else None,
        next_run=repeat.next_run,
        next_runs=next_runs(repeat),
        last_run=repeat.last_run,
        count=repeat.count,
        limit=repeat.limit,
        end=repeat.end,
        preview=shown,
    )


def next_runs(repeat: RepeatingJob) -> list[datetime]:
    """The next three, or fewer if its end or limit comes before."""
    left = NEXT if repeat.limit is None else min(NEXT, repeat.limit - repeat.count)
    schedule = read(repeat.schedule)
    after = [] if schedule is None else schedule.next_runs(repeat.next_run, NEXT - 1)
    found = [repeat.next_run, *(run for run in after if repeat.end is None or run <= repeat.end)]
    return found[: max(0, left)]


def read(schedule: str) -> Every | Cron | None:
    """A schedule from its words; None if it is of a kind that this release does not know."""
    cron, every = _CRON.fullmatch(schedule), _EVERY.fullmatch(schedule)
    try:
        if cron:
            return Cron(cron["pattern"], tz=cron["zone"])
        return Every(float(every["seconds"])) if every else None
    except ConfigurationError:
        return None


def words(schedule: str) -> str:
    """A schedule as people say it: `Every 5 minutes`, `At 09:00 on weekdays`."""
    cron = _CRON.fullmatch(schedule)
    if cron:
        try:
            explained = CronSim(cron["pattern"], datetime.now(UTC)).explain()
            nth = _EVERY_NTH.fullmatch(explained)
            # `*/7` starts again with each hour: only divisors of 60 are evenly spaced.
            return f"Every {nth[1]} {nth[2]}s" if nth and 60 % int(nth[1]) == 0 else explained
        except (CronSimError, ValueError, IndexError, KeyError):
            return schedule
    every = _EVERY.fullmatch(schedule)
    return every_words(float(every["seconds"])) if every else schedule


def every_words(seconds: float) -> str:
    for size, name in _UNITS:
        number = seconds / size
        if number >= 1 and number == int(number):
            return f"Every {name}" if number == 1 else f"Every {int(number):,} {name}s"
    return f"Every {seconds:g} seconds"


PAGE = Page("repeats", "Repeats", QueueQuery, RepeatsPage, build, "Repeating jobs and when they run next.")
