"""A job as a line of JSON, and back."""

from __future__ import annotations

import inspect
import time
from datetime import datetime
from typing import Any

from groupmq import Backoff, ConfigurationError
from groupmq.cli.options.values import instant, read_json
from groupmq.cli.output.readable_data import NotJson
from groupmq.sync import Job, Queue

_OPTIONS = {name for name, one in inspect.signature(Queue.add).parameters.items() if one.kind is one.KEYWORD_ONLY}
GIVEN = frozenset(_OPTIONS - {"dedupe", "repeat"} | {"data", "id", "expires_at", "headers"})
"""Fields that make a job: the options of `add`, but for those that stand for several jobs, and what an export adds."""
FACTS = frozenset(
    "queue state attempts_made attempt return_value failed_reason error_class stacktrace progress worker fence "
    "duplicate created_at started_at finished_at blocks_since logs".split()
)
"""Facts for people that `job export` writes and `job import` ignores."""


def line_of(job: Job) -> dict[str, Any]:
    """The fields that add the job again in its order, and a few facts for people. Raises ValueError if its data is not
    JSON."""
    if isinstance(job.data, NotJson):
        raise ValueError(f"job {job.id!r}: its data is not JSON (the queue has a serializer of its own)")
    line = {
        "id": job.id,
        "group_id": job.group_id,
        "data": job.data,
        "priority": job.priority,
        "order_ms": job.order_ms,
        "max_attempts": job.own_max_attempts,
        "timeout": job.timeout,
        "backoff": job.backoff and {name: getattr(job.backoff, name) for name in ("base", "factor", "max", "jitter")},
        "on_retry": job.on_retry,
        "on_failed": job.on_failed,
        # The end of a back-off is left out: as a due time it would take the job out of its group.
        "run_at": job.run_at if job.state == "delayed" else None,
        "expires_at": job.expires_at,
        "headers": job.headers or None,
        "state": job.state,
        "created_at": job.created_at,
        "attempts_made": job.attempts_made,
        "failed_reason": job.failed_reason,
    }
    return {name: value for name, value in line.items() if value is not None or name == "data"}


def item_of(line: str, *, new_id: bool = False) -> dict[str, Any]:
    """The job of a line, as `add_many` takes it; ValueError says what is wrong with the line."""
    try:
        fields = read_json(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError("expected a JSON object")
    unknown = sorted(fields.keys() - GIVEN - FACTS)
    if unknown:
        raise ValueError(f"unknown {', '.join(map(repr, unknown))}; known: {', '.join(sorted(GIVEN))}")
    if "data" not in fields:
        raise ValueError("data is missing")
    given = {name: value for name, value in fields.items() if name in GIVEN and value is not None}
    data = given.pop("data", None)
    own_id = given.pop("job_id", given.pop("id", None))
    if "run_at" in given:
        given["run_at"] = instant(given["run_at"])
    if "expires_at" in given:
        # A ttl counts from when the job may start.
        starts = max(time.time(), _seconds(given.get("run_at", 0.0)))
        given["ttl"] = max(0.001, _seconds(instant(given.pop("expires_at"))) - starts)
    if isinstance(given.get("backoff"), dict):
        given["backoff"] = _backoff(given["backoff"])
    if not _is_text_map(given.get("headers", {})):
        raise ConfigurationError.expected("headers", "an object of strings", given["headers"])
    if new_id:
        given.pop("unique_for", None)  # it belongs to the id
    return {"data": data, "job_id": None if new_id else own_id, **given}


def _seconds(moment: datetime | float) -> float:
    return moment.timestamp() if isinstance(moment, datetime) else moment


def _backoff(fields: dict[str, Any]) -> Backoff:
    try:
        return Backoff.exponential(**fields)
    except TypeError:
        raise ConfigurationError.expected("backoff", "seconds, or base, factor, max, jitter", fields) from None


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
