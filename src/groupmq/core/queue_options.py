"""The options of a queue: frozen, and checked when they are made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict

from groupmq.core import backoff as backoffs
from groupmq.core import limits, loggers, ordering
from groupmq.core.backoff import Backoff, BackoffPolicy
from groupmq.core.checks import Logger, flag, one_of, text, whole
from groupmq.core.codec import JSON, Serializer
from groupmq.core.durability import Durability, DurabilityName, durability
from groupmq.core.durations import Duration, millis
from groupmq.core.errors import ConfigurationError
from groupmq.core.limits import Breaker, RateLimit
from groupmq.core.ordering import Ordering
from groupmq.core.partitions import MOST_PARTITIONS
from groupmq.core.retention import KEEP_COMPLETED, KEEP_FAILED, Retention, retention
from groupmq.core.signatures import complete

OnRetry = Literal["hold", "yield"]
OnFailed = Literal["continue", "hold"]
Fairness = Literal["oldest", "round-robin"]
DEFAULT_PREFIX = "groupmq"
MAX_PRIORITY = 1023
MAX_ATTEMPTS = 65_535


HANDLING = ("job_timeout", "max_attempts", "backoff", "on_retry", "keep_completed", "keep_failed")
"""Stored settings by which processes handle jobs; the scripts get them with each call that needs them."""

SHARED = (
    "group_concurrency on_failed breaker ordering fairness exclusive rate_limit group_rate_limit "
    "max_group_size priority_ageing events partitions"
).split()
"""Stored settings that the scripts act on."""

DURATIONS = ("job_timeout", "priority_ageing")
"""Stored settings that are durations: seconds as users give them and as they are stored, ms in `QueueOptions`."""

SHARED_DEFAULTS = {"on_failed": "continue", "fairness": "oldest", "exclusive": False, "events": True, "partitions": 1}
"""Shared settings that are not stored while they have these values; None for the others."""


class QueueArguments(TypedDict, total=False):
    """The options of `Queue`, declared once. QUEUE_DEFAULTS has the value of each one that is left out."""

    job_timeout: Duration
    """The lease: a job that gets no heartbeat for this long is taken back."""
    max_attempts: int
    """How many attempts a job has if it does not set a number itself."""
    backoff: BackoffPolicy | Duration
    """The wait before the next attempt: a Backoff, seconds, or a function of the attempt, or of attempt and error."""
    on_retry: OnRetry
    """`hold`: a group waits for the next attempt of its job. `yield`: it goes on."""
    on_failed: OnFailed
    """`hold`: a job that fails for good blocks its group until it is retried, skipped or removed. `continue`: the group
    goes on."""
    breaker: Breaker | None
    """A group whose attempts fail this often in a row rests, then one job is tried."""
    keep_completed: int | Retention
    """How many completed jobs are kept, the newest ones; 0: none."""
    keep_failed: int | Retention
    """How many failed jobs are kept, the newest ones; 0: none."""
    ordering: Ordering | None
    """How long a job or a group waits for jobs that arrive late but sort before it."""
    fairness: Fairness
    """The order across groups: `oldest` head first, or `round-robin`."""
    group_concurrency: int
    """Jobs of one group that may run at once."""
    exclusive: bool
    """Only one worker at a time runs jobs of this queue."""
    rate_limit: RateLimit | None
    """The most jobs of the queue that may start in any span of a given length."""
    group_rate_limit: RateLimit | None
    """The same for each group."""
    max_group_size: int | None
    """The most live jobs that a group may have; adding one more raises GroupFull."""
    priority_ageing: Duration | None
    """Waiting for this long counts as one level of priority."""
    partitions: int | None
    """Hash tags over which groups are spread, so that a queue can use every primary of a cluster."""
    events: bool
    """Whether events are written to the queue's log."""
    middleware: Sequence[Any]
    """Hooks around adding and handling."""
    max_payload: int
    """The most bytes that the data of a job, or its return value, may have."""
    serializer: Serializer
    """How data and results become bytes. `TypedJSON` keeps the types of Python."""
    durability: DurabilityName | Durability
    """`replicated`, `fsync`: an add returns only when its job is on replicas, or on disk."""
    prefix: str
    """The prefix of all keys."""
    logger: Logger | Literal[True] | None
    """An object with the methods of a logger; True: the console."""


