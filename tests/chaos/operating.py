"""An operator that performs random administrative actions and records each of them with its times and its answer."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable
from random import Random
from typing import Any

from groupmq import GroupMQError, Queue, RateLimit
from tests.chaos.cast import QUEUE_OF, QUEUES, QueueRole, groups_of, wide_groups
from tests.chaos.history import HistoryFile, digest
from tests.chaos.working import open_queue

PAUSE = 0.12
OF_JOBS = ("remove", "retry", "promote", "change_delay", "update_data", "fail", "cancel")
LOOKS_AT = {"retry": "failed", "promote": "delayed"}
WEIGHTS = {
    **dict.fromkeys(OF_JOBS, 8.0),
    "cancel_group": 1.0,
    "pause": 2.0,
    "pause_group": 5.0,
    "resume_group": 6.0,
    "set_group_concurrency": 4.0,
    "clean": 2.0,
    "purge": 0.3,
    "retry_many": 1.5,
    "decide": 12.0,
    "repair": 1.5,
    "reconfigure": 3.0,
    "set_group_rate_limit": 3.0,
    "obliterate": 1.0,
}
OF_GROUPS = ("cancel_group", "pause_group", "resume_group", "set_group_concurrency", "set_group_rate_limit")
BRIEF = "brief"
"""A queue that the operator makes and obliterates again and again, and that no other process uses. A key of it that is
left over belongs to no queue of the run, and is found at the end."""


class Operator:
    def __init__(self, history: HistoryFile, settings: dict[str, Any]) -> None:
        self._history = history
        self._random = Random(f"{settings['seed']}/{settings['life']}")
        self._queues = {role.name: open_queue(role.name, settings["url"]) for role in QUEUES}
        self._brief = Queue(BRIEF, settings["url"])
        self._n = settings.get("ops", 0)

    async def step(self) -> None:
        """Perform one random action."""
        random = self._random
        role = random.choices(QUEUES, [role.share + 0.03 for role in QUEUES])[0]
        queue = self._queues[role.name]
        what = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if what in OF_JOBS:
            await self._to_a_job(queue, what)
        elif what in OF_GROUPS:
            await self._to_a_group(queue, role, what)
        elif what == "pause":
            await self.act(queue, "pause", queue.pause())
            await asyncio.sleep(random.uniform(0.05, 0.6))
            await self._resume(queue)
        elif what == "clean":
            state = random.choice(("completed", "failed", "delayed", "waiting"))
            grace = 0 if state in ("completed", "failed") else 5
            await self.act(queue, "clean", queue.clean(state, grace=grace, limit=50), state=state)
        elif what == "purge":
            states = random.choice((("waiting",), ("delayed",), ("waiting", "delayed")))
            await self.act(queue, "purge", queue.purge(states), states=states)
        elif what == "decide":
            await self._decide()
        elif what == "retry_many":
            await self.act(queue, "retry_many", queue.retry_many(limit=20))
        elif what == "reconfigure":
            # A setting that no process gives and no group reaches: each of them has to take over the new revision.
            size = random.randrange(500_000, 1_000_000)
            await self.act(queue, "reconfigure", queue.reconfigure(max_group_size=size), size=size)
        elif what == "obliterate":
            await self._brief.add_many([{"data": n, "group_id": f"g{n % 4}", "delay": n % 3} for n in range(24)])
            await self.act(self._brief, "obliterate", self._brief.obliterate())
        else:
            await self._repair(queue)

    async def _decide(self) -> None:
        """Resolve a job that blocks its group."""
        queue = self._queues["strict"]
        blocked = await queue.get_blocked_groups(20)
        if not blocked:
            return
        group = self._random.choice(blocked)
        what = self._random.choice(("skip", "skip", "retry", "remove", "resume_group"))
        if what == "resume_group":
            await self.act(queue, what, queue.resume_group(group.id), group=group.id)
        elif group.blocked_by is not None:
            await self.act(queue, what, getattr(queue, what)(group.blocked_by), job=group.blocked_by)

    async def skip_all(self) -> None:
        """Skip every job that blocks its group, since no other operator is left to resolve it."""
        queue = self._queues["strict"]
        for group in await queue.get_blocked_groups():
            if group.blocked_by is not None:
                await self.act(queue, "skip", queue.skip(group.blocked_by), job=group.blocked_by)

    async def _repair(self, queue: Queue) -> None:
        async def repaired() -> list[str]:
            report = await queue.repair()
            return [f"{kind}: {ids[:5]}" for kind, ids in report.mended.items()]

        await self.act(queue, "repair", repaired())

    async def _to_a_job(self, queue: Queue, what: str) -> None:
        job_id = await self._some_job(queue, LOOKS_AT.get(what))
        if job_id is None:
            return
        match what:
            case "change_delay":
                delay = round(self._random.uniform(0, 1.5), 3)
                await self.act(queue, what, queue.change_delay(job_id, delay), job=job_id, delay=delay)
            case "update_data":
                job = await queue.get_job(job_id)
                if job is None or str(job.data["uid"]).startswith("tick:"):
                    return
                data = job.data | {"edit": self._n}
                told = {"job": job_id, "uid": data["uid"], "digest": digest(data)}
                await self.act(queue, what, queue.update_data(job_id, data), **told)
            case "fail":
                await self.act(queue, what, queue.fail(job_id, "by the operator"), job=job_id)
            case _:
                await self.act(queue, what, getattr(queue, what)(job_id), job=job_id)

    async def _some_job(self, queue: Queue, state: str | None) -> str | None:
        state = state or self._random.choice(("waiting", "waiting", "delayed", "active", "failed", "completed"))
        ids = await queue.get_job_ids(state, 40)
        return self._random.choice(ids) if ids else None

    async def _to_a_group(self, queue: Queue, role: QueueRole, what: str) -> None:
        groups = wide_groups(role) if what.startswith("set_") else groups_of(role)
        if not groups:
            return
        group = self._random.choice(groups)
        if what == "set_group_concurrency":
            n = self._random.choice((1, 2, 3, None))
            await self.act(queue, what, queue.set_group_concurrency(group, n), group=group, limit=n)
        elif what == "set_group_rate_limit":
            limit = self._random.choice((RateLimit(10, per=0.2), RateLimit(3, per=0.1), None))
            await self.act(queue, what, queue.set_group_rate_limit(group, limit), group=group)
        elif what == "pause_group":
            await self.act(queue, what, queue.pause_group(group), group=group)
            await asyncio.sleep(0.05)
            if self._random.random() < 0.8:
                await self.act(queue, "resume_group", queue.resume_group(group), group=group)
        else:
            await self.act(queue, what, getattr(queue, what)(group), group=group)

    async def act(self, queue: Queue, what: str, call: Awaitable[Any], **told: Any) -> Any:
        """Perform an action and return its answer; None if it is not known whether it took effect."""
        self._n += 1
        op = f"{os.getpid()}/{self._n}"
        self._history.note("acting", q=queue.name, op=op, what=what, **told)
        try:
            answer = await call
        except GroupMQError as error:
            self._history.note("acted", op=op, error=type(error).__name__, text=str(error)[:200])
            return None
        shown = answer if isinstance(answer, bool | int | list) else None
        self._history.note("acted", op=op, answer=shown)
        return True if answer is None else answer

    async def _resume(self, queue: Queue, group: str | None = None) -> None:
        """Resume, and retry until that is acknowledged: a queue that stays paused would never drain."""
        while True:
            if group is None:
                answer = await self.act(queue, "resume", queue.resume())
            else:
                answer = await self.act(queue, "resume_group", queue.resume_group(group), group=group)
            if answer is not None:
                return
            await asyncio.sleep(0.1)

    async def _obliterate(self) -> None:
        """Obliterate, and retry until that is acknowledged."""
        while True:
            if await self.act(self._brief, "obliterate", self._brief.obliterate()) is not None:
                return
            await asyncio.sleep(0.1)

    async def undo(self) -> None:
        """Undo every pause and limit and remove the repeating jobs, so that all remaining jobs can run."""
        for name, queue in self._queues.items():
            role = QUEUE_OF[name]
            await self._resume(queue)
            for group in groups_of(role):
                await self._resume(queue, group)
            for group in wide_groups(role):
                call = queue.set_group_concurrency(group, None)
                await self.act(queue, "set_group_concurrency", call, group=group, limit=None)
                await self.act(queue, "set_group_rate_limit", queue.set_group_rate_limit(group, None), group=group)
        await self._obliterate()
        ticks = self._queues["ticks"]
        for repeating in await ticks.get_repeating_jobs():
            call = ticks.remove_repeating_job(repeating.group_id, repeating.key)
            await self.act(ticks, "remove_repeating_job", call, key=repeating.key)

    async def close(self) -> None:
        for queue in (*self._queues.values(), self._brief):
            await queue.close()


async def operate(history: HistoryFile, settings: dict[str, Any]) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    operator = Operator(history, settings)
    history.note("ready", q=None)
    while not over.is_set():
        try:
            await operator.step()
        except GroupMQError as error:
            history.note("trouble", error=f"{type(error).__name__}: {error}")
        await asyncio.sleep(PAUSE)
    await operator.close()
