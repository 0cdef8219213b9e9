"""Waiting for the end of a job, wherever it runs. A waiter registers, then looks at the job, then listens, so that it
misses no event in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from groupmq.client.events import Channel, Wait
from groupmq.core.errors import GroupMQError, JobFailed, JobRemoved
from groupmq.core.events import EndOf, Event
from groupmq.core.snapshot import GONE, Snapshot
from groupmq.runtime.pauses import growing

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25
_LOOK_AGAIN = 15.0
_LAST_LOOK = 0.5
"""Seconds to find out for a TimeoutError which state the job is in."""


ENDED = ("completed", "failed", GONE)


class Unknown(Exception):
    """The event does not contain the result, which is stored with the job."""


def ended(job_id: str, event: Event) -> Any:
    """The result in the last event of a job. Raises if the job did not complete."""
    if event.kind == "failed":
        raise JobFailed(job_id, event.reason or "", event.stacktrace or "")
    if event.kind == "removed":
        raise JobRemoved(job_id)
    if event.stored:
        raise Unknown
    return event.result


def end_of_gone_job(job_id: str, event: Event | None) -> Any:
    """The result of a job that is gone, from its last event. Raises if that is not known, or if it did not complete."""
    if event is None:
        raise JobRemoved(job_id, "is gone, and the log of events does not show how it ended")
    try:
        return ended(job_id, event)
    except Unknown:
        raise JobRemoved(job_id, "completed, but was gone before its large result could be read") from None


def may_be_reused(job: Snapshot) -> bool:
    """Whether another job may have had this id: it was given to `add`, or is that of a tick (`<repeat>:<time>`)."""
    return job._named or ":" in job.id


def finished(job: Snapshot) -> bool:
    """Whether a job has ended. Raises JobFailed if that was a failure."""
    if job.state == "failed":
        raise JobFailed(job.id, job.failed_reason or "", job.stacktrace or "")
    return job.state == "completed"


class Results:
    """The results of one queue's jobs."""

    def __init__(self, look: Callable[[str], Awaitable[Snapshot | None]], *, listens: Callable[[], bool]) -> None:
        self._look = look
        self._listens = listens

    async def of(self, channel: Channel, job: Snapshot, timeout: float | None) -> Any:
        """The job's return value. Raises JobFailed, JobRemoved, or TimeoutError after `timeout` seconds."""
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                if not self._listens():
                    return await self._poll(job.id)
                return await self._listen(channel, job)
        except TimeoutError:
            if not limit.expired():
                raise
        raise TimeoutError(f"job {job.id!r} did not end within {timeout:g} s{await self._state_of(job)}")

    async def _state_of(self, job: Snapshot) -> str:
        """The state of a job whose waiter has timed out, for people to read; empty if it cannot be known."""
        try:
            async with asyncio.timeout(_LAST_LOOK):
                found = await self._look(job.id)
        except (GroupMQError, TimeoutError):
            return ""
        if found is None or found.state in ENDED:
            return "; it has ended since"
        return f"; it is {found.state}"

    async def _listen(self, channel: Channel, job: Snapshot) -> Any:
        job_id, created_ms = job.id, job._created_ms
        doubt = asyncio.Event()
        # An end in the same millisecond as the creation may be that of an earlier job, but only if it can have this id.
        after_ms = created_ms if may_be_reused(job) else created_ms - 1
        wait = channel.wait_for(job_id, after_ms, doubt.set)
        channel.on_doubt(doubt.set)
        try:
            await channel.ready()
            event = None if job.state == GONE else await self._received(channel, wait, doubt, job)
            while True:
                if event is not None and event.kind != "failed":
                    try:
                        return ended(job_id, event)
                    except Unknown:
                        pass
                if event is not None:
                    channel.give_up(job_id, wait)
                    wait = channel.wait_for(job_id, after_ms, doubt.set)
                doubt.clear()
                found = await self._look(job_id)
                if found is None:
                    return end_of_gone_job(job_id, event or await channel.ends.find(EndOf(job_id, created_ms)))
                if found._created_ms != created_ms:  # another job with the same id
                    end = EndOf(job_id, created_ms, found._created_ms)
                    return end_of_gone_job(job_id, event or await channel.ends.find(end))
                if finished(found):
                    return found.return_value
                event = await self._next(wait.future, doubt)
        finally:
            channel.give_up(job_id, wait)
            channel.off_doubt(doubt.set)

    async def _received(self, channel: Channel, wait: Wait, doubt: asyncio.Event, job: Snapshot) -> Event | None:
        """The end of a job whose events all come through this channel, so that the job need not be read; else None."""
        if not channel.has_received_all(job._created_ms):
            return None
        recent = channel.recent_end(job.id, job._created_ms)
        if recent is not None and (recent.kind == "failed" or recent.at_ms == wait.created_ms):
            return None  # it may have been redriven since, or it was another job with the same id: look at the job
        return recent or await self._next(wait.future, doubt)

    async def _next(self, future: asyncio.Future[Event], doubt: asyncio.Event) -> Event | None:
        """The event that ends the job; None if this process may have missed one."""
        doubting = asyncio.ensure_future(doubt.wait())
        try:
            # Return from time to time even so, to look at the job: a queue that was obliterated has no log to show it.
            await asyncio.wait((future, doubting), return_when=asyncio.FIRST_COMPLETED, timeout=_LOOK_AGAIN)
        finally:
            doubting.cancel()
        return future.result() if future.done() else None

    async def _poll(self, job_id: str) -> Any:
        """Wait without events, by looking at the job. One that is not kept cannot be told from a removed one."""
        for pause in growing(_FIRST_PAUSE, _LONGEST_PAUSE, factor=1.5):
            found = await self._look(job_id)
            if found is None:
                raise JobRemoved(job_id)
            if finished(found):
                return found.return_value
            await asyncio.sleep(pause)
