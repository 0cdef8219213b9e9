"""The queue as a whole: its stored settings, marks in its history, and whether it moves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from groupmq.client.operations.measuring import Measuring
from groupmq.client.operations.steps import J, Steps
from groupmq.client.operations.surveying import survey
from groupmq.core import findings
from groupmq.core.checks import text, whole
from groupmq.core.durations import Duration, Instant, epoch_millis, seconds
from groupmq.core.errors import ConfigurationError, QueueNotFound
from groupmq.core.server_views import Finding, Mark
from groupmq.core.settings import QueueSettings
from groupmq.core.survey_views import QueueSurvey
from groupmq.core.views import JobCounts
from groupmq.protocol import commands

LONGEST_LABEL = 200
MOST_SURVEYED = 100
_AN_HOUR = 60


class Overseeing(Measuring[J]):
    def get_settings(self) -> Steps[QueueSettings]:
        schema, config = yield commands.look_at_queue()
        if schema is None:
            yield commands.counts()  # it went after we had opened it: opens it anew, or raises QueueNotFound
            _, config = yield commands.look_at_queue()
        return QueueSettings.from_stored(json.loads(config))

    def survey(self, cursor: str, also: Sequence[str], groups: int, runs: int, failures: int) -> Steps[QueueSurvey]:
        for name, limit in (("groups", groups), ("runs", runs), ("failures", failures)):
            whole(limit, name, 0, MOST_SURVEYED)
        return (yield from survey(text(cursor, "cursor"), also, groups, runs, failures))

    def mark(self, label: str, at: Instant | None) -> Steps[Mark]:
        if len(text(label, "label")) > LONGEST_LABEL:
            raise ConfigurationError.expected("label", f"at most {LONGEST_LABEL} characters", label)
        ms = yield commands.put_mark(label, None if at is None else epoch_millis(at, "at"))
        return Mark(datetime.fromtimestamp(ms / 1000, UTC), label)

    def get_marks(self, since: Instant | None) -> Steps[list[Mark]]:
        found = yield commands.marks(None if since is None else epoch_millis(since, "since"))
        return [Mark(datetime.fromtimestamp(ms / 1000, UTC), label) for ms, label in found]

    def check(self, oldest: Duration, look: int) -> Steps[list[Finding]]:
        """What the queue itself says."""
        most = seconds(oldest, "oldest")
        try:
            active, waiting, delayed, completed, failed, groups, paused, *_ = yield commands.counts()
        except QueueNotFound:
            return [findings.no_queue(self.options.name)]
        counts = JobCounts(active, waiting, delayed, completed, failed, active + waiting + delayed, groups)
        workers = yield from self.get_workers()
        metrics = yield from self.get_metrics(_AN_HOUR, look=look)
        return [
            findings.queue(self.options.name, counts),
            findings.paused_queue(paused=paused == 1),
            findings.workers(len(workers), counts, paused=paused == 1),
            findings.oldest(metrics.oldest_startable_wait, most),
            findings.held(metrics.longest_held, most),
            findings.retention(sum(minute.retention_dropped for minute in metrics.series)),
        ]
