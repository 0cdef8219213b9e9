"""Compares the longest waits with the model: that of jobs that could start now, and that of heads of held groups."""

from __future__ import annotations

from groupmq.protocol.commands import Waits
from tests.model.model import Model
from tests.model.parts import UNGROUPED, Conf, Job

Head = tuple[int, str, str, Job]
"""How long a head has waited, its group, what holds it, and the job."""
EXACT = 4
"""Up to this many heads, the server finds the longest wait for certain, whatever orders the jobs have."""


def compare(found: Waits, model: Model, now: int) -> None:
    """Check that the reported waits are right, and are those of the right jobs."""
    startable: dict[str, Head] = {}
    held: dict[str, Head] = {}
    paused: dict[str, Head] = {}
    for group in {job.group for job in model.in_state("waiting")}:
        for head in _heads(model, group):
            reason = reason_of(model, head, now)
            kind = paused if reason == "paused" else held if reason else startable
            kind[head.id] = max(0, now - since(head)), group, reason, head
    _same_wait("startable", found.startable.waited_ms if found.startable else None, [s[0] for s in startable.values()])
    _same_wait("held", found.held.waited_ms if found.held else None, [h[0] for h in held.values()])
    _same_wait("paused", found.paused.waited_ms if found.paused else None, [p[0] for p in paused.values()])
    if found.startable is not None:
        assert startable[found.startable.job_id][:2] == (found.startable.waited_ms, found.startable.group_id)
    for said, heads in (found.held, held), (found.paused, paused):
        if said is None:
            continue
        waited, _, reason, head = next(one for one in heads.values() if one[1] == said.group_id)
        assert (said.waited_ms, said.reason, said.since) == (waited, reason, since(head)), f"{said}, expected {reason}"
        assert said.waiting == len(model.waiting(said.group_id))
        assert said.failures == (model.breakers[said.group_id].failures if said.group_id in model.breakers else 0)
        assert said.until == (0 if reason in ("paused", "blocked", "running", "stopping") else model.opens(head))
        assert said.job_id in _holders(model, head, reason), f"{said} is held by another job"
        if reason in ("backoff", "snoozed"):
            assert said.attempt == (head.stored.attempts if head.stored else 0)
        if reason == "blocked":
            stored = model.jobs[said.job_id].stored
            assert said.attempt == (stored.attempts if stored else 0)
    running: dict[str, int] = {}
    for job in model.in_state("active"):
        if job.lease is not None and not job.lease.ahead:
            running[job.lease.worker] = running.get(job.lease.worker, 0) + 1
    assert found.running == running


def _same_wait(kind: str, said: int | None, expected: list[int]) -> None:
    longest = max(expected, default=None)
    if len(expected) <= EXACT:
        assert said == longest, f"the longest wait of {kind} jobs: {said}, expected {longest}"
    else:
        assert said in expected, f"a wait of {kind} jobs: {said}, expected one of {expected}"


def _heads(model: Model, group: str) -> list[Job]:
    """The head of a group; for jobs without a group the first of each priority, since all of them may start."""
    waiting = model.waiting(group)
    if group != UNGROUPED or model.options.priority_ageing_ms is not None:
        return waiting[:1]
    firsts: dict[int, Job] = {}
    for job in waiting:
        firsts.setdefault(job.record.priority, job)
    return list(firsts.values())


def since(head: Job) -> int:
    """Since when a job may start: its arrival, or its due time if it was delayed."""
    return head.record.created_ms if head.record.order_given else head.record.order_ms


def reason_of(model: Model, head: Job, now: int) -> str:
    """Why the first job of a group cannot start; empty if it can."""
    group = head.group
    if model.conf.get(group, Conf()).paused:
        return "paused"
    if group in model.blocked:
        return "blocked"
    if model.running(group) >= model.slots_of(group):
        return "running" if model.in_state("active", group) else "stopping"
    opens = model.opens(head)
    if opens <= now:
        return ""
    if head.hold == opens:
        return "snoozed" if head.snoozed else "backoff"
    if model.rests.get(group, 0) == opens:
        return "rate_limited"
    if model.opened(group) == opens:
        return "breaker"
    return "rate" if model.rate_allows(group) == opens else "window"


def _holders(model: Model, head: Job, reason: str) -> set[str]:
    if reason == "running":
        active = [job for job in model.in_state("active", head.group) if job.lease is not None]
        begun = {job.id for job in active if job.lease is not None and not job.lease.ahead}
        return begun or {job.id for job in active}
    if reason == "blocked":
        return {model.blockers(head.group)[0].id}
    return {head.id} if reason in ("backoff", "snoozed") else {""}
