"""S9, S12 and S13: delays, windows, ttls and rates hold, every tick makes one job, nothing starts while paused."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.batches import Beginnings
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.parts import ENDS, Action, Life, Run
from tests.chaos.checker.story import Story

WINDOWS = {"window": 200}
"""Window of each queue that is ordered by event time, in milliseconds."""
RATES = {"metered": (25, 500)}
"""Rate limit of each queue: the number of starts allowed, and the milliseconds in which they are counted."""
LATE = 10_000
"""Milliseconds before the removal of a repeating job in which a tick may not have been added yet."""
HANDING_OVER = {"threads": 250.0, "children": 250.0}
"""Milliseconds that a busy machine may take between a worker's decision to begin a run and the first line of its
handler in another thread or process, by actor."""
BEGINNING = 10.0
"""The same for a handler in the event loop, which another thread may interrupt."""
MARGIN = 2.0
"""Milliseconds by which the conversion between the two clocks may be off: the server reports whole milliseconds."""


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    beginnings = Beginnings(story.runs)
    for life in story.lives:
        yield from never_early(story, life)
        yield from never_too_late(story, life)
        yield from nothing_after_removal(story, life)
        yield from nothing_begins_after_it_was_ended(story, life, beginnings)
    yield from rates(story)
    yield from nothing_while_paused(story, beginnings)
    yield from ticks(story, notes)


def never_early(story: Story, life: Life) -> Iterator[Finding]:
    moved = story.ms(life.moved) - MARGIN
    told = life.spec.told if life.spec is not None else {}
    due = max(life.created + told.get("delay", 0) * 1000, told.get("run_at", 0))
    redriven = min((event.at for event in life.events if event.kind == "redriven"), default=math.inf)
    for run in life.runs:
        if run.at < due - 1 and run.at < min(moved, redriven):
            yield Finding("S9", f"{life} was granted {story.when_ms(run.at)}, {due - run.at:.0f} ms early")
        if run.q in WINDOWS and run.group is not None and run.at < run.order + WINDOWS[run.q]:
            yield Finding("S9", f"{life} was granted {story.when_ms(run.at)}, inside its window")
    for event in life.events:
        if event.kind != "retrying" or event.delay is None:
            continue
        opens = event.at + event.delay * 1000
        after = (run for run in life.runs if run.at >= event.at and run.attempt == (event.attempt or 0) + 1)
        following = next(after, None)
        redriven = any(e.kind == "redriven" and e.at >= event.at for e in life.events)
        if following is not None and following.at < min(opens - 1, moved) and not redriven:
            early = f"{opens - following.at:.0f} ms before the end of its back-off"
            yield Finding("S9", f"{life}: {following} was granted {early}")


def never_too_late(story: Story, life: Life) -> Iterator[Finding]:
    """A job with a ttl starts within it or not at all. A job that has started once may run again at any time."""
    told = life.spec.told if life.spec is not None else {}
    starts = [run.at for run in life.runs] + [event.at for event in life.events if event.kind == "active"]
    if "ttl" not in told or not starts or any(event.kind == "redriven" for event in life.events):
        return
    due = max(life.created + told.get("delay", 0) * 1000, told.get("run_at", 0), life.created)
    late = min(starts) - due - told["ttl"] * 1000
    if late > 1 and min(starts) < story.ms(life.moved):
        yield Finding("S9", f"{life} was granted {story.when_ms(min(starts))}, {late:.0f} ms after its ttl was over")


def nothing_after_removal(story: Story, life: Life) -> Iterator[Finding]:
    gone = next((event for event in life.events if event.kind == "removed"), None)
    if gone is None:
        return
    for run in life.runs:
        if run.at > gone.at:
            yield Finding("S13", f"{life} was removed {story.when_ms(gone.at)}; {run} was granted after that")


def _began(story: Story, run: Run, beginnings: Beginnings) -> float:
    """When its worker decided at the latest to begin this run, in milliseconds."""
    return story.ms(beginnings.of(run)) - HANDING_OVER.get(run.actor, BEGINNING)


def nothing_begins_after_it_was_ended(story: Story, life: Life, beginnings: Beginnings) -> Iterator[Finding]:
    """A job that was granted before an operator ended it does not begin after the operator got the answer."""
    for event in life.events:
        if event.kind not in ("removed", "failed"):
            continue
        late = [run for run in life.runs if run.at <= event.at < story.ms(run.start)]
        if not late:
            continue
        for action in story.actions_on(life, "remove", "fail", "cancel"):
            if action.known and story.ms(action.t0) - MARGIN <= event.at <= story.ms(action.t1) + MARGIN:
                for run in late:
                    if _began(story, run, beginnings) > story.ms(action.t1):
                        yield Finding("S13", f"{life}: {run} began after {action.what} had returned")


def rates(story: Story) -> Iterator[Finding]:
    for q, (count, per) in RATES.items():
        starts = sorted(run.at for run in story.runs if run.q == q)
        for first, last in zip(starts, starts[count:], strict=False):
            if last - first <= per:
                yield Finding("S9", f"{q}: {count + 1} starts within {last - first} ms, {story.when_ms(first)}")


def nothing_while_paused(story: Story, beginnings: Beginnings) -> Iterator[Finding]:
    pauses: dict[tuple[str, str | None], list[tuple[float, float]]] = defaultdict(list)
    begun: dict[tuple[str, str | None], Action] = {}
    for action in sorted(story.actions, key=lambda action: action.t0):
        key = (action.q, action.told.get("group"))
        if action.what in ("pause", "pause_group") and action.known:
            begun.setdefault(key, action)
        elif action.what in ("resume", "resume_group") and key in begun:
            pauses[key].append((story.ms(begun.pop(key).t1) + MARGIN, story.ms(action.t0) - MARGIN))
    if not pauses:
        return
    for run in story.runs:
        for key in ((run.q, None), (run.q, run.group)):
            for since, until in pauses.get(key, ()):
                if since < run.at < until:
                    yield Finding("S13", f"{run.q}: {run} was granted {story.when_ms(run.at)}, while it was paused")
                elif run.at <= since < _began(story, run, beginnings) < until:
                    yield Finding("S13", f"{run.q}: {run} began {story.when(run.start)}, while it was paused")


def ticks(story: Story, notes: Notes) -> Iterator[Finding]:
    """Each tick of a repeating job, from its definition to its removal, has one job, and all ticks are on its grid."""
    repeats = {line["key"]: line for line in story.of_kind("repeats") if line["answer"] == "ok"}
    ended = {a.told["key"]: a for a in story.actions if a.what == "remove_repeating_job"}
    found = _ticks_by_key(story)
    for key, line in repeats.items():
        start, every = line["start"], line["every"]
        seen = found.get(key, set())
        notes.ticks += len(seen)
        for tick in seen:
            if (tick - start) % every:
                yield Finding("S12", f"repeat {key!r}: tick {tick} is {(tick - start) % every} ms off its grid")
        if line.get("alone"):
            yield from _one_at_a_time(story, key)
            continue
        if key not in ended:
            continue
        since = min(story.ms(other["t"]) for other in story.of_kind("repeats") if other["key"] == key)
        first = start + max(0, -(-int(since + 1 - start) // every)) * every
        until = story.ms(ended[key].t0) - LATE
        missed = [tick for tick in range(first, int(until), every) if tick not in seen]
        for tick in missed:
            yield Finding("S12", f"repeat {key!r}: the tick {story.when_ms(tick)} has no job")


def _one_at_a_time(story: Story, key: str) -> Iterator[Finding]:
    """With overlap="skip" an occurrence is added only after the previous one has ended, even if that was redriven."""
    prefixes = {run.job.rpartition(":")[0] for run in story.runs if run.uid == f"tick:{key}"}
    lives = [life for life in story.lives if life.q == "ticks" and life.id.rpartition(":")[0] in prefixes]
    for before, life in pairwise(sorted(lives, key=lambda life: life.arrival)):
        if not any(event.kind in ENDS and event.at <= life.created for event in before.events):
            text = f"the tick {story.when_ms(life.created)} added {life.id!r}, while {before.id!r} was live"
            yield Finding("S12", f"repeat {key!r}: {text}")


def _ticks_by_key(story: Story) -> dict[str, set[int]]:
    """The id of an occurrence ends with its tick. A tick that has two jobs shows up as an id that was added twice."""
    names: dict[str, str] = {}
    for run in story.runs:
        if run.uid.startswith("tick:"):
            names[run.job.rpartition(":")[0]] = run.uid.removeprefix("tick:")
    found: dict[str, set[int]] = defaultdict(set)
    for life in story.lives:
        prefix, _, tick = life.id.rpartition(":")
        if life.q == "ticks" and prefix in names:
            found[names[prefix]].add(int(tick))
    return found
