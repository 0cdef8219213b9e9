# Generated from src/groupmq/client/duties/recovery.py by `make sync`; do not edit.
"""Recovery: jobs whose lease has expired run again or fail, and jobs past their ttl fail."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.core.views import DutyReport
from groupmq.protocol.commands import Policy
from groupmq.sync.duties.due_work import do_due_work
from groupmq.sync.queue.caller import Caller


class Recovery:
    """Takes back jobs of workers that died, fails jobs past their ttl, and unparks groups whose wait is over."""

    task = "look for stalled jobs"

    def __init__(self, call: Caller, policy: Callable[[], Policy]) -> None:
        self._call = call
        self._policy = policy

    def run_once(self) -> DutyReport:
        return do_due_work(self._call, self._policy(), promote=False)
