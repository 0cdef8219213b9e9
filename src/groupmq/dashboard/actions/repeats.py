"""The actions on a repeating job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.dashboard.actions.action import Action, Done, Plan
from groupmq.dashboard.actions.given import Given
from groupmq.dashboard.documents.payload import Unreadable
from groupmq.dashboard.documents.repeats import words
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.errors import Refused

if TYPE_CHECKING:
    from groupmq import RepeatingJob


async def found(view: View, given: Given) -> RepeatingJob:
    group, key = given.text("group") or None, given.required("key")
    for repeat in await view.queue.get_repeating_jobs():
        if (repeat.group_id, repeat.key) == (group, key):
            return repeat
    raise Refused(
        404, "No such repeat", "There is no repeating job with this group and key.", "It was removed, or ended."
    )


def lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


class RunRepeat(Action):
    name = "run-repeat"
    title = "Run this repeating job now"
    button = "Run now"
    words = "Add one job with the data, group and settings of a repeating job, now."
    takes = ("group", "key")

    async def plan(self, view: View, given: Given) -> Plan:
        repeat = await found(view, given)
        refused = None
        if isinstance(repeat.data, Unreadable):
            refused = "Its data is not JSON: the queue uses another serializer."
        group = repeat.group_id
        order = f"It goes behind the jobs that wait in {group}." if group else "It belongs to no group."
        return Plan(["One job will be added now. The schedule stays as it is."], order, 1, refused)

    async def act(self, view: View, given: Given) -> Done:
        repeat = await found(view, given)
        if isinstance(repeat.data, Unreadable):
            return Done("Its data is not JSON; nothing was added.", 0, ok=False)
        job = await view.queue.add(
            repeat.data,
            group_id=repeat.group_id,
            priority=repeat.priority,
            max_attempts=repeat.max_attempts,
            timeout=repeat.timeout,
            backoff=repeat.backoff,
            on_retry=repeat.on_retry,
            on_failed=repeat.on_failed,
            ttl=repeat.ttl,
        )
        return Done(f"Added as {job.id}.", 1)


class RemoveRepeat(Action):
    name = "remove-repeat"
    title = "Stop this repeating job"
    button = "Stop it"
    words = "Remove a repeating job; the jobs that it has added stay."
    takes = ("group", "key")
    danger = True

    async def plan(self, view: View, given: Given) -> Plan:
        repeat = await found(view, given)
        effects = [
            f"It will no longer run ({lowered(words(repeat.schedule))}). A program that defines it again restarts it."
        ]
        return Plan(effects, "Jobs that it has added stay and keep their order.")

    async def act(self, view: View, given: Given) -> Done:
        removed = await view.queue.remove_repeating_job(given.text("group") or None, given.required("key"))
        return Done("It no longer repeats." if removed else "It was gone already.", int(removed))


ACTIONS: tuple[Action, ...] = (RunRepeat(), RemoveRepeat())
