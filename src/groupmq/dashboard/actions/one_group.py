"""The actions on a group."""

from __future__ import annotations

import asyncio

from groupmq import Queue, RateLimit
from groupmq.dashboard.actions.action import Action, Done, Plan, jobs_of
from groupmq.dashboard.actions.given import BadField, Given
from groupmq.dashboard.actions.tasks import Task
from groupmq.dashboard.documents.plan import field
from groupmq.dashboard.documents.starting import rate_words
from groupmq.dashboard.documents.view import View

MANY = 1000
"""Up to this many jobs of a group are cancelled while the reader waits; a task cancels larger numbers."""
_LOOK_EVERY = 0.5
SAME_ORDER = "The order inside the group stays as it is."


class CancelGroup(Action):
    name = "cancel-group"
    title = "Cancel all jobs of this group"
    button = "Cancel all"
    words = "Cancel every job of a group: waiting, delayed and running. Returns a task if there are many."
    takes = ("group",)
    danger = True
    bulk_if_many = True

    async def plan(self, view: View, given: Given) -> Plan:
        group = await view.queue.get_group(given.required("group"))
        total = group.waiting + group.delayed + group.active
        effects = []
        if group.waiting or group.delayed:
            counts = ((group.waiting, "waiting"), (group.delayed, "delayed"))
            gone = " and ".join(jobs_of(n, state) for n, state in counts if n)
            effects.append(f"{gone} will be removed. This cannot be undone.")
        if group.active:
            effects.append(f"{jobs_of(group.active, 'running')} will be stopped and recorded as failed.")
        first = await view.queue.get_group_jobs(group.id, limit=5)
        order = "The group will be empty; jobs added later run as usual."
        refused = None if total else "No job of the group runs, waits or is delayed."
        title = f"Cancel all jobs of {group.id}"
        return Plan(effects, order, total, refused, sample=view.jobs(first.jobs), title=title)

    async def act(self, view: View, given: Given) -> Done:
        group = await view.queue.get_group(given.required("group"))
        total = group.waiting + group.delayed + group.active
        if total <= MANY:
            cancelled = await view.queue.cancel_group(group.id)
            return Done(f"{jobs_of(cancelled)} cancelled.", cancelled)

        async def run(task: Task) -> None:
            await cancel_with_progress(view.queue, group.id, task)

        title = f"Cancel all jobs of {group.id}"
        task = view.shared.tasks.start(view.queue, self, title, view.user, run, given.fields, matched=total)
        return Done("Cancelling has begun.", task=task)


async def cancel_with_progress(queue: Queue, group_id: str, task: Task) -> None:
    """Cancel a group in bounded steps, and count the remaining jobs meanwhile."""
    work = asyncio.ensure_future(queue.cancel_group(group_id))
    try:
        while not (await asyncio.wait({work}, timeout=_LOOK_EVERY))[0]:
            group = await queue.get_group(group_id)
            left = group.waiting + group.delayed + group.active
            task.progress(done=max(0, (task.matched or 0) - left))
        task.progress(done=work.result())
    finally:
        work.cancel()
        await asyncio.wait({work})


class PauseGroup(Action):
    name = "pause-group"
    title = "Pause this group"
    button = "Pause"
    words = "Let no job of a group start until it is resumed."
    takes = ("group",)

    async def plan(self, view: View, given: Given) -> Plan:
        group = await view.queue.get_group(given.required("group"))
        effects = [
            f"{jobs_of(group.waiting, 'waiting')} of {group.id} will not start until somebody resumes the group."
        ]
        if group.active:
            effects.append(f"{jobs_of(group.active, 'running')} will finish as usual.")
        refused = "The group is paused already." if group.paused else None
        return Plan(effects, SAME_ORDER, group.waiting, refused, title=f"Pause {group.id}")

    async def act(self, view: View, given: Given) -> Done:
        paused = await view.queue.pause_group(given.required("group"))
        return Done("The group is paused." if paused else "The group was paused already.")


