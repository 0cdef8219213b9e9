"""groupmq: a job queue on Redis and Valkey. Jobs of one group run in order, one at a time; groups run in parallel."""

from groupmq.backoff import Backoff
from groupmq.errors import (
    ConfigurationError,
    ConnectionLost,
    FailJob,
    GroupMQError,
    HandlerTimeout,
    JobFailed,
    JobNotFound,
    JobRemoved,
    LeaseLost,
    PayloadTooLarge,
    RetryJob,
    ScriptError,
    ServerRefused,
    WrongState,
)
from groupmq.job import Job
from groupmq.options import Retention
from groupmq.queue import Queue
from groupmq.version import __version__
from groupmq.worker import Worker

__all__ = [
    "Backoff",
    "ConfigurationError",
    "ConnectionLost",
    "FailJob",
    "GroupMQError",
    "HandlerTimeout",
    "Job",
    "JobFailed",
    "JobNotFound",
    "JobRemoved",
    "LeaseLost",
    "PayloadTooLarge",
    "Queue",
    "Retention",
    "RetryJob",
    "ScriptError",
    "ServerRefused",
    "Worker",
    "WrongState",
    "__version__",
]
