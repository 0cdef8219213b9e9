"""groupmq: a job queue on Redis and Valkey. Jobs of one group run in order, one at a time; groups run in parallel."""

from groupmq.backoff import Backoff
from groupmq.errors import (
    ConfigurationError,
    ConnectionLost,
    FailJob,
    GroupFull,
    GroupMQError,
    HandlerTimeout,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobRemoved,
    LeaseLost,
    PayloadTooLarge,
    RateLimited,
    RetryJob,
    ScriptError,
    ServerRefused,
    WrongState,
)
from groupmq.events import Event
from groupmq.job import Job
from groupmq.limits import Debounce, RateLimit, Throttle
from groupmq.middleware import Middleware
from groupmq.options import Retention
from groupmq.ordering import Ordering
from groupmq.queue import Queue
from groupmq.repeat import Cron, Every
from groupmq.snapshot import LogLine
from groupmq.version import __version__
from groupmq.worker import Worker

__all__ = [
    "Backoff",
    "ConfigurationError",
    "ConnectionLost",
    "Cron",
    "Debounce",
    "Event",
    "Every",
    "FailJob",
    "GroupFull",
    "GroupMQError",
    "HandlerTimeout",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobRemoved",
    "LeaseLost",
    "LogLine",
    "Middleware",
    "Ordering",
    "PayloadTooLarge",
    "Queue",
    "RateLimit",
    "RateLimited",
    "Retention",
    "RetryJob",
    "ScriptError",
    "ServerRefused",
    "Throttle",
    "Worker",
    "WrongState",
    "__version__",
]
