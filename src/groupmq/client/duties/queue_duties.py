"""Which duties a queue has, and what each of them is given. Workers and `Queue.run_duty_once` run the same ones."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.client.duties.due_work import DueWork
from groupmq.client.duties.duty import PeriodicDuty
from groupmq.client.duties.presence import PresenceCleanup
from groupmq.client.duties.promotion import Promotion
from groupmq.client.duties.recovery import Recovery
from groupmq.client.duties.retention import AgeRetention
from groupmq.client.duties.scheduler import Scheduler
from groupmq.client.queue.caller import Caller
from groupmq.core.duty import DutyName
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol.commands import Policy


class QueueDuties:
    """The duties of one queue, or of one partition of a queue."""

    def __init__(
        self,
        call: Caller,
        policy: Callable[[], Policy],
        options: Callable[[], QueueOptions],
        presence: PresenceCleanup | None,
    ) -> None:
        """`presence`: None for a partition, because workers are registered for the queue as a whole."""
        self.scheduler = Scheduler(call)
        self.promotion = Promotion(call, policy)
        self.recovery = Recovery(call, policy)
        self.due_work = DueWork(call, policy)
        """Promotion and recovery in one call."""
        self.retention = AgeRetention(call, options)
        self.presence = presence

    def of(self, name: DutyName) -> tuple[PeriodicDuty, ...]:
        """The duties that `run_duty_once` runs under this name."""
        if name == "scheduler":
            return self.scheduler, self.promotion
        if name == "recovery":
            return (self.recovery,)
        return self.cleanup

    @property
    def cleanup(self) -> tuple[PeriodicDuty, ...]:
        return (self.retention,) if self.presence is None else (self.retention, self.presence)
