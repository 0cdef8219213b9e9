"""Periodic duties of workers and of the command line, each with `run_once`. Any number of copies is safe."""

from groupmq.worker.duties.duty import Duty, DutyDone, EachInterval
from groupmq.worker.duties.presence import PresenceCleanup
from groupmq.worker.duties.recovery import Recovery
from groupmq.worker.duties.retention import AgeRetention
from groupmq.worker.duties.scheduler import Promotion, Scheduler

__all__ = ["AgeRetention", "Duty", "DutyDone", "EachInterval", "PresenceCleanup", "Promotion", "Recovery", "Scheduler"]