QUEUE_DEFAULTS: dict[str, Any] = {
    "job_timeout": 30,
    "max_attempts": 3,
    "backoff": backoffs.DEFAULT,
    "on_retry": "hold",
    "on_failed": "continue",
    "breaker": None,
    "keep_completed": KEEP_COMPLETED.count,
    "keep_failed": KEEP_FAILED,
    "ordering": None,
    "fairness": "oldest",
    "group_concurrency": 1,
    "exclusive": False,
    "rate_limit": None,
    "group_rate_limit": None,
    "max_group_size": None,
    "priority_ageing": None,
    "partitions": None,
    "events": True,
    "middleware": (),
    "max_payload": 1024 * 1024,
    "serializer": JSON,
    "durability": "server",
    "prefix": DEFAULT_PREFIX,
    "logger": None,
}


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The options of a queue, checked. Durations are milliseconds from here on."""

    name: str
    prefix: str = QUEUE_DEFAULTS["prefix"]
    job_timeout_ms: int = millis(QUEUE_DEFAULTS["job_timeout"], "job_timeout")
    max_attempts: int = QUEUE_DEFAULTS["max_attempts"]
    backoff: BackoffPolicy = QUEUE_DEFAULTS["backoff"]
    on_retry: OnRetry = QUEUE_DEFAULTS["on_retry"]
    on_failed: OnFailed = QUEUE_DEFAULTS["on_failed"]
    breaker: Breaker | None = QUEUE_DEFAULTS["breaker"]
    keep_completed: Retention = KEEP_COMPLETED
    keep_failed: Retention = KEEP_FAILED
    ordering: Ordering | None = QUEUE_DEFAULTS["ordering"]
    fairness: Fairness = QUEUE_DEFAULTS["fairness"]
    group_concurrency: int = QUEUE_DEFAULTS["group_concurrency"]
    exclusive: bool = QUEUE_DEFAULTS["exclusive"]
    rate_limit: RateLimit | None = QUEUE_DEFAULTS["rate_limit"]
    group_rate_limit: RateLimit | None = QUEUE_DEFAULTS["group_rate_limit"]
    max_group_size: int | None = QUEUE_DEFAULTS["max_group_size"]
    priority_ageing_ms: int | None = QUEUE_DEFAULTS["priority_ageing"]
    partitions: int | None = QUEUE_DEFAULTS["partitions"]
    """None: as stored; 1 for a new queue."""
    events: bool = QUEUE_DEFAULTS["events"]
    max_payload: int = QUEUE_DEFAULTS["max_payload"]
    serializer: Serializer = QUEUE_DEFAULTS["serializer"]
    durability: Durability | None = None
    """None: as the server has it, which is the default."""
    logger: Logger | None = QUEUE_DEFAULTS["logger"]
    """None: the loggers of this library."""
    given: frozenset[str] = frozenset()
    """The stored settings that this process was given. All others are as stored, or the library's defaults."""
    is_stored: bool = field(default=False, compare=False)
    """Whether these are the stored settings. If not, the queue may have others than the defaults here."""

    @classmethod
    def checked(cls, name: object, arguments: QueueArguments) -> QueueOptions:
        """Make options from what the user passed; each mistake raises a ConfigurationError naming its argument."""
        given = complete("Queue", arguments, QUEUE_DEFAULTS)
        serializer = given["serializer"]
        if not isinstance(serializer, Serializer):
            raise ConfigurationError.expected("serializer", "an object with encode and decode", serializer)
        size, ageing = given["max_group_size"], given["priority_ageing"]
        options = cls(
            name=queue_name(name),
            prefix=queue_name(given["prefix"], "prefix"),
            job_timeout_ms=millis(given["job_timeout"], "job_timeout", minimum=0.05),
            max_attempts=whole(given["max_attempts"], "max_attempts", 1, MAX_ATTEMPTS),
            backoff=backoffs.checked(given["backoff"], "backoff"),
            on_retry=on_retry(given["on_retry"]),
            on_failed=on_failed(given["on_failed"]),
            breaker=limits.breaker(given["breaker"]),
            keep_completed=retention(given["keep_completed"], "keep_completed"),
            keep_failed=retention(given["keep_failed"], "keep_failed"),
            ordering=ordering.checked(given["ordering"]),
            fairness=fairness(given["fairness"]),
            group_concurrency=whole(given["group_concurrency"], "group_concurrency", 1, 65_535),
            exclusive=flag(given["exclusive"], "exclusive"),
            rate_limit=limits.rate_limit(given["rate_limit"], "rate_limit"),
            group_rate_limit=limits.rate_limit(given["group_rate_limit"], "group_rate_limit"),
            max_group_size=None if size is None else whole(size, "max_group_size", 1, 2**31),
            priority_ageing_ms=None if ageing is None else priority_ageing(ageing),
            partitions=partitions(given["partitions"]),
            events=flag(given["events"], "events"),
            max_payload=whole(given["max_payload"], "max_payload", 1, 256 * 1024 * 1024),
            serializer=serializer,
            durability=durability(given["durability"]),
            logger=loggers.checked(given["logger"]),
            given=frozenset(name for name in arguments if name in HANDLING or name in SHARED)
            - ({"partitions"} if given["partitions"] is None else set()),
        )
        if options.priority_ageing_ms is not None:
            if options.fairness == "round-robin":
                raise ConfigurationError(
                    "priority_ageing: needs fairness='oldest'; with round-robin, groups do not age"
                )
            if options.ordering is not None and options.ordering.kind == "event_time":
                raise ConfigurationError("priority_ageing: cannot be combined with Ordering.event_time")
        if (options.partitions or 1) > 1:
            refuse_with_partitions(options, options.partitions or 1)
        return options

    def described(self) -> dict[str, Any]:
        """Every stored setting as JSON can hold it. A callable back-off cannot be stored: the default stands for it."""
        ageing, policy = self.priority_ageing_ms, self.backoff
        return {
            "job_timeout": self.job_timeout_ms / 1000,
            "max_attempts": self.max_attempts,
            "backoff": (policy if isinstance(policy, Backoff) else backoffs.DEFAULT).described(),
            "on_retry": self.on_retry,
            "keep_completed": self.keep_completed.described(),
            "keep_failed": self.keep_failed.described(),
            "group_concurrency": self.group_concurrency,
            "on_failed": self.on_failed,
            "breaker": self.breaker and self.breaker.described(),
            "ordering": self.ordering and self.ordering.described(),
            "fairness": self.fairness,
            "exclusive": self.exclusive,
            "events": self.events,
            "rate_limit": self.rate_limit and self.rate_limit.described(),
            "group_rate_limit": self.group_rate_limit and self.group_rate_limit.described(),
            "max_group_size": self.max_group_size,
            "priority_ageing": None if ageing is None else ageing / 1000,
            "partitions": self.partitions or 1,
        }

    @property
    def handling(self) -> str:
        """The settings of HANDLING as they are stored, all of them: a later release may have other defaults."""
        settings = self.described()
        return json.dumps({name: settings[name] for name in HANDLING}, sort_keys=True)

    @property
    def shared(self) -> str:
        """The settings of SHARED as they are stored.

        Those at their default are left out, so a setting that a later release adds changes nothing for old queues.
        """
        settings = self.described()
        changed = {name: settings[name] for name in SHARED if settings[name] != SHARED_DEFAULTS.get(name)}
        return json.dumps(changed, sort_keys=True)

    @property
    def rules(self) -> dict[str, Any]:
        """The settings as the scripts read them (`lua/lib/meta.lua`); only those that differ from the defaults."""
        window = self.ordering
        rules = {
            "event_window": window.window_ms if window and window.kind == "event_time" else None,
            "arrival_window": window.window_ms if window and window.kind == "arrival" else None,
            "max_wait": window.max_wait_ms if window and window.kind == "arrival" else None,
            "round_robin": self.fairness == "round-robin" or None,
            "rate": self.rate_limit and self.rate_limit.packed(),
            "group_rate": self.group_rate_limit and self.group_rate_limit.packed(),
            "exclusive": self.exclusive or None,
            "max_group": self.max_group_size,
            "ageing": self.priority_ageing_ms,
            "silent": None if self.events else True,
            "hold": self.on_failed == "hold" or None,
            "breaker": self.breaker and self.breaker.packed(),
        }
        return {name: value for name, value in rules.items() if value is not None}

    @property
    def as_stored(self) -> QueueOptions:
        """These options, with one partition if no number was given, which is how such a queue is stored."""
        return replace(self, partitions=self.partitions or 1)

    @property
    def keep(self) -> dict[str, int]:
        return {"completed": self.keep_completed.kept, "failed": self.keep_failed.kept}


