"""Changing one job or one group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupmq.client.operations.settling import Settling
from groupmq.client.operations.steps import STATES, J, Steps, clipped, one
from groupmq.core import codec, limits
from groupmq.core.checks import one_of, text, whole
from groupmq.core.durations import millis
from groupmq.core.errors import ConfigurationError, JobNotFound, LeaseLost, WrongState
from groupmq.core.views import Turn
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, Change

_LIVE = ("waiting", "delayed", "active")
NOTHING: Any = object()
"""Progress may be any JSON, None too."""


class Changing(Settling[J]):
    def remove(self, job_id: str, states: Sequence[str] | None = None) -> Steps[bool]:
        for state in states or ():
            one_of(state, "states", *STATES)
        return (yield from self.remove_all([text(job_id, "job_id")], states)) == 1

    def retry(self, job_id: str) -> Steps[bool]:
        answer = yield from one(commands.retry(text(job_id, "job_id")))
        return self._changed(job_id, answer, "failed")

    def promote(self, job_id: str) -> Steps[bool]:
        answer = yield from self.change(commands.reschedule(text(job_id, "job_id"), 0, only_delayed=True))
        return self._changed(job_id, answer, "delayed")

    def change_delay(self, job_id: str, delay: Any) -> Steps[bool]:
        delay_ms = millis(delay, "delay")
        answer = yield from self.change(commands.reschedule(text(job_id, "job_id"), delay_ms, only_delayed=False))
        return self._changed(job_id, answer, "delayed", "waiting")

    def fail(self, job_id: str, reason: str) -> Steps[bool]:
        if not isinstance(reason, str):
            raise ConfigurationError.expected("reason", "a string", reason)
        answer = yield from self.change(commands.fail(text(job_id, "job_id"), clipped(reason), self.options.keep))
        return self._changed(job_id, answer, "waiting", "delayed", "active")

    def cancel(self, job_id: str) -> Steps[bool]:
        ((_, state),) = yield from self.cancel_all([text(job_id, "job_id")])
        status = commands.DONE if state in _LIVE else commands.LEFT
        return self._changed(job_id, commands.Change(state, status), *_LIVE)

    def cancel_group(self, group_id: str) -> Steps[int]:
        """Cancel everything of a group, in bounded steps; how many jobs."""
        text(group_id, "group_id")
        found = yield from self.cancel_all((yield from self._delayed_of(group_id)))
        while True:
            # What workers have prefetched comes back to the group and is cancelled there, with all that waits.
            any_back, running = yield from self._recall_group(group_id)
            waiting = yield from self._cancel_waiting(group_id)
            found += waiting
            if not any_back and not waiting:
                break
        found += yield from self.cancel_all(running)
        return len({job_id for job_id, state in found if state in _LIVE})

    def _cancel_waiting(self, group_id: str) -> Steps[list[tuple[str, str]]]:
        found: list[tuple[str, str]] = []
        while True:
            answer = yield from one(commands.cancel_group(group_id, CHUNK))
            found += answer.found
            if answer.left == 0:
                return found

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
    def _changed(job_id: str, answer: Change, *expected: str) -> bool:
        if not answer.state:
            raise JobNotFound(job_id)
        if answer.status != commands.DONE:
            raise WrongState(job_id, expected, answer.state)
        return True

    def update_data(self, job_id: str, data: Any) -> Steps[None]:
        raw = codec.encode(self.options.serializer, data, self.options.max_payload, "data")
        if not (yield from self.change(commands.update(text(job_id, "job_id"), raw))).state:
            raise JobNotFound(job_id)

    def set_group_concurrency(self, group_id: str, limit: int | None) -> Steps[bool]:
        n = 0 if limit is None else whole(limit, "n", 1, 65_535)
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), limit=n)))

    def set_group_rate_limit(self, group_id: str, rate: object) -> Steps[bool]:
        limit = limits.rate_limit(rate, "rate_limit")
        packed = limit.packed() if limit else []
        changed = yield from one(commands.switch(group_id=text(group_id, "group_id"), rate=packed))
        yield from self._recall_group(group_id)
        return changed

    def get_turn(self) -> Steps[Turn | None]:
        answer = yield commands.look_turn()
        return Turn(answer[0], answer[1], answer[2] / 1000, answer[3]) if answer else None

    def pause(self) -> Steps[None]:
        """Nothing starts after this, what was prefetched neither."""
        yield from one(commands.switch(paused=True))
        active, *_ = yield from one(commands.counts())
        if active:
            yield from self.recall()

    def pause_group(self, group_id: str) -> Steps[bool]:
        changed = yield from one(commands.switch(group_id=text(group_id, "group_id"), paused=True))
        yield from self._recall_group(group_id)
        return changed

    def resume_group(self, group_id: str) -> Steps[bool]:
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), paused=False)))

    def _recall_group(self, group_id: str) -> Steps[tuple[bool, list[str]]]:
        if not (yield from self.get_group(group_id)).active:
            return False, []
        return (yield from self.recall(group_id))
