"""S1, S2 and S11: every added job exists once, with the data it was added with, and ended for a justified reason."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.finding import Finding
from tests.chaos.checker.parts import Action, Event, Life, Run, Spec
from tests.chaos.checker.story import Story

KEPT = 400
"""Completed jobs that each queue keeps."""
MARGIN = 0.05
REMOVERS = ("remove", "cancel", "cancel_group", "clean", "purge")
STOPPERS = ("fail", "cancel", "cancel_group")


def check(story: Story) -> Iterator[Finding]:
    yield from nothing_lost(story)
    yield from ends_are_justified(story)
    yield from no_phantoms(story)
    yield from payloads(story)
    yield from same_id_same_job(story)


def nothing_lost(story: Story) -> Iterator[Finding]:
    lives = {(life.q, life.id, life.created): life for life in story.lives}
    for spec in story.specs:
        if not spec.acked or spec.ack is None:
            continue
        life = lives.get((spec.q, spec.ack["id"], spec.ack["created"]))
        name = f"{spec.q}: job {spec.ack['id']!r} of group {spec.told.get('group_id')!r}"
        if life is None:
            yield Finding("S1", f"{name} was acknowledged {story.when(spec.t1)}, but the log does not contain it")
        elif life.last_end is None:
            last = life.events[-1]
            yield Finding("S1", f"{name} never ended; its last event is {last.kind!r} {story.when_ms(last.at)}")


def ends_are_justified(story: Story) -> Iterator[Finding]:
    """A job ends because a handler or an operator ended it, its ttl was over, or its attempts were used up."""
    by_queue: dict[str, list[Action]] = defaultdict(list)
    for action in story.actions:
        by_queue[action.q].append(action)
    for life in story.lives:
        for event in life.events:
            if event.kind == "removed" and not _asked_for(story, life, event, by_queue[life.q], REMOVERS):
                yield Finding("S1", f"{life} was removed {story.when_ms(event.at)}, but no operator asked for that")
            elif event.kind == "failed" and (why := _why_not_failed(story, life, event, by_queue[life.q])):
                yield Finding("S1", f"{life} failed {story.when_ms(event.at)} ({event.reason}): {why}")


def _asked_for(story: Story, life: Life, event: Event, actions: list[Action], what: tuple[str, ...]) -> bool:
    t = story.mono(event.at)
    return any(
        action.what in what
        and action.t0 - MARGIN <= t <= action.t1 + MARGIN
        and action.told.get("job", life.id) == life.id
        and action.told.get("group", life.group) == life.group
        for action in actions
    )


def _why_not_failed(story: Story, life: Life, event: Event, actions: list[Action]) -> str | None:
    """The reason why a failure is not justified; None if it is."""
    reason = event.reason or ""
    run = next((run for run in reversed(life.runs) if run.at <= event.at and run.attempt == event.attempt), None)
    if reason.startswith("expired"):
        # If a job was neither acknowledged nor ever ran, the add that made it is not known.
        return None if life.spec is None or "ttl" in life.spec.told else "it had no ttl"
    if reason == "by the operator":
        return None if _asked_for(story, life, event, actions, ("fail",)) else "no operator asked for that"
    if reason == "cancelled":
        # The handler is stopped first, so this may be recorded long after the operator asked.
        asked = [
            a
            for a in actions
            if a.what in ("cancel", "cancel_group")
            and a.t0 - MARGIN <= story.mono(event.at)
            and (a.told.get("job") == life.id or a.told.get("group") == (life.group or ""))
        ]
        return None if asked else "no operator asked for that"
    if run is not None and run.how == "gave up":
        return None
    limit = _most_attempts(life)
    if event.attempt is not None and limit is not None and event.attempt >= limit:
        return None
    return f"after attempt {event.attempt} of {limit}"


def _most_attempts(life: Life) -> int | None:
    if life.spec is not None and "max_attempts" in life.spec.told:
        return int(life.spec.told["max_attempts"])
    return life.runs[0].max if life.runs else 8


def no_phantoms(story: Story) -> Iterator[Finding]:
    known = {(spec.q, spec.uid) for spec in story.specs}
    repeats = {f"tick:{line['key']}" for line in story.of_kind("repeating")}
    born = {(life.q, life.id, life.created) for life in story.lives}
    for run in story.runs:
        if (run.q, run.uid) not in known and run.uid not in repeats:
            yield Finding("S2", f"{run.q}: {run} started {story.when(run.start)}, but was never added")
        elif (run.q, run.job, run.created) not in born:
            yield Finding("S2", f"{run.q}: {run} started {story.when(run.start)}; the log contains no such job")
    unsure = Counter(spec.q for spec in story.specs if spec.ack is None)
    unclaimed: dict[str, list[Life]] = defaultdict(list)
    for life in story.lives:
        if life.created == -1:
            yield Finding("S2", f"{life}: the log has its {life.events[0].kind!r} event, but no `added` before it")
        elif life.spec is None and life.q != "ticks":
            unclaimed[life.q].append(life)
    for q, lives in unclaimed.items():
        if len(lives) > unsure[q]:
            yield Finding("S2", f"{q}: {len(lives)} jobs that were never added, such as {lives[0].id!r}")


def payloads(story: Story) -> Iterator[Finding]:
    """Data, group, priority and order of each run are those that were added, or that an operator gave it."""
    edits: dict[tuple[str, str], list[Action]] = defaultdict(list)
    for action in story.actions:
        if action.what == "update_data":
            edits[action.q, action.told["uid"]].append(action)
    for life in story.lives:
        spec = life.spec
        if spec is None:
            continue
        for run in life.runs:
            yield from _as_added(story, life, run, spec, edits.get((run.q, run.uid), []))


def _as_added(story: Story, life: Life, run: Run, spec: Spec, edits: list[Action]) -> Iterator[Finding]:
    told, where = spec.told, f"{life}, run {story.when(run.start)}"
    right = {told["digest"]} | {edit.told["digest"] for edit in edits}
    if run.uid != spec.uid or run.digest not in right:
        yield Finding("S2", f"{where}: its data are not what was added")
    elif any(_too_old(story, run, edit, edits) for edit in edits):
        yield Finding("S2", f"{where}: its data are from before an update that was acknowledged")
    if run.group != told.get("group_id") or run.priority != told.get("priority", 0):
        yield Finding("S2", f"{where}: group {run.group!r}, priority {run.priority} are not what was added")
    if "order_ms" in told and run.order != told["order_ms"]:
        yield Finding("S2", f"{where}: its order {run.order} is not the one that was added, {told['order_ms']}")


def _too_old(story: Story, run: Run, edit: Action, edits: list[Action]) -> bool:
    """Whether a run that was granted after an update has neither that data nor that of a later update."""
    if not edit.known or story.ms(edit.t1) + 1 >= run.at:
        return False
    return run.digest not in {other.told["digest"] for other in edits if other.t1 >= edit.t0}


def same_id_same_job(story: Story) -> Iterator[Finding]:
    by_id: dict[tuple[str, str], list[Life]] = defaultdict(list)
    by_uid: dict[tuple[str, str], set[tuple[str, int]]] = defaultdict(set)
    ended = {q: [e.n for e in log if e.kind == "completed"] for q, log in story.events.items()}
    for life in story.lives:
        by_id[life.q, life.id].append(life)
        for run in life.runs:
            if not run.uid.startswith("tick:"):
                by_uid[run.q, run.uid].add((life.id, life.created))
    for lives in by_id.values():
        for first, second in pairwise(lives):
            began = story.when_ms(second.created)
            if first.last_end is None:
                yield Finding("S11", f"{first} was added again {began}, while it was still there")
            elif _is_kept(story, first, second, ended[first.q]):
                yield Finding("S11", f"{first} was added again {began}, though it was kept and its id was taken")
            elif (early := _stays_taken(first, second)) > 1:
                yield Finding("S11", f"{first} was added again {began}, {early:.0f} ms before its id was free")
    for (q, uid), born in by_uid.items():
        if len(born) > 1:
            yield Finding("S11", f"{q}: one add of {uid} made {len(born)} jobs: {sorted(born)}")
    for spec in story.specs:
        if spec.ack is not None and spec.ack["dup"] and (spec.q, spec.uid) in by_uid:
            yield Finding("S11", f"{spec.q}: {spec.uid} ran, though its add was answered with another job's")
    yield from _twice_acknowledged(story)


def _twice_acknowledged(story: Story) -> Iterator[Finding]:
    acked: dict[tuple[str, str, int], Spec] = {}
    for spec in story.specs:
        if spec.acked and spec.ack is not None:
            key = (spec.q, spec.ack["id"], spec.ack["created"])
            if key in acked:
                yield Finding("S11", f"{spec.q}: job {key[1]!r} was acknowledged to two adds as their own")
            acked[key] = spec


def _stays_taken(first: Life, second: Life) -> float:
    """Milliseconds before the end of `unique_for` at which the id was used again; removing a job frees its id."""
    told = first.spec.told if first.spec is not None else {}
    if "unique_for" not in told or first.state not in ("completed", "failed") or first.last_end is None:
        return 0.0
    return float(first.last_end.at + told["unique_for"] * 1000 - second.created)


def _is_kept(story: Story, first: Life, second: Life, completed: list[int]) -> bool:
    """Whether the first job was still stored when the second was added: neither removed, cleaned nor trimmed."""
    if first.state not in ("completed", "failed"):
        return False
    ended, began = story.mono(first.events[-1].at), story.mono(second.created)
    cleaned = (a for a in story.actions if a.q == first.q and a.what == "clean" and a.told["state"] == first.state)
    if any(action.t1 >= ended - MARGIN and action.t0 <= began + MARGIN for action in cleaned):
        return False
    later = bisect_left(completed, second.arrival) - bisect_left(completed, first.events[-1].n + 1)
    return first.state == "failed" or later < KEPT // 2
