"""S19: with `on_failed="hold"`, a job that failed for good blocks its group until a person resolves it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.parts import Event
from tests.chaos.checker.story import Story

HOLDING = ("strict",)
DECISIONS = ("skip", "retry", "retry_many", "remove", "resume_group")
CANCELS = ("cancel", "cancel_group")
MARGIN = 0.05
"""Seconds by which the clocks of the server and of the operator may differ."""


class Block(NamedTuple):
    since: int
    until: float
    job: str | None


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    for q in HOLDING:
        blocks: dict[str, list[Block]] = defaultdict(list)
        yield from _blocks(story, q, blocks)
        notes.blocks += sum(map(len, blocks.values()))
        yield from _nothing_is_granted(story, q, blocks)
        yield from _every_failure_blocks(story, q, blocks)


def _blocks(story: Story, q: str, blocks: dict[str, list[Block]]) -> Iterator[Finding]:
    """Collect the times for which each group was blocked, and report blocks that ended without an action that
    resolves them."""
    begun: dict[str, Event] = {}
    for event in story.events.get(q, ()):
        group = event.group or ""
        if event.kind == "blocked":
            if group in begun:
                yield Finding("S19", f"{q}, group {group!r} was blocked again {story.when_ms(event.at)}")
            begun.setdefault(group, event)
        elif event.kind == "unblocked":
            first = begun.pop(group, None)
            if first is None:
                yield Finding(
                    "S19", f"{q}, group {group!r} was unblocked {story.when_ms(event.at)}, but was not blocked"
                )
                continue
            blocks[group].append(Block(first.at, event.at, first.job))
            if not _decided(story, event):
                text = f"{q}, group {group!r} was unblocked {story.when_ms(event.at)}, and nobody had decided"
                yield Finding("S19", text)
    for group, first in begun.items():
        blocks[group].append(Block(first.at, math.inf, first.job))


def _decided(story: Story, event: Event) -> bool:
    t = story.mono(event.at)
    return any(
        action.q == event.q
        and action.what in DECISIONS
        and action.t0 - MARGIN <= t <= action.t1 + MARGIN
        and action.told.get("job", event.job) == event.job
        and action.told.get("group", event.group) == event.group
        for action in story.actions
    )


def was_cancelled(story: Story, event: Event, granted: int) -> bool:
    """Whether a person cancelled the run that failed.

    A handler that raises on its own right after its job was cancelled reports its own reason, so the operator's
    action decides in that case.
    """
    return event.reason == "cancelled" or any(
        action.q == event.q
        and action.what in CANCELS
        and action.t0 - MARGIN <= story.mono(event.at)
        and action.t1 + MARGIN >= story.mono(granted)
        and action.told.get("job", event.job) == event.job
        and action.told.get("group", event.group) == event.group
        for action in story.actions
    )


def _nothing_is_granted(story: Story, q: str, blocks: dict[str, list[Block]]) -> Iterator[Finding]:
    for run in story.runs:
        if run.q != q:
            continue
        for block in blocks.get(run.group or "", ()):
            if block.since < run.at < block.until:
                by = f"job {block.job!r} had blocked it {story.when_ms(block.since)}"
                yield Finding("S19", f"{q}, group {run.group!r}: {run} was granted {story.when_ms(run.at)}; {by}")


def _every_failure_blocks(story: Story, q: str, blocks: dict[str, list[Block]]) -> Iterator[Finding]:
    """Check that each failure blocked its group, except those of jobs that a person cancelled or that have no group."""
    granted: dict[str | None, int] = {}
    for event in story.events.get(q, ()):
        if event.kind == "active":
            granted[event.job] = event.at
        if event.kind != "failed" or event.group is None or was_cancelled(story, event, granted.get(event.job, 0)):
            continue
        if not any(block.since <= event.at <= block.until for block in blocks.get(event.group, ())):
            text = f"{q}: job {event.job!r} failed {story.when_ms(event.at)}, and its group {event.group!r} went on"
            yield Finding("S19", text)
