"""The actions on a whole queue: pause, resume, add a job, mark a deploy, clean."""

from __future__ import annotations

import secrets

from groupmq import JobFilter
from groupmq.dashboard.actions.action import Action, Done, Plan, jobs_of
from groupmq.dashboard.actions.given import Given
from groupmq.dashboard.actions.tasks import Task
from groupmq.dashboard.documents.choice import choices
from groupmq.dashboard.documents.plan import field
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.filters import duration

STATES = ("completed", "failed", "waiting", "delayed")
_MOST = 2**31
ONCE = "once"
"""Hidden field: the id of the job that the form adds. A form that is sent twice then adds one job."""


class Pause(Action):
    name = "pause"
    title = "Pause the queue"
    button = "Pause"
    words = "Let no job start until the queue is resumed."

    async def plan(self, view: View, given: Given) -> Plan:
        counts = await view.queue.get_job_counts()
        effects = [f"{jobs_of(counts.waiting, 'waiting')} will not start until somebody resumes the queue."]
        if counts.active:
            effects.append(f"{jobs_of(counts.active, 'running')} will finish as usual.")
        refused = "The queue is paused already." if await view.queue.is_paused() else None
        return Plan(effects, "The order stays as it is.", counts.waiting, refused)

    async def act(self, view: View, given: Given) -> Done:
        await view.queue.pause()
        return Done("The queue is paused.")


class Resume(Action):
    name = "resume"
    title = "Resume the queue"
    button = "Resume"
    words = "Let jobs start again."

    async def plan(self, view: View, given: Given) -> Plan:
        counts = await view.queue.get_job_counts()
        refused = None if await view.queue.is_paused() else "The queue is not paused."
        effects = [f"{jobs_of(counts.waiting, 'waiting')} may start again, as many at once as the workers can take."]
        return Plan(effects, "The order stays as it is.", counts.waiting, refused)

    async def act(self, view: View, given: Given) -> Done:
        await view.queue.resume()
        return Done("The queue is running again.")


class Add(Action):
    name = "add"
    title = "Add a job"
    button = "Add"
    words = "Add a job."
    takes = ("data", "group", "delay", "priority", "job", "attempts", ONCE)

    async def plan(self, view: View, given: Given) -> Plan:
        group = given.text("group")
        order = f"It goes behind the jobs that wait in {group or 'its group'}."
        fields = [
            field("data", "Data", kind="json", value=given.fields.get("data", ""), required=True, placeholder="{}"),
            field("group", "Group", value=group, hint="leave empty for none"),
            field("delay", "Delay", kind="duration", value=given.text("delay"), hint="for example 30s or 10m"),
            field(
                "priority", "Priority", kind="number", value=given.text("priority"), hint="0 to 1023, lower runs first"
            ),
            field(
                "attempts",
                "Attempts",
                kind="number",
                value=given.text("attempts"),
                hint="leave empty for the worker's setting",
            ),
            field("job", "Id", value=given.text("job"), hint="leave empty for a new one"),
        ]
        once = {ONCE: given.text(ONCE) or secrets.token_urlsafe(9)}
        return Plan(["One job is added."], order, 1, fields=fields, hidden=once)

    async def act(self, view: View, given: Given) -> Done:
        job = await view.queue.add(
            given.json("data"),
            group_id=given.text("group") or None,
            delay=given.duration("delay"),
            priority=given.whole("priority", 0, 1023) or 0,
            max_attempts=given.whole("attempts", 1, 65_535),
            job_id=given.text("job") or given.text(ONCE) or None,
        )
        if job.duplicate and not given.text("job"):
            return Done(f"The form was sent twice; its job is {job.id}.", 0)
        if job.duplicate:
            return Done(f"There is a job {job.id} already; nothing was added.", 0, ok=False)
        return Done(f"Added as {job.id}.", 1)


class MarkDeploy(Action):
    name = "mark"
    title = "Mark this moment"
    button = "Mark"
    words = "Put a mark, such as a release, on the charts."
    takes = ("label",)

    async def plan(self, view: View, given: Given) -> Plan:
        label = field("label", "Label", value=given.text("label"), required=True, placeholder="v1.4")
        return Plan(["The charts show a line with this label at this moment."], "No job is affected.", fields=[label])

    async def act(self, view: View, given: Given) -> Done:
        await view.queue.mark(given.required("label"))
        return Done("Marked.")


class Clean(Action):
    name = "clean"
    title = "Clean old jobs"
    button = "Clean"
    words = "Remove jobs of a state that are older than a given age, step by step. Returns a task."
    takes = ("state", "older")
    danger = True
    bulk = True

    async def plan(self, view: View, given: Given) -> Plan:
        state, older = given.one_of("state", STATES), given.duration("older") or 0.0
        there = await _matched(view, state, older)
        age = f" older than {duration(older)}" if older else ""
        effects = [f"{jobs_of(there, state)}{age} will be removed. This cannot be undone."]
        if state == "failed" and (await view.row()).blocked:
            effects.append("Jobs that block their group stay: somebody has to resolve them.")
        order = "No job that has yet to run is affected."
        if state in ("waiting", "delayed"):
            order = "The remaining jobs keep their order and move up."
        fields = [
            field("state", "State", kind="select", value=state, options=choices(STATES, state)),
            field(
                "older",
                "Older than",
                kind="duration",
                value=given.text("older"),
                hint="for example 1h or 7d; leave empty for all",
            ),
        ]
        return Plan(effects, order, there, fields=fields)

    async def act(self, view: View, given: Given) -> Done:
        state, older = given.one_of("state", STATES), given.duration("older") or 0.0
        queue = view.queue

        async def run(task: Task) -> None:
            await queue.clean(state, grace=older, limit=_MOST, progress=lambda done: task.progress(done=done))

        matched = await _matched(view, state, older)
        task = view.shared.tasks.start(
            queue, self, f"Clean {state} jobs", view.user, run, given.fields, matched=matched
        )
        return Done("Cleaning has begun.", task=task)


async def _matched(view: View, state: str, older: float) -> int:
    if older:
        return (await view.queue.remove_many(JobFilter(older=older), state=state, dry_run=True)).matched
    there: int = getattr(await view.queue.get_job_counts(), state)
    return there


ACTIONS: tuple[Action, ...] = (Pause(), Resume(), Add(), MarkDeploy(), Clean())
