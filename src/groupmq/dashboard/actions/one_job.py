"""The actions on one job."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from groupmq import JobFilter
from groupmq.dashboard.actions.action import Action, Done, Plan, jobs_of
from groupmq.dashboard.actions.given import Given
from groupmq.dashboard.documents.job_row import has_to_wait, in_back_off
from groupmq.dashboard.documents.payload import Unreadable, payload
from groupmq.dashboard.documents.plan import field
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.filters import duration as seconds

if TYPE_CHECKING:
    from groupmq import Job


class JobAction(Action):
    """An action on a job that is in one of certain states."""

    takes: ClassVar[tuple[str, ...]] = ("job",)
    states: ClassVar[tuple[str, ...]]

    async def plan(self, view: View, given: Given) -> Plan:
        job = await view.queue.require_job(given.required("job"))
        await view.row()
        plan = await self.foresee(view, given, job)
        plan.jobs = 1
        plan.sample = [view.job(job)]
        if job.state not in self.states:
            wanted = " or ".join(self.states)
            plan.refused = f"The job is {job.state}; this works only if it is {wanted}."
        return plan

    @abstractmethod
    async def foresee(self, view: View, given: Given, job: Job) -> Plan: ...


async def moves_up(view: View, job: Job) -> str:
    """A sentence about the jobs behind a job that leaves its group."""
    if job.group_id is None:
        return "The job belongs to no group; no other job is affected."
    if job.state in ("completed", "failed"):
        return f"The order of {job.group_id} stays as it is."
    position = await view.queue.get_position(job.id)
    # Position 0: it runs or is delayed, so no job waits behind it.
    behind = position.of - position.position if position is not None and position.position else 0
    if not behind:
        return f"No job of {job.group_id} waits behind it."
    return f"{jobs_of(behind)} of {job.group_id} behind it will move up by one; their order stays the same."


async def unblocked(view: View, job: Job) -> list[str]:
    """A sentence about the group that a job blocks, if the job is retried, skipped or removed."""
    if job.blocks_since is None or job.group_id is None:
        return []
    others = (await view.queue.get_group(job.group_id)).blockers - 1
    if others > 0:
        return [f"{job.group_id} stays blocked: {jobs_of(others, 'other failed')} must be resolved too."]
    return [f"{job.group_id}, which it blocks, goes on."]


class Retry(JobAction):
    name = "retry"
    title = "Retry this job"
    button = "Retry"
    words = "Run a failed job again, from its original position."
    states = ("failed",)

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        group = job.group_id
        order = "It belongs to no group and starts as soon as a worker is free."
        if group is not None:
            order = (
                f"It goes back to its original position in {group}: "
                "ahead of jobs that were added later and have not run."
            )
            if (await view.queue.retry_many(JobFilter(job_id=job.id), dry_run=True)).overtaken:
                order += " Jobs that stood behind it have run already: it will run after them."
        attempts = view.attempts(job)
        up_to = " with a fresh count of attempts" if attempts is None else f" with up to {attempts} attempts"
        return Plan([f"The job will run again{up_to}.", *await unblocked(view, job)], order)

    async def act(self, view: View, given: Given) -> Done:
        await view.queue.retry(given.required("job"))
        return Done("The job will run again.", 1)


class Skip(JobAction):
    name = "skip"
    title = "Skip this job"
    button = "Skip"
    words = "Give up a failed job that blocks its group: it stays failed, and the group goes on."
    states = ("failed",)
    danger = True

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        effects = ["The job stays failed and will not run again unless it is retried.", *await unblocked(view, job)]
        plan = Plan(effects, f"Jobs of {job.group_id} that wait behind it run without it, in their order.")
        if job.blocks_since is None:
            plan.refused = "The job blocks no group."
        return plan

    async def act(self, view: View, given: Given) -> Done:
        await view.queue.skip(given.required("job"))
        return Done("The job is given up.", 1)


class Remove(JobAction):
    name = "remove"
    title = "Remove this job"
    button = "Remove"
    words = "Remove a job in any state."
    states = ("waiting", "active", "delayed", "completed", "failed")
    danger = True

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        effects = ["The job, its data, its result and its logs will be deleted. This cannot be undone."]
        if job.state == "active":
            effects.append(
                "It is running: its handler will be stopped, and its group goes on when the handler has ended."
            )
        return Plan(effects + await unblocked(view, job), await moves_up(view, job))

    async def act(self, view: View, given: Given) -> Done:
        removed = await view.queue.remove(given.required("job"))
        return Done("The job is removed." if removed else "The job was gone already.", int(removed), gone=True)


class Promote(JobAction):
    name = "promote"
    title = "Run this job now"
    button = "Run now"
    words = "Let a delayed job, or one in its back-off, start now."
    states = ("delayed", "waiting")

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        order = "It belongs to no group and starts as soon as a worker is free."
        if job.group_id is not None:
            order = f"It keeps its position in {job.group_id}: jobs ahead of it run first."
        if in_back_off(job, view.now):
            effects = [
                f"Attempt {job.attempts_made + 1} will start as soon as it can; the rest of the back-off is skipped."
            ]
            return Plan(effects, order, title="Retry this job now", button="Retry now")
        refused = None
        if job.state != "delayed" and not has_to_wait(job, view.now):
            refused = "The job is waiting already; there is no delay to skip."
        return Plan(["The job will no longer wait for its start time."], order, refused=refused)

    async def act(self, view: View, given: Given) -> Done:
        await view.queue.promote(given.required("job"))
        return Done("The job may start now.", 1)


class ChangeDelay(JobAction):
    name = "change-delay"
    title = "Change the delay"
    button = "Change"
    words = "Let a delayed or waiting job start after a delay from now."
    takes = ("job", "delay")
    states = ("delayed", "waiting")

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        order = "It belongs to no group; no other job is affected."
        if job.group_id is not None:
            order = (
                f"While it is delayed, jobs of {job.group_id} behind it run first; then it takes its position again."
            )
        delay = field(
            "delay",
            "Delay from now",
            kind="duration",
            value=given.text("delay", "10m"),
            required=True,
            hint="for example 30s, 10m or 2h",
        )
        return Plan(["The job will start no earlier than this delay from now."], order, fields=[delay])

    async def act(self, view: View, given: Given) -> Done:
        given.required("delay")
        delay = given.duration("delay") or 0.0
        await view.queue.change_delay(given.required("job"), delay)
        return Done(f"The job starts in {seconds(delay)} at the earliest.", 1)


class Edit(JobAction):
    name = "edit"
    title = "Edit the data"
    button = "Save"
    words = "Replace a job's data."
    takes = ("job", "data")
    states = ("waiting", "delayed", "active", "failed")

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        shown = payload(job.data, view.redactor, "data")
        value = given.fields.get("data") or ("" if shown.redacted else shown.text)
        data = field("data", "Data", kind="json", value=value, required=True, hint="JSON")
        plan = Plan(["The job will have this data."], "Its position in the order stays as it is.", fields=[data])
        if job.state == "active":
            plan.effects.append(
                "It is running: this attempt keeps the data it was given; the next one gets the new data."
            )
        plan.refused = self._refusal(job, redacted=shown.redacted, truncated=shown.truncated)
        return plan

    @staticmethod
    def _refusal(job: Job, *, redacted: bool, truncated: bool) -> str | None:
        if isinstance(job.data, Unreadable):
            return "The data is not JSON: the queue uses another serializer."
        if redacted:
            return "Parts of the data are redacted here; saving would replace them for good."
        return "The data is too large to be edited here." if truncated else None

    async def act(self, view: View, given: Given) -> Done:
        data = given.json("data")
        plan = await self.plan(view, given)
        if plan.refused is not None:
            return Done(plan.refused, 0, ok=False)
        await view.queue.update_data(given.required("job"), data)
        return Done("The data is saved.", 1)


class Fail(JobAction):
    name = "fail"
    title = "Fail this job"
    button = "Fail"
    words = "Fail a job for good, even if attempts remain."
    takes = ("job", "reason")
    states = ("waiting", "delayed", "active")
    danger = True

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        effects = ["The job will be recorded as failed, even if attempts remain. It can be retried later."]
        order, holds = await moves_up(view, job), await self._holds(view, job)
        if job.state == "active":
            goes_on = "" if holds else ", and its group goes on when the handler has ended"
            effects.append(f"It is running: its handler will be stopped{goes_on}.")
        if holds:
            effects.append(f"It will block {job.group_id} until somebody retries, skips or removes it.")
            order = f"No job of {job.group_id} starts while it is blocked; their order stays the same."
        reason = field("reason", "Reason", value=given.text("reason", f"failed by {view.user}"))
        return Plan(effects, order, fields=[reason])

    @staticmethod
    async def _holds(view: View, job: Job) -> bool:
        """Whether the job blocks its group if it fails: its own on_failed decides, else that of the queue."""
        if job.group_id is None:
            return False
        return (job.on_failed or (await view.queue.get_settings()).on_failed) == "hold"

    async def act(self, view: View, given: Given) -> Done:
        await view.queue.fail(given.required("job"), given.text("reason", f"failed by {view.user}"))
        return Done("The job is recorded as failed.", 1)


class Cancel(JobAction):
    name = "cancel"
    title = "Cancel this job"
    button = "Cancel the job"
    words = "Remove a job that waits; stop the handler of one that runs."
    states = ("waiting", "delayed", "active")
    danger = True

    async def foresee(self, view: View, given: Given, job: Job) -> Plan:
        effects = ["The job will be removed before it starts."]
        if job.state == "active":
            effects = [
                "Its handler will be stopped, wherever it runs. The job will be recorded as failed, reason: cancelled."
            ]
        return Plan(effects, await moves_up(view, job))

    async def act(self, view: View, given: Given) -> Done:
        cancelled = await view.queue.cancel(given.required("job"))
        # A running job stays, and is recorded as failed.
        gone = await view.queue.get_job(given.required("job")) is None
        return Done("The job is cancelled." if cancelled else "The job had ended already.", int(cancelled), gone=gone)


ACTIONS: tuple[Action, ...] = (Retry(), Skip(), Promote(), ChangeDelay(), Edit(), Cancel(), Fail(), Remove())