class ResumeGroup(Action):
    name = "resume-group"
    title = "Resume this group"
    button = "Resume"
    words = "Let the jobs of a paused group start again; of a blocked one, give up the failed jobs that block it."
    takes = ("group",)

    async def plan(self, view: View, given: Given) -> Plan:
        group = await view.queue.get_group(given.required("group"))
        again = f"{jobs_of(group.waiting, 'waiting')} of {group.id} may start again, in order."
        effects, refused = [again], None
        if group.paused and group.blockers:
            effects = [f"The pause ends. {group.id} stays blocked by {jobs_of(group.blockers, 'failed')}."]
        elif group.blockers:
            which = "that blocks" if group.blockers == 1 else "that block"
            effects = [f"{jobs_of(group.blockers, 'failed')} {which} {group.id} will be skipped: given up.", again]
        elif not group.paused:
            refused = "The group is neither paused nor blocked."
        return Plan(effects, SAME_ORDER, group.waiting, refused, title=f"Resume {group.id}")

    async def act(self, view: View, given: Given) -> Done:
        resumed = await view.queue.resume_group(given.required("group"))
        return Done("The group is resumed." if resumed else "The group was neither paused nor blocked.")


class GroupConcurrency(Action):
    name = "group-concurrency"
    title = "Jobs of this group at once"
    button = "Set"
    words = "Let this many jobs of a group run at once; empty = the queue's own setting."
    takes = ("group", "concurrency")

    async def plan(self, view: View, given: Given) -> Plan:
        group = await view.queue.get_group(given.required("group"))
        effects = [f"At present, up to {group.concurrency} of its jobs may run at once; {_wait(group.waiting)}."]
        order = (
            "With more than one at once, jobs still start in order, but a later one may finish before an earlier one."
        )
        at_once = field(
            "concurrency",
            "Jobs at once",
            kind="number",
            value=given.text("concurrency", str(group.concurrency)),
            hint="leave empty for the queue's setting",
        )
        return Plan(effects, order, group.waiting, fields=[at_once], title=f"Jobs of {group.id} at once")

    async def act(self, view: View, given: Given) -> Done:
        n = given.whole("concurrency", 1, 10_000)
        await view.queue.set_group_concurrency(given.required("group"), n)
        return Done(
            "The group follows the queue's setting again." if n is None else f"Up to {n} of its jobs may run at once."
        )


class GroupRate(Action):
    name = "group-rate"
    title = "Rate limit of this group"
    button = "Set"
    words = "Let a group start a number of jobs in a period; empty = the queue's own setting."
    takes = ("group", "limit", "per")

    async def plan(self, view: View, given: Given) -> Plan:
        group = await view.queue.get_group(given.required("group"))
        now = rate_words(group.rate_limit)
        current = f"At present it may start {now}" if now else "At present it has no rate limit of its own"
        effects = [f"{current}; {_wait(group.waiting)}."]
        fields = [
            field(
                "limit", "Starts", kind="number", value=given.text("limit"), hint="leave empty for the queue's setting"
            ),
            field("per", "Per", kind="duration", value=given.text("per", "1s"), hint="for example 1s or 1m"),
        ]
        return Plan(effects, SAME_ORDER, group.waiting, fields=fields, title=f"Rate limit of {group.id}")

    async def act(self, view: View, given: Given) -> Done:
        count, per = given.whole("limit", 1, 1_000_000), given.duration("per")
        if count is not None and not per:
            raise BadField("per", "is missing; for example 1s")
        limit = None if count is None else RateLimit(count, per=per or 1.0)
        await view.queue.set_group_rate_limit(given.required("group"), limit)
        return Done(
            "The group follows the queue's setting again." if limit is None else f"It may start {rate_words(limit)}."
        )


def _wait(n: int) -> str:
    return f"{jobs_of(n)} {'waits' if n == 1 else 'wait'}"


ACTIONS: tuple[Action, ...] = (PauseGroup(), ResumeGroup(), GroupConcurrency(), GroupRate(), CancelGroup())
