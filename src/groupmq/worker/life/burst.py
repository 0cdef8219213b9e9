"""When a burst is over: as soon as, at one moment, no worker has anything to do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol


class BurstWorker(Protocol):
    """The worker as a burst sees it."""

    def _is_idle(self) -> bool: ...
    async def _has_ready_job(self) -> bool: ...


async def is_over(workers: Sequence[BurstWorker], changed: asyncio.Event) -> bool:
    """Whether a burst of these workers is over. `changed` is set when one of them has had something to do.

    A worker that found nothing is idle until a hint of new work reaches it. A handler of another worker may have added
    a job whose hint has not arrived yet, so each server is asked, and the answers count only if nothing ran meanwhile.
    """
    changed.clear()
    if not all(worker._is_idle() for worker in workers):
        return False
    for worker in workers:
        if await worker._has_ready_job():
            return False
    return not changed.is_set() and all(worker._is_idle() for worker in workers)
