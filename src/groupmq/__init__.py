"""groupmq: a job queue on Redis and Valkey. Jobs of one group run in order, one at a time; groups run in parallel."""

from groupmq.backoff import Backoff
from groupmq.codec import JSON
from groupmq.duties import Duty
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
    QueueNotFound,
    RateLimited,
    RetryJob,
    ScriptError,
    ServerRefused,
    WrongState,
)
from groupmq.events import Event
from groupmq.events import Kind as EventKind
from groupmq.filters import JobFilter
from groupmq.found import (
    Attempt,
    FailureGroup,
    FailureGroups,
    GroupPage,
    JobPage,
    JobPosition,
    Lane,
    RemoveReport,
    RetryReport,
)
from groupmq.job import Job
from groupmq.limits import Debounce, RateLimit, Throttle
from groupmq.middleware import Middleware
from groupmq.options import MAX_ATTEMPTS, Retention
from groupmq.ordering import Ordering
from groupmq.queue import Queue
from groupmq.repeat import Cron, Every
from groupmq.server_views import Finding, Mark, QueueInfo, ServerInfo
from groupmq.settings import QueueSettings
from groupmq.snapshot import LogLine
from groupmq.survey_views import GroupActivity, JobTotals, LiveWorker, QueueSurvey, RecentFailure, RunningJob
from groupmq.typed_json import TypedJSON
from groupmq.version import __version__
from groupmq.views import (
    HELD_REASONS,
    DutyReport,
    Failure,
    GroupInfo,
    HeldGroup,
    Histogram,
    JobCounts,
    Metrics,
    MinuteStats,
    RepairReport,
    RepeatingJob,
    StalledJob,
    Turn,
    WorkerInfo,
)
from groupmq.worker import Worker

__all__ = [
    "HELD_REASONS",
    "JSON",
    "MAX_ATTEMPTS",
    "Attempt",
    "Backoff",
    "ConfigurationError",
    "ConnectionLost",
    "Cron",
    "Debounce",
    "Duty",
    "DutyReport",
    "Event",
    "EventKind",
    "Every",
    "FailJob",
    "Failure",
    "FailureGroup",
    "FailureGroups",
    "Finding",
    "GroupActivity",
    "GroupFull",
    "GroupInfo",
    "GroupMQError",
    "GroupPage",
    "HandlerTimeout",
    "HeldGroup",
    "Histogram",
    "Job",
    "JobCancelled",
    "JobCounts",
    "JobFailed",
    "JobFilter",
    "JobNotFound",
    "JobPage",
    "JobPosition",
    "JobRemoved",
    "JobTotals",
    "Lane",
    "LeaseLost",
    "LiveWorker",
    "LogLine",
    "Mark",
    "Metrics",
    "Middleware",
    "MinuteStats",
    "Ordering",
    "PayloadTooLarge",
    "Queue",
    "QueueInfo",
    "QueueNotFound",
    "QueueSettings",
    "QueueSurvey",
    "RateLimit",
    "RateLimited",
    "RecentFailure",
    "RemoveReport",
    "RepairReport",
    "RepeatingJob",
    "Retention",
    "RetryJob",
    "RetryReport",
    "RunningJob",
    "ScriptError",
    "ServerInfo",
    "ServerRefused",
    "StalledJob",
    "Throttle",
    "Turn",
    "TypedJSON",
    "Worker",
    "WorkerInfo",
    "WrongState",
    "__version__",
]
