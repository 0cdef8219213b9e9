"""Retention: removes ended jobs that are older than the queue keeps them."""

from __future__ import annotations

from typing import Any

from groupmq.client.operations import Operations
from groupmq.worker.duties.duty import CarryOut, Done
from groupmq.worker.outage import CLEAN_UP


class AgeRetention:
    """Removes completed and failed jobs by age. (Those above a number are removed as jobs end.)"""

    task = CLEAN_UP

    def __init__(self, operations: Operations[Any], carry_out: CarryOut) -> None:
        self._operations = operations
        self._carry_out = carry_out
        kept = operations.options.keep_completed, operations.options.keep_failed
        self._by_age = any(one.age_ms is not None and one.kept != 0 for one in kept)

    async def run_once(self) -> Done:
        return Done(await self._carry_out(self._operations.clean_up()), called=self._by_age)
