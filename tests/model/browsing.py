"""Compares the getters of a queue with the model: positions, attempts, pages, groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groupmq.client.answers.attempts import attempts_of
from groupmq.protocol import commands
from groupmq.protocol.commands import FIRST_WAITING, Call, PagePosition
from tests.model import waiting
from tests.model.model import Model
from tests.model.parts import UNGROUPED, Conf, Job

Carry = Callable[[Call[Any]], Any]
PAGE = 3


def compare(call: Carry, model: Model, groups: Sequence[str], now: int) -> None:
    for job in sorted(model.jobs.values(), key=lambda job: job.id):
        _compare_position(call, model, job, now)
        _compare_attempts(call, job, now)
    for group in (*groups, UNGROUPED):
        assert _walk_group(call, group, now) == [job.id for job in model.waiting(group)], f"the jobs of {group!r}"
    for state in ("active", "delayed", "completed", "failed"):
        ids = _walk_state(call, state, now)
        assert sorted(ids) == sorted(job.id for job in model.in_state(state)), f"the pages of {state} jobs: {ids}"
    assert _walk_state(call, "failed", now, newest=True) == [job.id for job in model.finished("failed")][::-1]
    found: list[str] = _walk(lambda after: call(commands.waiting_page(PAGE, after, now=now)), FIRST_WAITING)
    assert sorted(found) == sorted(job.id for job in model.in_state("waiting")), f"the pages of waiting jobs: {found}"
    _compare_groups(call, model, groups, now)


def _compare_position(call: Carry, model: Model, job: Job, now: int) -> None:
    jobs = [other.id for other in model.waiting(job.group)]
    position = jobs.index(job.id) + 1 if job.state == "waiting" else 0
    expected = commands.FoundPosition(job.state, job.group, position, len(jobs))
    assert call(commands.position(job.id, now)) == expected, f"the position of {job.id!r}, expected {expected}"


def _compare_attempts(call: Carry, job: Job, now: int) -> None:
    """Each run is listed once: those in the history, the one that ended the job, and the current one."""
    told = [(one.number, one.outcome) for one in attempts_of(call(commands.attempts(job.id, now)))]
    expected = [(run[0], run[1]) for run in job.history]
    stored = job.stored
    fences = [run[-1] for run in job.history]
    if stored is not None and stored.finished and stored.fence and stored.fence not in fences:
        expected.append((stored.attempts, job.state if stored.reason == "" or stored.error else _ended(stored.reason)))
    if job.lease is not None and not job.lease.ahead:
        expected.append(((stored.attempts if stored else 0) + 1, "running"))
    assert told == expected, f"the attempts of {job.id!r}: {told}, expected {expected}"


def _ended(reason: str) -> str:
    return "cancelled" if reason == "cancelled" else "stalled" if reason.startswith("stalled:") else "failed"


def _walk(page_after: Callable[[Any], commands.StatePage], start: PagePosition | None) -> list[str]:
    ids: list[str] = []
    after = start
    while True:
        page = page_after(after)
        ids += page.ids
        if page.following is None:
            return ids
        after = page.following


def _walk_group(call: Carry, group: str, now: int) -> list[str]:
    return _walk(lambda after: call(commands.waiting_page(PAGE, after, group, now)), FIRST_WAITING)


def _walk_state(call: Carry, state: str, now: int, *, newest: bool = False) -> list[str]:
    return _walk(lambda after: call(commands.page(state, PAGE, newest=newest, after=after, now=now)), None)


def _compare_groups(call: Carry, model: Model, groups: Sequence[str], now: int) -> None:
    """Compare what holds each group and until when, and check that all live groups are found."""
    _, looks = call(commands.look_groups(groups, 2, now))
    for group, look in zip(groups, looks, strict=True):
        jobs = model.waiting(group)
        assert look.next == [job.id for job in jobs[:2]]
        assert (look.waiting, look.running) == (len(jobs), model.running(group))
        assert (look.blocked, look.blockers) == (model.blocked.get(group, 0), len(model.blockers(group)))
        failures = model.breakers[group].failures if group in model.breakers else 0
        assert (look.failures, look.opened) == (failures, model.opened(group))
        assert look.opened_since == model.opened_since().get(group, 0)
        if group in model.blocked:
            first = model.blockers(group)[0]
            assert look.blocked_by == first.id
            if look.why == "blocked":
                assert (look.holder, look.attempts) == (first.id, first.stored.attempts if first.stored else 0)
        if jobs:
            reason = waiting.reason_of(model, jobs[0], now)
            known = "running" if reason == "stopping" else reason
            assert (look.why, look.since) == (known, waiting.since(jobs[0])), f"{group!r}: {look}, expected {reason}"
            if reason != "blocked":
                assert look.holder == (jobs[0].id if reason in ("backoff", "snoozed") else "")
            gated = reason not in ("", "paused", "blocked", "running", "stopping")
            assert look.until == (model.opens(jobs[0]) if gated else 0)
    scanned = {group.id: group for group in call(commands.scan_groups(sizes=True, now=now)).found}
    assert set(scanned) == model.live_groups() - {UNGROUPED}
    for group, found in scanned.items():
        sizes = len(model.waiting(group)), model.running(group), len(model.in_state("delayed", group))
        assert (found.waiting, found.running, found.delayed) == sizes
        paused = model.conf.get(group, Conf()).paused
        assert (found.state == "blocked") == (group in model.blocked and not paused), f"{found} of a blocked group"
    listed = call(commands.list_since("blocked", 0, 100, now))
    assert (listed.total, dict(listed.found)) == (len(model.blocked), model.blocked)
    opened = call(commands.list_since("opened", 0, 100, now))
    assert (opened.total, dict(opened.found)) == (len(model.opened_since()), model.opened_since())
    runs = {run.id: (run.group_id, run.fence, run.prefetched) for run in call(commands.list_runs("0", now=now)).found}
    leases = [(job.id, job.group, job.lease) for job in model.in_state("active")]
    assert runs == {i: (group, lease.fence, int(lease.ahead)) for i, group, lease in leases if lease}