def attribute_of(setting: str) -> str:
    """The attribute of `QueueOptions` that has a stored setting."""
    return f"{setting}_ms" if setting in DURATIONS else setting


def queue_name(value: object, argument: str = "name") -> str:
    """A name that can stand inside a hash tag: no braces, or the keys of a queue would be spread over cluster slots."""
    name = text(value, argument)
    if "{" in name or "}" in name:
        raise ConfigurationError.expected(argument, "a name without braces (they mark the hash tag)", value)
    return name


def on_retry(value: object, argument: str = "on_retry") -> OnRetry:
    return "hold" if one_of(value, argument, "hold", "yield") == "hold" else "yield"


def on_failed(value: object, argument: str = "on_failed") -> OnFailed:
    return "hold" if one_of(value, argument, "continue", "hold") == "hold" else "continue"


def fairness(value: object) -> Fairness:
    return "oldest" if one_of(value, "fairness", "oldest", "round-robin") == "oldest" else "round-robin"


def priority_ageing(value: object) -> int:
    """Milliseconds of waiting that count as one level of priority; at most a day, so that the order stays exact."""
    ms = millis(value, "priority_ageing", minimum=0.001)
    if ms > 86_400_000:
        raise ConfigurationError.expected("priority_ageing", "at most a day per level", value)
    return ms


def partitions(value: object) -> int | None:
    return None if value is None else whole(value, "partitions", 1, MOST_PARTITIONS)


def refuse_with_partitions(options: QueueOptions, partitions: int) -> None:
    """Refuse settings that count over the whole queue: one primary would have to be asked for every job."""
    for name, instead in (
        ("exclusive", "each partition has its own turn, so several workers could work at the same time"),
        ("rate_limit", "each partition counts its own starts; use group_rate_limit, which holds per group"),
    ):
        if getattr(options, name) and partitions > 1:
            raise ConfigurationError(f"{name}: cannot be combined with partitions={partitions}: {instead}")


AS_STORED: dict[str, Any] = {
    "max_attempts": MAX_ATTEMPTS,
    "keep_completed": Retention(),
    "keep_failed": Retention(),
}
"""How a tool handles the jobs of a queue that has no such settings stored. It does not know how many attempts workers
give a job, nor how many finished jobs they keep, so it neither fails a job early nor removes jobs that they keep."""
