"""L1, L2, L3 and L5: work continues after faults. H: the history is complete enough to prove anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.checker import causes
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.parts import ENDS, Life, Run
from tests.chaos.checker.story import Story

SLACK = 5.0
"""Seconds of delay allowed for an overloaded machine."""
BOUND = causes.LEASE + 1 + SLACK
BACK_OFF = 22.0
"""Seconds: the longest pause between two tries of a worker, plus two."""

PARTING = 1.5
"""Seconds beyond its limit that a closing worker may take: one to report, and half of one for a busy machine."""


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    yield from taken_back(story, notes)
    yield from drained(story)
    yield from back_at_work(story, notes)
    yield from closed_in_time(story)
    yield from complete(story)


def taken_back(story: Story, notes: Notes) -> Iterator[Finding]:
    """L1: within the lease and a second of a worker's death, its job is taken back, or has started again."""
    lives = {(life.q, life.id, life.created): life for life in story.lives}
    paused = {action.q for action in story.actions if action.what in ("pause", "pause_group")}
    care = causes.Care(story)
    over = max((line["t"] for line in story.of_kind("healed")), default=0.0)
    for run in story.runs:
        died = story.killed.get(run.pid)
        if died is None or run.end <= died or run.start > died:
            continue
        life = lives.get((run.q, run.job, run.created))
        if life is not None and _was_ended(story, life, run, died):
            continue
        sign = None if life is None else _first_sign(story, life, run, died)
        if sign is None:
            # A prefetched job may have returned, without an event, to a group that was paused.
            if run.q not in paused and died < over - causes.LEASE - SLACK:
                yield Finding("L1", f"{run.q}: {run}, whose worker died {story.when(died)}, was never taken back")
            continue
        notes.recoveries.append(sign - died)
        if sign - died > BOUND and care.seconds(run.q, died + causes.LEASE, sign) > 1 + SLACK:
            took = f"after {sign - died:.1f} s"
            yield Finding("L1", f"{run.q}: {run}, whose worker died {story.when(died)}, was taken back {took}")


def _was_ended(story: Story, life: Life, run: Run, died: float) -> bool:
    """Whether the job had ended during the run, before its worker died, so that nothing is left to be taken back."""
    return any(e.kind in ENDS and e.at >= run.at and story.mono(e.at) < died for e in life.events)


def _first_sign(story: Story, life: Life, run: Run, died: float) -> float | None:
    signs = [story.mono(e.at) for e in life.events if e.kind != "active" and story.mono(e.at) >= died]
    signs += [story.mono(other.at) for other in life.runs if other.fence > run.fence]
    return min(signs, default=None)


def drained(story: Story) -> Iterator[Finding]:
    for line in story.of_kind("drained"):
        if not line["answer"]:
            yield Finding("L2", f"not everything was done {line['took']:.0f} s after the last fault")
    for line in story.of_kind("left"):
        for job in line["live"][:10]:
            yield Finding("L2", f"{line['q']}: {job} is left after the drain")


def back_at_work(story: Story, notes: Notes) -> Iterator[Finding]:
    """L3: after the server is back every worker process starts a job again, however long its pauses had become."""
    restarts = [fault for fault in story.faults if fault.kind in ("restart", "failover", "move")]
    starts: dict[int, list[float]] = defaultdict(list)
    for run in story.runs:
        starts[run.pid].append(run.start)
    spawned = {line["of"]: line["t"] for line in story.of_kind("spawn") if line["role"] == "worker"}
    over = max((line["t"] for line in story.of_kind("healed")), default=0.0)
    for fault in restarts:
        for pid, since in spawned.items():
            until = min(story.killed.get(pid, over), story.gone.get(pid, over), over)
            if since > fault.t0 or until < fault.t1:
                continue
            first = next((t for t in starts[pid] if t > fault.t1), None)
            if first is not None:
                notes.returns.append(first - fault.t1)
            bound = fault.t1 + BACK_OFF + SLACK
            if (first is None or first > bound) and until > bound and not _struck(story, pid, fault.t1, bound):
                yield Finding("L3", f"worker process {pid} started nothing after the server's return, {fault.t1:.1f}")


def _struck(story: Story, pid: int, since: float, until: float) -> bool:
    faults = [*story.faults_of.get(pid, ()), *story.faults_of.get("server", ())]
    return any(since < fault.t1 and fault.t0 <= until for fault in faults)


def closed_in_time(story: Story) -> Iterator[Finding]:
    for line in story.of_kind("closed"):
        starved = sum(s["t"] - s["since"] for s in story.of_kind("starved") if s["pid"] == line["pid"])
        if line["took"] > line["within"] + PARTING + starved:
            yield Finding("L5", f"{line['actor']} took {line['took']:.2f} s to close within {line['within']} s")
    for kind in ("all left", "over"):
        for line in story.of_kind(kind):
            for name in line["late"]:
                yield Finding("L5", f"{name} did not exit when it was asked to")


def complete(story: Story) -> Iterator[Finding]:
    for log in story.events.values():
        for event in log:
            if event.kind == "gap":
                yield Finding("H", f"{event.q}: events are missing {story.when_ms(event.at)}")
    if not story.of_kind("heard all"):
        yield Finding("H", "the recorder did not read the logs to their end")
    for line in story.of_kind("exit"):
        if line["code"] not in (0, -9, 14, -15) and line["of"] not in story.killed:
            yield Finding("H", f"{line['name']} ended with code {line['code']}; see its log")
