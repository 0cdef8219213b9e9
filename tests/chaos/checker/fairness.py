"""L4: no group that may start a job waits while jobs that came later are started, again and again.

Only what is certain counts: the first job of its group, with nothing of the group running, resting or paused, and
longer than a worker that died or froze may have had it in its prefetch, since that leaves no trace in the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.checker import causes
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.groups import joined
from tests.chaos.checker.parts import Action, Event, Life, Run
from tests.chaos.checker.story import Story

FAIR = ("orders", "bulk", "ticks", "spread")
"""Queues in which nothing but pauses, back-offs and running jobs keeps a group from its turn."""
GRACE = (causes.LEASE + 1 + 5.0) * 1000
"""Milliseconds that a job may be in the hands of a worker that is dead."""
OVERTAKEN = 50
"""Starts of later jobs after that. A worker takes some jobs along when it takes one; that is not starving."""
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
        stops = [a for a in story.actions if a.q == q and a.what in STOPS and a.told.get("group", group) == group]
        for before, run in zip([None, *runs], runs, strict=False):
            life = births.get((q, run.job, run.created))
            if life is None or life.runs[0] is not run:
                continue
            since = _ready_since(story, life, run, before, accepted, events[q, group], stops)
            if since is None:
                continue
            notes.longest_ready = max(notes.longest_ready, (run.at - since) / 1000)
            others = _overtakers(grants[q], run, since)
            if len(others) > OVERTAKEN:
                waited = f"waited {(run.at - since) / 1000:.1f} s for its turn, since {story.when_ms(since)}"
                yield Finding("L4", f"{life} {waited}, while {len(others)} later jobs were started, {others[0]} first")


def _ready_since(
    story: Story,
    life: Life,
    run: Run,
    before: Run | None,
    accepted: dict[int, Event],
    events: list[Event],
    stops: list[Action],
) -> float | None:
    """From when on nothing kept this job from its turn; None if that cannot be said."""
    since = joined(life)
    if since is None or life.moved < story.mono(run.at):
        return None
    if before is not None:
        outcome = accepted.get(before.fence)
        if outcome is None or outcome.at > run.at or before.how in RESTS:
            return None
    for event in events:
        # One call ends the run before and grants this one: both at the same time.
        if event.at < run.at or (event.at == run.at and event.job != run.job):
            since = max(since, event.at + (event.delay or 0) * 1000)
    for action in stops:
        if story.ms(action.t0) < run.at:
            since = max(since, story.ms(min(action.t1, story.mono(run.at))))
    return since


def _overtakers(grants: list[tuple[int, Run, float]], run: Run, since: float) -> list[Run]:
    """Starts of less urgent or equal jobs of other groups that joined after this one was ready."""
    first = bisect_right(grants, since + GRACE, key=lambda grant: grant[0])
    last = bisect_left(grants, run.at, key=lambda grant: grant[0])
    return [
        other
        for _, other, came in grants[first:last]
        if came > since and other.priority >= run.priority and other.group != run.group
    ]
