"""S3, S5, S6 and S10: every run has a reason and its own fence, and exactly one outcome of an attempt counts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker import causes
from tests.chaos.checker.batches import BATCHED
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.parts import Event, Life, Run
from tests.chaos.checker.story import Story

STOPPERS = ("remove", "fail", "cancel", "cancel_group", "purge")
SOON = 4.0
"""Seconds within which a living worker must learn that it lost its lease."""
SILENT = 60.0
"""Seconds of silence after which the server may forget a worker and the answers that it kept for it. A call that the
worker then resends is executed again, and refuses an outcome that it accepted the first time. This is known: the
outcome itself is stored correctly, only the answer to the worker is wrong.
"""


def check(story: Story, notes: Notes) -> Iterator[Finding]:
    yield from fences(story)
    for life in story.lives:
        yield from reasons(story, life, notes)
        yield from outcomes(story, life)
        yield from attempts(story, life)
    yield from losers_are_told(story, notes)


def fences(story: Story) -> Iterator[Finding]:
    """S5: each run has its own fence, and a fence granted later is larger."""
    by_queue: dict[str, list[Run]] = {}
    for run in story.runs:
        by_queue.setdefault(run.q, []).append(run)
    for runs in by_queue.values():
        runs.sort(key=lambda run: (run.fence, run.start))
        newest = runs[0] if runs else None
        for before, run in pairwise(runs):
            if before.fence == run.fence:
                yield Finding("S5", f"{run.q}: {run} and {before} have one fence, {story.when(run.start)}")
            if newest is not None and run.at < newest.at:
                yield Finding("S5", f"{run.q}: {run} was granted before {newest}, whose fence is smaller")
            if newest is None or run.at > newest.at:
                newest = run


def _ends_run(event: Event, run: Run) -> bool:
    """Whether this is an outcome of the run. Not every outcome names its fence: those of timeouts and stalls do not."""
    if event.kind not in ("completed", "retrying", "failed", "stalled"):
        return False
    return event.fence == run.fence if event.fence is not None else event.attempt == run.attempt


def reasons(story: Story, life: Life, notes: Notes) -> Iterator[Finding]:
    """S3: a job runs again only because its previous run failed, was given back, or was lost to a fault."""
    for before, run in pairwise(life.runs):
        between = [e for e in life.events if e.at <= run.at and (_ends_run(e, before) or e.kind == "redriven")]
        kinds = {event.kind for event in between}
        if "redriven" in kinds and any(e.kind == "redriven" and e.at >= before.at for e in between):
            continue
        if "completed" in kinds:
            yield Finding("S3", f"{life} ran again {story.when(run.start)} as {run}, though {before} had completed it")
        elif before.q in BATCHED and before.how == "cancelled" and _batch_was_stopped(story, before, run):
            notes.duplicates["given back after an operator stopped its batch"] += 1
        elif "retrying" in kinds or before.how in ("limited", "snoozed"):
            continue
        else:
            cause = causes.of_loss(story, before, story.mono(run.at))
            how = "stalled" if "stalled" in kinds else "given back"
            if cause is None:
                ended = before.how or "nothing"
                text = f"{life}: {run} started {story.when(run.start)} after {before} ({ended}); no fault explains it"
                yield Finding("S3", text)
            notes.duplicates[f"{how} after {cause or 'nothing known'}"] += 1
    for event in life.events:
        if event.kind == "stalled" and not any(run.attempt == event.attempt for run in life.runs):
            yield from _never_begun(story, life, event)


def _batch_was_stopped(story: Story, before: Run, run: Run) -> bool:
    """Whether an operator may have ended another job of the batch: that stops the handler of all of them."""
    since, until = story.mono(before.at), story.mono(run.at)
    return any(
        action.q == before.q and action.what in STOPPERS and action.t0 <= until and action.t1 >= since - 0.05
        for action in story.actions
    )


def _never_begun(story: Story, life: Life, event: Event) -> Iterator[Finding]:
    """A lease that expired without a run needs a fault: the job never reached its worker, or the worker died before it
    started the job."""
    # Attempts start at 1 again after an operator's retry, so the grant is the last one before the stall.
    taken = next((e for e in reversed(life.events) if e.kind == "active" and e.n < event.n), None)
    pid = None if taken is None or taken.worker is None else story.workers.get(taken.worker)
    since = story.mono(event.at if taken is None else taken.at) - causes.LEASE
    if causes.find(story, pid, since, story.mono(event.at)) is None:
        yield Finding("S3", f"{life}: its lease expired {story.when_ms(event.at)}; no fault explains it")


def outcomes(story: Story, life: Life) -> Iterator[Finding]:
    """S6: each accepted outcome is that of the newest run, and no event follows an end."""
    by_fence = {run.fence: run for run in life.runs}
    for event in life.events:
        if event.kind == "completed" and event.fence is None:
            yield Finding("S6", f"{life} completed {story.when_ms(event.at)} without the result of a handler")
        if event.fence is None or event.kind not in ("completed", "retrying", "failed"):
            continue
        run = by_fence.get(event.fence)
        if run is None:
            yield Finding("S6", f"{life}: {event.kind} under fence {event.fence}, which belongs to no run")
            continue
        if event.attempt != run.attempt:
            yield Finding("S6", f"{life}: {event.kind} of attempt {event.attempt} is that of {run}")
        if event.kind == "completed" and run.how != "returned":
            yield Finding(
                "S6", f"{life} completed {story.when_ms(event.at)} by {run}, which {run.how or 'never ended'}"
            )
        newer = next((other for other in life.runs if other.fence > run.fence and other.at < event.at), None)
        if newer is not None:
            text = f"{life}: {event.kind} by {run} was accepted {story.when_ms(event.at)}, after {newer} was granted"
            yield Finding("S6", text)
    over: Event | None = None
    for event in life.events:
        if event.kind == "redriven":
            over = None
        elif over is not None and event.kind != "removed":
            yield Finding("S6", f"{life}: {event.kind} {story.when_ms(event.at)}, after it had {over.kind}")
        if event.kind in ("completed", "failed", "removed"):
            over = event


def attempts(story: Story, life: Life) -> Iterator[Finding]:
    """S10, from the log: each attempt is charged once, in ascending order."""
    charged = 0
    for event in life.events:
        if event.kind == "redriven":
            charged = 0
            continue
        if event.kind not in ("retrying", "stalled", "completed", "failed"):
            continue
        right = (charged, charged + 1) if event.kind == "failed" else (charged + 1,)
        if event.attempt not in right:
            where = f"{life}: {event.kind} {story.when_ms(event.at)}"
            yield Finding("S10", f"{where} is of attempt {event.attempt}, after {charged} were charged")
        if event.kind != "failed":
            charged = event.attempt or charged + 1
    most = max((event.attempt or 0 for event in life.events if event.kind in ("retrying", "stalled")), default=0)
    for run in life.runs:
        if run.attempt > run.max:
            yield Finding("S10", f"{life}: {run} started {story.when(run.start)}; its limit is {run.max}")
        if run.attempt > most + 1:
            yield Finding("S10", f"{life}: {run} started {story.when(run.start)}; only {most} were charged before")


def losers_are_told(story: Story, notes: Notes) -> Iterator[Finding]:
    """S6: an outcome reported under a lost lease is refused, and the worker learns of it."""
    for life in story.lives:
        accepted = {event.fence: event for event in life.events if event.fence is not None}
        for run in life.runs:
            notes.refused += run.lost is not None and run.fence not in accepted
            if run.lost is not None and run.fence in accepted:
                silence = run.lost - story.mono(accepted[run.fence].at)
                if silence > SILENT and causes.find(story, run.pid, run.end, run.lost) is not None:
                    notes.misinformed += 1
                    continue
                yield Finding("S6", f"{life}: {run} learned that it lost its lease, though its outcome was accepted")
            stalled = any(e.kind == "stalled" and e.attempt == run.attempt and e.at >= run.at for e in life.events)
            if stalled and run.how == "returned" and run.lost is None and run.fence not in accepted:
                until = story.killed.get(run.pid, story.gone.get(run.pid, run.end))
                if until - run.end > SOON and causes.find(story, run.pid, run.end, run.end + SOON) is None:
                    yield Finding("S6", f"{life}: {run} lost its lease, ended {story.when(run.end)} unaware of it")
