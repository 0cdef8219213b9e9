"""groupmq: a job queue on Redis and Valkey. Jobs of one group run in order, one at a time; groups run in parallel."""

from groupmq.client.job import Job
from groupmq.client.queue.queue import Queue
from groupmq.core.backoff import Backoff
from groupmq.core.codec import JSON
from groupmq.core.draft_chain import JobDraft
from groupmq.core.durability import Durability
from groupmq.core.duty import DutyName as Duty
from groupmq.core.errors import (
    BatchFailed,
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
    NotDurable,
    PayloadTooLarge,
    QueueNotFound,
    RateLimited,
    RetryJob,
    ScriptError,
    ServerRefused,
    Snooze,
    WrongState,
)
from groupmq.core.events import Event
from groupmq.core.events import Kind as EventKind
from groupmq.core.filters import JobFilter
from groupmq.core.limits import Breaker, Debounce, RateLimit, Throttle
from groupmq.core.middleware import Middleware
from groupmq.core.ordering import Ordering
from groupmq.core.pages import (
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
from groupmq.core.queue_options import MAX_ATTEMPTS
from groupmq.core.retention import Retention
from groupmq.core.schedule import Cron, Every
from groupmq.core.server_views import Finding, Mark, QueueInfo, ServerInfo
from groupmq.core.settings import QueueSettings
from groupmq.core.snapshot import LogLine
from groupmq.core.survey_views import GroupActivity, JobTotals, LiveWorker, QueueSurvey, RecentFailure, RunningJob
from groupmq.core.typed_json import TypedJSON
from groupmq.core.version import __version__
from groupmq.core.views import (
    HELD_REASONS,
    DutyReport,
    ExpiredJob,
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
from groupmq.worker import CurrentJob, Health, Worker, WorkerMetrics, Workers

__all__ = [
    "HELD_REASONS",
    "JSON",
    "MAX_ATTEMPTS",
    "Attempt",
    "Backoff",
    "BatchFailed",
    "Breaker",
    "ConfigurationError",
    "ConnectionLost",
    "Cron",
    "CurrentJob",
    "Debounce",
    "Durability",
    "Duty",
    "DutyReport",
    "Event",
    "EventKind",
    "Every",
    "ExpiredJob",
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
    "Health",
    "HeldGroup",
    "Histogram",
    "Job",
    "JobCancelled",
    "JobCounts",
    "JobDraft",
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
    "NotDurable",
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
    "Snooze",
    "StalledJob",
    "Throttle",
    "Turn",
    "TypedJSON",
    "Worker",
    "WorkerInfo",
    "WorkerMetrics",
    "Workers",
    "WrongState",
    "__version__",
]
