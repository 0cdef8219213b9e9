"""Log lines, for people or for machines, and what a worker tells about its jobs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from groupmq.errors import said
from groupmq.job import Job
from groupmq.worker import Worker

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
_logger = logging.getLogger("groupmq.worker")
_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object per record, with whatever was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(level: str, form: str) -> None:
    """Log to stderr. Whatever the handler's module sets up itself comes later and wins."""
    handler = logging.StreamHandler(sys.stderr)
    if form == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def last_words(message: str, form: str) -> None:
    """Why the process ends, in one line."""
    message = " ".join(message.split())
    if form == "json":
        record = logging.LogRecord("groupmq.cli", logging.ERROR, "", 0, message, (), None)
        message = JsonLines().format(record)
    else:
        message = f"groupmq: {message}"
    print(message, file=sys.stderr, flush=True)


def narrate(worker: Worker) -> None:
    """Log what becomes of the worker's jobs."""

    def told(job: Job) -> dict[str, Any]:
        return {"job": job.id, "group": job.group_id, "attempt": job.attempts_made, "worker": worker.name}

    def active(job: Job) -> None:
        _logger.debug("job %s started", job.id, extra=told(job) | {"attempt": job.attempt})

    def completed(job: Job) -> None:
        _logger.debug("job %s completed", job.id, extra=told(job))

    def retrying(job: Job, error: BaseException) -> None:
        _logger.warning(
            "job %s will be retried after attempt %d: %s", job.id, job.attempts_made, _named(error), extra=told(job)
        )

    def failed(job: Job) -> None:
        _logger.error(
            "job %s failed for good after attempt %d: %s",
            job.id,
            job.attempts_made,
            job.failed_reason,
            extra=told(job),
        )

    def given_back(job: Job) -> None:
        _logger.warning("job %s did not end in time and is given back", job.id, extra=told(job))

    worker.on("active", active)
    worker.on("completed", completed)
    worker.on("retrying", retrying)
    worker.on("failed", failed)
    worker.on("graceful-timeout", given_back)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {said(error)}".removesuffix(": ")
