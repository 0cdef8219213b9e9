"""Promotion: delayed jobs join their groups when their time has come, and groups go on when their wait is over."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.client.duties.due_work import do_due_work
from groupmq.client.queue.caller import Caller
from groupmq.core.views import DutyReport
from groupmq.protocol.commands import Policy


class Promotion:
    """Promotes delayed jobs that are due, and unparks groups whose wait is over; `Recovery` does the rest."""

    task = "promote delayed jobs"

    def __init__(self, call: Caller, policy: Callable[[], Policy]) -> None:
        self._call = call
        self._policy = policy

    async def run_once(self) -> DutyReport:
        return await do_due_work(self._call, self._policy(), expire=False)
