"""S9: a group rests while its breaker is open, and a snoozed job does not come back before the time it asked for."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.blocking import was_cancelled
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.parts import Event, Life, Run
from tests.chaos.checker.story import Story

BREAKERS = {"shaky": (3, 400)}
"""Failures in a row, and milliseconds of rest."""
FORGOTTEN = 10
"""The count of failures starts again when this many cooldowns have passed since the last one."""
MARGIN = 2.0
"""Milliseconds by which the conversion between the two clocks may be off."""


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    for q in BREAKERS:
        yield from _rests(story, q, notes)
    for life in story.lives:
        yield from _sleeps(story, life)


def _rests(story: Story, q: str, notes: Notes) -> Iterator[Finding]:
    """Counts only failures that certainly count, so the real breaker may open earlier than computed here."""
    failures, rest = BREAKERS[q]
    open_since: dict[str, list[int]] = defaultdict(list)
    in_a_row: dict[str, int] = defaultdict(int)
    last: dict[str, int] = {}
    granted: dict[str | None, int] = {}
    for event in story.events.get(q, ()):
        group = event.group
        if event.kind == "active":
            granted[event.job] = event.at
        if group is None:
            continue
        if event.kind == "completed":
            in_a_row[group] = 0
        elif _failed(event) and not was_cancelled(story, event, granted.get(event.job, 0)):
            if event.at - last.get(group, event.at) >= rest * FORGOTTEN:
                in_a_row[group] = 0
            in_a_row[group] += 1
            last[group] = event.at
            if in_a_row[group] >= failures:
                open_since[group].append(event.at)
    notes.rests += sum(map(len, open_since.values()))
    for run in story.runs:
        if run.q == q and run.group is not None:
            yield from _in_rest(story, run, open_since.get(run.group, []), rest)


def _failed(event: Event) -> bool:
    """Whether a run failed. A `failed` without a fence may come from an operator or from a ttl."""
    return event.kind in ("retrying", "stalled") or (event.kind == "failed" and event.fence is not None)


def _in_rest(story: Story, run: Run, opened: list[int], rest: int) -> Iterator[Finding]:
    for since in opened:
        if since < run.at < since + rest - 1:
            early = f"{run.at - since} ms after its breaker opened for {rest} ms"
            yield Finding("S9", f"{run.q}, group {run.group!r}: {run} was granted {story.when_ms(run.at)}, {early}")


def _sleeps(story: Story, life: Life) -> Iterator[Finding]:
    """The snooze starts when the server receives the outcome, which is after the handler ended."""
    told = life.spec.told if life.spec is not None else {}
    if "snooze" not in told:
        return
    for before, run in pairwise(life.runs):
        wakes = story.ms(before.end) + told["snooze"] * 1000 - MARGIN
        if before.how != "snoozed" or run.at >= min(wakes, story.ms(life.moved) - MARGIN):
            continue
        # Its lease was over, or an operator ended it: the server never received the snooze.
        unreported = before.lost is not None or any(
            event.kind in ("stalled", "failed", "redriven") and before.at <= event.at <= run.at for event in life.events
        )
        # The job may have been given back because its worker died or was cut off before it could report the snooze.
        if not unreported and not _given_back(story, before, story.mono(run.at)):
            yield Finding("S9", f"{life}: {run} was granted {wakes - run.at:.0f} ms before its snooze was over")


def _given_back(story: Story, run: Run, until: float) -> bool:
    """Whether its worker may have ended between the end of the handler and its report."""
    gone = min(story.killed.get(run.pid, math.inf), story.gone.get(run.pid, math.inf))
    return gone <= until or any(line["pid"] == run.pid and line["t"] <= until for line in story.of_kind("closing"))
