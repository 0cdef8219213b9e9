# Generated from src/groupmq/client/queue/surveying.py by `make sync`; do not edit.
"""A queue at one point in time, as a monitor shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupmq.client.answers.survey import survey_of
from groupmq.core.checks import text, whole
from groupmq.core.survey_views import QueueSurvey
from groupmq.core.views import JobCounts
from groupmq.protocol import commands
from groupmq.sync.queue.indexed_groups import groups_of
from groupmq.sync.queue.measures import longest_waits

if TYPE_CHECKING:
    from groupmq.sync.queue.methods import QueueMethods

MOST_SURVEYED = 100
_AN_HOUR = 60


def survey(
    queue: QueueMethods,
    *,
    cursor: str = "0",
    also: Sequence[str] = (),
    groups: int = 20,
    runs: int = 50,
    failures: int = 50,
) -> QueueSurvey:
    """Read everything a monitor shows, in five calls however deep the queue is; nothing is written.

    Two more calls are made while groups are blocked, and two while breakers are open (three for more than 60 groups),
    and one for each further 100 jobs that run or groups that are parked. `groups`, `runs` and `failures` limit the
    length of each list. Groups are read a page at a time: pass the `cursor` of the previous survey, and in `also` those
    of its groups that should stay in view. With partitions, each of them takes that many calls.
    """
    for name, limit in (("groups", groups), ("runs", runs), ("failures", failures)):
        whole(limit, name, 0, MOST_SURVEYED)
    text(cursor, "cursor")
    counts, paused = queue._counts()
    stats = queue._call(commands.stats())
    _, minutes = queue._call(commands.series(_AN_HOUR))
    found = queue._call(commands.survey(cursor, also, groups=groups, runs=runs, failures=failures))
    # One call for each 100 jobs that run or groups that are parked, and at least one.
    waits = longest_waits(queue._call)
    blocked = groups_of(queue._call, "blocked", groups) if stats.blocked else []
    breakers = groups_of(queue._call, "opened", groups) if stats.opened else []
    return survey_of(counts, stats, minutes, found, waits, blocked, breakers, paused=paused)


def counts(queue: QueueMethods) -> tuple[JobCounts, bool]:
    """The counts, and whether the queue is paused."""
    active, waiting, delayed, completed, failed, groups, paused, *_ = queue._call(commands.counts())
    return JobCounts(active, waiting, delayed, completed, failed, active + waiting + delayed, groups), paused == 1
