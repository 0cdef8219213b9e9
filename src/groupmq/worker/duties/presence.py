"""Presence: forgets workers that died without deregistering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groupmq.client.operations import Operations
from groupmq.worker.duties.duty import CarryOut, Done
from groupmq.worker.outage import FORGET


class PresenceCleanup:
    """Deregisters workers that missed three heartbeats, with the lanes whose last replies the server keeps for them.

    `on_gone` is called with their ids.
    """

    task = FORGET

    def __init__(
        self,
        operations: Operations[Any],
        carry_out: CarryOut,
        on_gone: Callable[[Sequence[str]], None] = lambda workers: None,
    ) -> None:
        self._operations = operations
        self._carry_out = carry_out
        self._on_gone = on_gone

    async def run_once(self) -> Done:
        gone = await self._carry_out(self._operations.forget_gone_workers())
        if gone:
            self._on_gone(gone)
        return Done(len(gone))
