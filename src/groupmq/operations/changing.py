"""Changing one job or one group."""

from __future__ import annotations

from typing import Any

from groupmq import codec, commands, limits
from groupmq.checks import text, whole
from groupmq.commands import CHUNK
from groupmq.durations import millis
from groupmq.errors import ConfigurationError, JobNotFound, LeaseLost, WrongState
from groupmq.operations.looking import Looking
from groupmq.operations.steps import J, Steps, clipped, one
from groupmq.views import Turn

NOTHING: Any = object()
"""Progress may be any JSON, None too."""


class Changing(Looking[J]):
    def remove(self, job_id: str) -> Steps[bool]:
        return (yield from one(commands.remove([text(job_id, "job_id")])))[0]

    def retry(self, job_id: str) -> Steps[bool]:
        answer = yield commands.retry(text(job_id, "job_id"))
        return self._changed(job_id, answer, "failed")

    def promote(self, job_id: str) -> Steps[bool]:
        answer = yield commands.reschedule(text(job_id, "job_id"), 0, only_delayed=True)
        return self._changed(job_id, answer, "delayed")

    def change_delay(self, job_id: str, delay: Any) -> Steps[bool]:
        delay_ms = millis(delay, "delay")
        answer = yield commands.reschedule(text(job_id, "job_id"), delay_ms, only_delayed=False)
        return self._changed(job_id, answer, "delayed", "waiting")

    def fail(self, job_id: str, reason: str) -> Steps[bool]:
        if not isinstance(reason, str):
            raise ConfigurationError.expected("reason", "a string", reason)
        answer = yield commands.fail(text(job_id, "job_id"), clipped(reason), self.options.keep)
        return self._changed(job_id, answer, "waiting", "delayed", "active")

    def cancel(self, job_id: str) -> Steps[bool]:
        answer = yield commands.cancel([text(job_id, "job_id")])
        ((_, state),) = answer.found
        return self._changed(job_id, (state, state in ("waiting", "delayed", "active")), "waiting", "delayed", "active")

    def cancel_group(self, group_id: str) -> Steps[int]:
        """Cancel everything of a group, in bounded steps; how many jobs."""
        text(group_id, "group_id")
        cancelled: set[str] = set()
        delayed = yield from self._delayed_of(group_id)
        for at in range(0, len(delayed), CHUNK):
            cancelled |= (yield commands.cancel(delayed[at : at + CHUNK])).live
        while True:
            answer: commands.Cancelled = yield commands.cancel_group(group_id, CHUNK)
            cancelled |= answer.live
            if answer.left == 0:
                return len(cancelled)

    def _delayed_of(self, group_id: str) -> Steps[list[str]]:
        """Delayed jobs are not indexed by group: look at all of them, a page at a time."""
        found: list[str] = []
        offset = 0
        while True:
            ids = yield from self.list_ids("delayed", CHUNK, offset)
            jobs = yield from self.get_jobs_by_id(ids)
            found += [job.id for job in jobs if job is not None and job.group_id == group_id]
            offset += len(ids)
            if len(ids) < CHUNK:
                return found

    def say(self, job_id: str, token: int, progress: Any, line: str | None) -> Steps[None]:
        """What a running handler says about its job."""
        told = None
        if progress is not NOTHING:
            told = codec.encode(codec.JSON, progress, self.options.max_payload, "progress").decode()
        if not (yield commands.note(job_id, token, told, None if line is None else clipped(line, 2000))):
            raise LeaseLost(job_id)

    @staticmethod
    def _changed(job_id: str, answer: tuple[str, bool], *expected: str) -> bool:
        state, changed = answer
        if not state:
            raise JobNotFound(job_id)
        if not changed:
            raise WrongState(job_id, expected, state)
        return True

    def update_data(self, job_id: str, data: Any) -> Steps[None]:
        raw = codec.encode(self.options.serializer, data, self.options.max_payload, "data")
        state = yield commands.update(text(job_id, "job_id"), raw)
        if not state:
            raise JobNotFound(job_id)

    def set_group_concurrency(self, group_id: str, limit: int | None) -> Steps[bool]:
        n = 0 if limit is None else whole(limit, "n", 1, 65_535)
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), limit=n)))

    def set_group_rate_limit(self, group_id: str, rate: object) -> Steps[bool]:
        limit = limits.rate_limit(rate, "rate_limit")
        packed = limit.packed() if limit else []
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), rate=packed)))

    def get_turn(self) -> Steps[Turn | None]:
        answer = yield commands.look_turn()
        return Turn(answer[0], answer[1], answer[2] / 1000, answer[3]) if answer else None

    def switch_group(self, group_id: str, *, paused: bool) -> Steps[bool]:
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), paused=paused)))
