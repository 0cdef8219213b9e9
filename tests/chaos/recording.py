"""The recorder: reads the event log of every queue over a separate connection and writes each event to the history."""

from __future__ import annotations

import asyncio
import re
import signal
from typing import Any

from groupmq import Event, GroupMQError, Queue
from tests.chaos.cast import QUEUES
from tests.chaos.history import HistoryFile
from tests.chaos.working import open_queue
from tests.support.waiting import eventually

_FENCE = re.compile(r"#(\d+)")
LAST_WORD = 15.0


def positions(event_id: str) -> list[tuple[int, int]]:
    """The stream positions in an event id, one for each partition. They grow along the log."""
    found = [one.split("/")[0].split("-") for one in event_id.split("~")]
    return [(int(ms), int(seq)) for ms, seq in found]


def is_at(event_id: str, last: str) -> bool:
    """Whether everything up to the event `last` was read."""
    return all(here >= there for here, there in zip(positions(event_id), positions(last), strict=True))


def fence_of(event: Event) -> int | None:
    """The fence that the accepted outcome names."""
    if event.kind == "completed":
        result = event.result
        return result["fence"] if isinstance(result, dict) else None
    found = _FENCE.search(event.reason or "")
    return int(found[1]) if found and event.kind in ("retrying", "failed") else None


async def record(history: HistoryFile, settings: dict[str, Any]) -> None:
    queues = {role.name: open_queue(role.name, settings["url"]) for role in QUEUES}
    heard = {name: await queue.get_last_event_id() for name, queue in queues.items()}
    counted = dict.fromkeys(queues, 0)

    async def listen(queue: Queue) -> None:
        while True:
            try:
                async for event in queue.events(since=heard[queue.name]):
                    heard[queue.name] = event.id
                    counted[queue.name] += 1
                    write(queue.name, event)
            except GroupMQError as error:
                history.note("trouble", error=f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.1)

    def write(queue: str, event: Event) -> None:
        known: dict[str, Any] = {
            "job": event.job_id,
            "group": event.group_id,
            "attempt": event.attempt,
            "worker": event.worker,
        }
        known |= {"delay": event.delay, "reason": event.reason, "final": event.final, "fence": fence_of(event)}
        told = {name: value for name, value in known.items() if value is not None}
        history.note("event", q=queue, n=counted[queue], kind=event.kind, at=event.at_ms, **told)

    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    tasks = [asyncio.ensure_future(listen(queue)) for queue in queues.values()]
    history.note("ready", q=None)
    await over.wait()
    for name, queue in queues.items():
        last = await queue.get_last_event_id()
        await eventually(lambda: is_at(heard[name], last), "the log was read to its end", LAST_WORD)  # noqa: B023
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    history.note("heard all", counted=counted)
    for queue in queues.values():
        await queue.close()
