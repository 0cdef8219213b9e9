"""Invented rows for the pages of the dashboard: jobs, queues, lanes, tasks."""

from __future__ import annotations

import math  # isort: skip
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from groupmq.dashboard.documents.attempts import AllowedAttempts
from groupmq.dashboard.documents.held import WORDS, Held
from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.lane import LaneDocument
from groupmq.dashboard.documents.progress import Progress
from groupmq.dashboard.documents.queue_row import Counts, QueueRow
from groupmq.dashboard.documents.server import Server
from groupmq.dashboard.documents.starting import Starting
from groupmq.dashboard.documents.task import TaskRow
from groupmq.dashboard.documents.warning import QueueWarning
from groupmq.dashboard.redaction import Redactor

NOW = datetime.now(UTC)
OPEN = Redactor(None)
HOSTILE = "</script><img src=x onerror=alert(1)>\"'`{{7*7}}{% raw %}\u202e\u0000&lt;" + "x" * 300
STATES = {None: "ready", "running": "busy", "stopping": "busy", "paused": "paused", "blocked": "blocked"}
"""The state of a group, by what holds it; for all other reasons it is parked."""


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


class SampleRows:
    """All rows, with `text` wherever a job, a group or an error could have put it."""

    def __init__(self, text: str | None = None) -> None:
        self._text = text

    def say(self, text: str) -> str:
        return text if self._text is None else self._text

    def held(self, reason: str = "backoff") -> Held:
        return Held(
            reason=reason,
            words=WORDS[reason],
            job_id=self.say("8f3a91c2d0"),
            attempt=2,
            max_attempts=5,
            since=ago(421),
            until=NOW + timedelta(seconds=92),
            waiting=37,
            wait=421.0,
        )

    def job(self, number: int, state: str = "waiting", **changes: Any) -> JobRow:
        running = state == "active"
        row = JobRow(
            id=self.say(f"01jx{number:06x}"),
            group_id=self.say(f"user:{number % 7}"),
            state=state,
            attempt=2 if running else 1,
            attempts_made=1 if running else 0,
            max_attempts=5,
            priority=0,
            created_at=ago(600 + number),
            run_at=NOW + timedelta(seconds=60 * number) if state == "delayed" else None,
            started_at=ago(12.5) if state not in ("waiting", "delayed") else None,
            finished_at=ago(3) if state in ("completed", "failed") else None,
            expires_at=None,
            elapsed=12.5 if state not in ("waiting", "delayed") else None,
            progress=Progress(fraction=0.42, text=self.say("42%")) if running else None,
            error=self.say("TimeoutError: payment service did not answer in 10 s") if state == "failed" else None,
            worker=self.say("web-1:4711") if running else None,
            preview=self.say('{"order": 1042, "amount": 999, "currency": "SEK"}'),
            redacted=False,
        )
        return replace(row, **changes)

    def row(self, name: str = "orders", number: int = 3) -> QueueRow:
        wave = [round(40 + 30 * math.sin(i / 6 + number)) for i in range(60)]
        bad = number == 3
        return QueueRow(
            name=name,
            display_name=self.say(name.title()),
            description=self.say("Charges and refunds, one customer at a time"),
            paused=number == 5,
            counts=Counts(active=8, waiting=1204, delayed=37, completed=98_112, failed=14, total=1249, groups=311),
            rate=12.4,
            failed_rate=0.2 if bad else 0.0,
            sparkline=wave,
            failed_sparkline=[i % 11 == 0 for i in range(60)],
            oldest_wait=3.2,
            held=self.held() if bad else None,
            held_group=self.say("user:42") if bad else None,
            blocked=3 if bad else 0,
            longest_blocked=4000.0 if bad else None,
            breakers_open=2 if bad else 0,
            longest_breaker_open=900.0 if bad else None,
            workers=2,
            slots=16,
            busy=8,
            use=0.5,
            starting=Starting(reason="soon", words=self.say("Nothing holds it.")),
            attempts=AllowedAttempts(most=5, by_worker={self.say("worker-1"): 7}),
            warnings=[
                QueueWarning(
                    level="warn",
                    text="A group has been held for a long time.",
                    hint="Its lane says what holds it.",
                    link="lanes",
                )
            ]
            if bad
            else [],
            error=None,
        )

    def lane(self, number: int) -> LaneDocument:
        kinds = (
            "backoff",
            "running",
            None,
            "paused",
            "window",
            "rate",
            "rate_limited",
            "stopping",
            "blocked",
            "breaker",
        )
        reason = kinds[number % len(kinds)]
        return LaneDocument(
            group_id=self.say(f"user:{number}"),
            state=STATES.get(reason, "parked"),
            paused=reason == "paused",
            waiting=37 - number,
            active=1 if reason in ("running", "stopping") else 0,
            delayed=number % 3,
            concurrency=1,
            rate_limit="100 in 1 s" if reason == "rate" else None,
            held=self.held(reason) if reason else None,
            error=self.say("TimeoutError: no answer") if reason in ("backoff", "blocked") else None,
            blocked_by=self.say("job-17") if reason == "blocked" else None,
            blocked_since=NOW if reason == "blocked" else None,
            blockers=2 if reason == "blocked" else 0,
            failures=7 if reason == "breaker" else 0,
            breaker_since=NOW if reason == "breaker" else None,
            breaker_until=NOW if reason == "breaker" else None,
            running=[self.job(number, "active")] if reason in ("running", "stopping") else [],
            next=[self.job(number * 10 + i) for i in range(5)],
            more=32,
        )

    def server(self) -> Server:
        return Server(
            kind="valkey",
            version="9.1.0",
            role="primary",
            used_memory=18_400_000,
            maxmemory=0,
            eviction="noeviction",
            persistence="aof",
            uptime=86_400.0 * 3,
            clients=14,
        )

    def task(self, state: str = "running") -> TaskRow:
        return TaskRow(
            id="a1b2c3d4e5f60718",
            action="retry-matching",
            title=self.say("Retry failed jobs matching error:TimeoutError"),
            state=state,
            matched=1204,
            done=310,
            skipped=2,
            scanned=4000,
            fraction=310 / 1204,
            user=self.say("ada"),
            started_at=ago(20),
            ended_at=None if state == "running" else NOW,
            text="310 of 1,204 done so far, 2 skipped",
            stoppable=state == "running",
        )

    # Pages, by the name of their route
