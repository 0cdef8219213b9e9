"""Changing one job, and pausing the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from groupmq.client.queue.settling import cancel_all, change, recall, remove_all, until
from groupmq.core import codec
from groupmq.core.checks import one_of, text
from groupmq.core.clipping import clipped
from groupmq.core.durations import Duration, millis
from groupmq.core.errors import ConfigurationError, JobNotFound, LeaseLost, WrongState
from groupmq.core.filters import STATES
from groupmq.protocol import commands
from groupmq.protocol.commands import UNSETTLED, Change

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

LIVE = ("waiting", "delayed", "active")
BLOCKS = "failed, blocking its group"
"""Stands for "no progress", because any JSON value is a progress, even null."""


async def remove(queue: QueueMethods, job_id: str, *, states: Sequence[str] | None = None) -> bool:
    """Remove a job in any state, or only in one of `states`; False if there is no such job.

    The handler of a running job is stopped, and the group goes on when the handler has ended.
    """
    for state in states or ():
        one_of(state, "states", *STATES)
    removed = await remove_all(queue._call, [text(job_id, "job_id")], states) == 1
    if removed and queue._job_log.debugging():
        queue._job_log.removed(job_id)
    return removed


async def retry(queue: QueueMethods, job_id: str) -> bool:
    """Run a failed job again: it gets its original sort key, and its attempts are counted from 0."""
    answer = await queue._call(commands.retry(text(job_id, "job_id")))
    return _changed(job_id, answer, "failed")


async def skip(queue: QueueMethods, job_id: str) -> bool:
    """Give up a failed job that blocks its group (`on_failed="hold"`): it stays failed, and the group goes on."""
    call = commands.skip([text(job_id, "job_id")], queue.options.keep)
    answer = await until(queue._call, call, lambda answer: answer.changes[0].status != UNSETTLED)
    done = answer.changes[0]
    if done.status != commands.DONE and done.state == "failed":
        raise WrongState(job_id, (BLOCKS,), "failed", "but blocks no group")
    return _changed(job_id, done, BLOCKS)


async def promote(queue: QueueMethods, job_id: str) -> bool:
    """Let a delayed job, or one in its back-off, start now."""
    answer = await change(queue._call, commands.reschedule(text(job_id, "job_id"), 0, only_delayed=True))
    return _changed(job_id, answer, "delayed")


async def change_delay(queue: QueueMethods, job_id: str, delay: Duration) -> bool:
    """Let a delayed or waiting job start `delay` from now instead."""
    delay_ms = millis(delay, "delay")
    answer = await change(queue._call, commands.reschedule(text(job_id, "job_id"), delay_ms, only_delayed=False))
    return _changed(job_id, answer, "delayed", "waiting")


async def update_data(queue: QueueMethods, job_id: str, data: Any) -> None:
    """Replace a job's data. A handler that is already running keeps the data it was given."""
    raw = codec.encode(queue.options.serializer, data, queue.options.max_payload, "data")
    answer = await change(queue._call, commands.update(text(job_id, "job_id"), raw))
    if not answer.state:
        raise JobNotFound(job_id)


async def fail(queue: QueueMethods, job_id: str, reason: str = "failed by operator") -> bool:
    """Fail a job for good, whatever attempts remain.

    The handler of a running job is stopped, and the group goes on when the handler has ended. Under
    `on_failed="hold"` the job blocks its group: once this returns, no job of the group starts, not even a
    prefetched one.
    """
    if not isinstance(reason, str):
        raise ConfigurationError.expected("reason", "a string", reason)
    made = commands.fail(text(job_id, "job_id"), clipped(reason), queue.options.keep)
    answer = await until(queue._call, made, lambda answer: answer.change.status != UNSETTLED)
    if answer.group_id:
        # The job blocks its group. Jobs of the group that have not begun must not run after the failed job.
        await recall(queue._call, answer.group_id)
    failed = _changed(job_id, answer.change, *LIVE)
    queue._job_log.failed_by_hand(job_id, reason)
    return failed


async def cancel(queue: QueueMethods, job_id: str) -> bool:
    """Remove a job that waits, or stop the handler of a job that runs, within a second, in whichever process.

    A stopped job is recorded as failed with the reason "cancelled".
    """
    ((_, state),) = await cancel_all(queue._call, [text(job_id, "job_id")])
    status = commands.DONE if state in LIVE else commands.LEFT
    cancelled = _changed(job_id, Change(state, status), *LIVE)
    if queue._job_log.debugging():
        queue._job_log.stopped(job_id, state)
    return cancelled


async def pause(queue: QueueMethods) -> None:
    """Pause the queue. Once this returns, no job starts, not even a prefetched one. Running jobs go on."""
    await queue._call(commands.switch(paused=True))
    active, *_ = await queue._call(commands.counts())
    if active:
        await recall(queue._call)


async def resume(queue: QueueMethods) -> None:
    """Start jobs again after `pause`."""
    await queue._call(commands.switch(paused=False))


async def is_paused(queue: QueueMethods) -> bool:
    """Whether the queue is paused."""
    return (await queue._call(commands.counts()))[6] == 1


async def report_progress(queue: QueueMethods, job_id: str, fence: int, progress: Any) -> None:
    """Store the progress of a run. Raises LeaseLost if the run is over."""
    most = queue.options.max_payload
    encoded = codec.encode(codec.JSON, progress, most, "progress", may_be_typed=False).decode()
    if not await queue._call(commands.report_progress(job_id, fence, encoded)):
        raise LeaseLost(job_id)


async def append_log(queue: QueueMethods, job_id: str, fence: int, line: str) -> None:
    """Append a line to the log of a run. Raises LeaseLost if the run is over."""
    if not await queue._call(commands.append_log(job_id, fence, clipped(line, 2000))):
        raise LeaseLost(job_id)


def _changed(job_id: str, answer: Change, *expected: str) -> bool:
    if not answer.state:
        raise JobNotFound(job_id)
    if answer.status != commands.DONE:
        raise WrongState(job_id, expected, answer.state)
    return True
