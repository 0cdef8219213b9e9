"""Jobs that a worker has taken and may not have begun: prefetched ones, and those whose reply is still on its way.

No operation takes effect on such a job before the job is settled. The call asks the worker, which gives the job back or
reports that it has begun; that takes milliseconds. If the worker is dead, the end of the lease settles the job. Until
then the answer is "unsettled", and the call is made again after a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from groupmq.client.queue.caller import Caller
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, UNSETTLED, Call, Change
from groupmq.runtime.pauses import growing

T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
"""Seconds before an unsettled call is made again. A worker that is alive answers within two round trips. A job that it
gives back is not taken again for five times the longest pause (`lua/transitions/release.lua`)."""


def pauses() -> Iterator[float]:
    return growing(_FIRST_PAUSE, _LONGEST_PAUSE)


async def until(call: Caller, made: Call[T], is_settled: Callable[[T], bool]) -> T:
    """Make a call again and again until its answer is settled."""
    answer = await call(made)
    for pause in pauses():
        if is_settled(answer):
            break
        answer = await call(made._replace(after=pause))
    return answer


async def change(call: Caller, made: Call[Change]) -> Change:
    """Change one job."""
    return await until(call, made, lambda answer: answer.status != UNSETTLED)


async def remove_all(
    call: Caller,
    ids: Sequence[str],
    states: Sequence[str] | None = None,
    after_step: Callable[[int], None] | None = None,
    *,
    wait: float = 0.0,
) -> int:
    """Remove jobs in any of these states and return how many. `after_step` gets the number of jobs a step removed.

    `wait`: seconds to wait before each hundred of them.
    """
    removed = 0
    for at in range(0, len(ids), CHUNK):
        left, pause = list(ids[at : at + CHUNK]), wait
        waits = pauses()
        while left:
            statuses = await call(commands.remove(left, states)._replace(after=pause))
            gone = statuses.count(commands.DONE)
            removed += gone
            if after_step is not None:
                after_step(gone)
            left = [i for i, status in zip(left, statuses, strict=True) if status == UNSETTLED]
            pause = 0.0 if commands.DONE in statuses else next(waits)
    return removed


async def cancel_all(call: Caller, ids: Sequence[str]) -> list[tuple[str, str]]:
    """Cancel jobs; returns each with the state in which it was found."""
    found: list[tuple[str, str]] = []
    for at in range(0, len(ids), CHUNK):
        left, pause = list(ids[at : at + CHUNK]), 0.0
        waits = pauses()
        while left:
            answer = await call(commands.cancel(left)._replace(after=pause))
            settled = [one for one in answer.found if one[1] != commands.FOUND_UNSETTLED]
            unread = left[len(answer.found) :]
            left = [job_id for job_id, state in answer.found if state == commands.FOUND_UNSETTLED] + unread
            found += settled
            pause = 0.0 if settled else next(waits)
    return found


async def recall(call: Caller, group_id: str | None = None) -> tuple[bool, list[str]]:
    """Ask for all jobs that workers have, or for those of one group, until each is given back or known to have begun.

    Returns whether there were any, and the jobs that turned out to be running.
    """
    cursor, any_found = "0", False
    running: list[str] = []
    while True:
        page = await call(commands.recall_page(cursor, group_id))
        cursor, running = page.cursor, running + page.running
        if page.unsettled:
            any_found = True
            again = commands.recall(page.unsettled)._replace(after=_FIRST_PAUSE)
            settled = await until(call, again, lambda answer: not answer.unsettled)
            running += settled.running
        if cursor == "0":
            return any_found, running
