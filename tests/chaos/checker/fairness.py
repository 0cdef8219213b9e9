"""L4: no group that may start a job is passed over again and again while later jobs are started.

Only certain cases count: the job is the head of its group, nothing of the group is running, resting or paused, and the
job has waited longer than a worker that died or froze could have kept it prefetched, which leaves no trace in the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

from tests.chaos.checker import causes
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.groups import joined
from tests.chaos.checker.parts import Action, Event, Life, Run
from tests.chaos.checker.story import Story

FAIR = ("orders", "bulk", "ticks", "spread")
"""Queues in which nothing but pauses, back-offs and running jobs keeps a group from starting a job."""
GRACE = (causes.LEASE + 1 + 5.0) * 1000
"""Milliseconds for which a dead worker may hold a prefetched job."""
OVERTAKEN = 50
"""Later jobs that may start after that. A worker takes several jobs in one call, which is not starvation."""
STOPS = ("pause", "resume", "pause_group", "resume_group", "cancel_group", "set_group_concurrency", "promote")
RESTS = ("limited", "snoozed", "cancelled")


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    accepted = {e.fence: e for life in story.lives for e in life.events if e.fence is not None}
    births = {(life.q, life.id, life.created): life for life in story.lives}
    wide = {(a.q, a.told["group"]) for a in story.actions if a.what == "set_group_concurrency"}
    grants: dict[str, list[tuple[int, Run, float]]] = defaultdict(list)
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in story.runs:
        life = births.get((run.q, run.job, run.created))
        came = None if life is None else joined(life)
        if run.q in FAIR and came is not None:
            grants[run.q].append((run.at, run, came))
        if run.q in FAIR and run.group is not None and (run.q, run.group) not in wide:
            groups[run.q, run.group].append(run)
    for of_queue in grants.values():
        of_queue.sort(key=lambda grant: grant[0])
    events: dict[tuple[str, str | None], list[Event]] = defaultdict(list)
    for life in story.lives:
        events[life.q, life.group] += [event for event in life.events if event.kind != "added"]
    for (q, group), runs in groups.items():
        runs.sort(key=lambda run: run.fence)
        rests = _Rests(events[q, group])
        stops = [a for a in story.actions if a.q == q and a.what in STOPS and a.told.get("group", group) == group]
        for before, run in zip([None, *runs], runs, strict=False):
            life = births.get((q, run.job, run.created))
            if life is None or life.runs[0] is not run:
                continue
            since = _ready_since(story, life, run, before, accepted, rests, stops)
            if since is None:
                continue
            notes.longest_ready = max(notes.longest_ready, (run.at - since) / 1000)
            others = _overtakers(grants[q], run, since)
            if len(others) > OVERTAKEN:
                waited = f"waited {(run.at - since) / 1000:.1f} s although it was ready, since {story.when_ms(since)}"
                yield Finding("L4", f"{life} {waited}, while {len(others)} later jobs were started, {others[0]} first")


class _Rests:
    """Until when the events of a group kept it from starting a job, as of any moment."""

    def __init__(self, events: list[Event]) -> None:
        self._events = sorted(events, key=lambda event: event.at)
        self._until = list(accumulate((e.at + (e.delay or 0) * 1000 for e in self._events), max))

    def until(self, run: Run) -> float:
        """Counts events before the grant, and those of the granting call itself, which ended the previous run."""
        n = bisect_left(self._events, run.at, key=lambda event: event.at)
        found = self._until[n - 1] if n else 0.0
        while n < len(self._events) and self._events[n].at == run.at:
            event = self._events[n]
            if event.job != run.job:
                found = max(found, event.at + (event.delay or 0) * 1000)
            n += 1
        return found


def _ready_since(
    story: Story,
    life: Life,
    run: Run,
    before: Run | None,
    accepted: dict[int, Event],
    rests: _Rests,
    stops: list[Action],
) -> float | None:
    """Since when nothing kept this job from starting; None if that cannot be determined."""
    since = joined(life)
    if since is None or life.moved < story.mono(run.at):
        return None
    if before is not None:
        outcome = accepted.get(before.fence)
        if outcome is None or outcome.at > run.at or before.how in RESTS:
            return None
    since = max(since, rests.until(run))
    for action in stops:
        if story.ms(action.t0) < run.at:
            since = max(since, story.ms(min(action.t1, story.mono(run.at))))
    return since


def _overtakers(grants: list[tuple[int, Run, float]], run: Run, since: float) -> list[Run]:
    """Runs of other groups' jobs, of equal or lower priority, that joined after this one was ready."""
    first = bisect_right(grants, since + GRACE, key=lambda grant: grant[0])
    last = bisect_left(grants, run.at, key=lambda grant: grant[0])
    return [
        other
        for _, other, came in grants[first:last]
        if came > since and other.priority >= run.priority and other.group != run.group
    ]
