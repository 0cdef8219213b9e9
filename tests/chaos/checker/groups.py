"""S4, S7 and S8: the concurrency and order of a group, the sort key of a job that comes back, exclusive queues."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.chaos.checker.batches import BATCHED, same_batch
from tests.chaos.checker.causes import LEASE
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.parts import Event, Life, Run
from tests.chaos.checker.story import Limits, Story

EXCLUSIVE = ("solo",)
Key = tuple[int, int, int]


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    yield from overlaps(story, notes)
    yield from turns(story, notes)
    yield from order(story, notes)


def _last_moment(story: Story, run: Run) -> float:
    """The latest moment at which a run can have ended. A child process that was killed during its run leaves no
    line."""
    if run.end < math.inf:
        return run.end
    dead: float = min(story.killed.get(run.pid, math.inf), story.gone.get(run.pid, math.inf))
    return min(dead, run.start) if run.actor == "children" else dead


def _accepted(story: Story) -> dict[int, Event]:
    return {
        event.fence: event for life in story.lives for event in life.events if event.fence is not None
    }  # fences are unique


def _lease_was_over(older: Run, newer: Run, accepted: dict[int, Event]) -> bool:
    """Whether the older run's lease may have expired before the newer was granted, and no event contradicts that."""
    if newer.at - older.at < LEASE * 1000 - 50:
        return False
    outcome = accepted.get(older.fence)
    return outcome is None or outcome.at < newer.at


def overlaps(story: Story, notes: Notes) -> Iterator[Finding]:
    limits, accepted = Limits(story), _accepted(story)
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in story.runs:
        if run.group is not None:
            groups[run.q, run.group].append(run)
    for (q, group), runs in groups.items():
        alive: list[tuple[float, Run]] = []
        for run in sorted(runs, key=lambda run: run.start):
            alive = [(until, other) for until, other in alive if until > run.start]
            beside = []
            for _, other in alive:
                older, newer = sorted((other, run), key=lambda r: r.fence)
                if _lease_was_over(older, newer, accepted):
                    notes.zombies += 1
                else:
                    beside.append(other)
            limit = limits.most(q, group, story.mono(run.at) - 0.05, run.start)
            if len(beside) >= limit:
                others = ", ".join(map(str, beside))
                yield Finding("S4", f"{q}, group {group!r}: {run} started {story.when(run.start)} beside {others}")
            alive.append((_last_moment(story, run), run))


def turns(story: Story, notes: Notes) -> Iterator[Finding]:
    """S4: in an exclusive queue jobs run on one worker at a time."""
    accepted = _accepted(story)
    for q in EXCLUSIVE:
        alive: list[tuple[float, Run]] = []
        for run in sorted((run for run in story.runs if run.q == q), key=lambda run: run.start):
            alive = [(until, other) for until, other in alive if until > run.start]
            for _, other in alive:
                older, newer = sorted((other, run), key=lambda r: r.fence)
                if other.worker != run.worker and not _lease_was_over(older, newer, accepted):
                    yield Finding("S4", f"{q} is exclusive: {run} started {story.when(run.start)} beside {other}")
            alive.append((_last_moment(story, run), run))


class Presence(NamedTuple):
    """A time in which a job was certainly there and had not ended: no job behind it may be granted in that time."""

    since: float
    until: float
    key: Key
    life: Life


def order(story: Story, notes: Notes) -> Iterator[Finding]:
    """S7, S8: while a job waits, runs or is in its back-off, no job with a larger sort key is granted."""
    wide = {(a.q, a.told["group"]) for a in story.actions if a.what == "set_group_concurrency"}
    groups: dict[tuple[str, str], list[Life]] = defaultdict(list)
    for life in story.lives:
        if life.group is not None and (life.q, life.group) not in wide:
            groups[life.q, life.group].append(life)
    for lives in groups.values():
        presences = [presence for life in lives for presence in _presences(story, life)]
        grants = [(run, life) for life in lives for run in life.runs]
        yield from _inversions(story, presences, grants, notes)


def _inversions(
    story: Story, presences: list[Presence], grants: list[tuple[Run, Life]], notes: Notes
) -> Iterator[Finding]:
    presences.sort(key=lambda p: p.since)
    grants.sort(key=lambda grant: grant[0].at)
    waiting: list[tuple[Key, float, int, Presence]] = []
    joined = 0
    for run, life in grants:
        while joined < len(presences) and presences[joined].since < run.at:
            p = presences[joined]
            heapq.heappush(waiting, (p.key, p.until, joined, p))
            joined += 1
        while waiting and waiting[0][1] <= run.at:
            heapq.heappop(waiting)
        notes.compared += 1
        key = (run.priority, run.order, life.arrival)
        first = _first_before(waiting, run, key)
        if first is not None and first.life is not life:
            ran = any(other.at < run.at for other in first.life.runs)
            where = f"{run.q}, group {run.group!r}: {run} was granted {story.when_ms(run.at)}"
            why = f"before {first.life.id!r}, which was there since {story.when_ms(first.since)}"
            keys = f"(sort keys {key} and {first.key})"
            yield Finding("S8" if ran else "S7", f"{where} {why}{', had run,' if ran else ''} and had not ended {keys}")


def _first_before(waiting: list[tuple[Key, float, int, Presence]], run: Run, key: Key) -> Presence | None:
    """The first job in front of this one. Jobs of its own batch do not count."""
    if run.q not in BATCHED:
        return waiting[0][3] if waiting and waiting[0][0] < key else None
    before = (p for k, until, _, p in sorted(waiting, key=lambda one: one[0]) if k < key and until > run.at)
    return next((p for p in before if not any(same_batch(other, run) for other in p.life.runs)), None)


def _presences(story: Story, life: Life) -> Iterator[Presence]:
    key, due = _key(life), joined(life)
    if key is None or due is None:
        return
    since, until = due, story.ms(life.moved)
    yields = life.spec is not None and life.spec.told.get("on_retry") == "yield"
    for event in life.events:
        if event.kind in ("completed", "failed", "removed") or (event.kind == "retrying" and yields):
            yield Presence(since, min(event.at, until), key, life)
            since = math.inf
        elif event.kind == "redriven":
            since = event.at
    if since < math.inf:
        yield Presence(since, until, key, life)


def _key(life: Life) -> Key | None:
    """Priority, order, arrival: those of the first run, which come from the server, or else those acknowledged."""
    if life.runs and life.moved == math.inf:
        return life.runs[0].priority, life.runs[0].order, life.arrival
    spec = life.spec
    if spec is None or spec.ack is None or spec.ack["order"] is None:
        return None
    return spec.told.get("priority", 0), spec.ack["order"], life.arrival


def joined(life: Life) -> float | None:
    """When it joined its group, by the server's clock; None if that is not known."""
    if life.q == "ticks":
        return life.created
    if life.spec is None:
        return None
    told = life.spec.told
    return float(max(life.created, life.created + told.get("delay", 0) * 1000, told.get("run_at", 0)))
