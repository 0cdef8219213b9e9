"""Every command's output, for people and for programs, equals a stored one."""

from __future__ import annotations

import pytest

from groupmq.sync import Queue
from tests.cli.operating import Command, golden
from tests.support.workers import one_kind

pytestmark = one_kind

CASES = {
    "job-add": ["job", "add", "orders", "--payload", '{"n": 9}', "--id", "new", "--group", "user:[1]"],
    "job-add-duplicate": ["job", "add", "--payload", "1", "--id", "a"],
    "job-add-delayed": ["job", "add", "--payload", "null", "--id", "new", "--run-at", "2100-01-01T00:00:00Z"],
    "job-status-waiting": ["job", "status", "a"],
    "job-status-completed": ["job", "status", "done"],
    "job-status-failed": ["job", "status", "bad-1"],
    "job-status-delayed": ["job", "status", "late"],
    "job-list": ["job", "list"],
    "job-list-failed": ["job", "list", "--state", "failed", "--group", "user:3", "--limit", "1"],
    "job-list-none": ["job", "list", "--state", "active"],
    "job-retry": ["job", "retry", "bad-1"],
    "job-retry-all": ["job", "retry", "--all", "--failed"],
    "job-promote": ["job", "promote", "late"],
    "job-fail": ["job", "fail", "a", "--reason", "gone"],
    "job-cancel": ["job", "cancel", "a"],
    "job-remove": ["job", "remove", "done"],
    "job-export": ["job", "export", "--state", "waiting", "--state", "delayed", "--state", "failed"],
    "queue-stats": ["queue", "stats", "orders"],
    "queue-list": ["queue", "list"],
    "queue-failures": ["queue", "failures", "orders", "--final"],
    "queue-failures-of-a-group": ["queue", "failures", "--group", "user:4"],
    "queue-groups": ["queue", "groups"],
    "queue-groups-some": ["queue", "groups", "--limit", "1", "--group", "user:2"],
    "queue-settings": ["queue", "settings"],
    "queue-settings-set": ["queue", "settings", "--set", "max_attempts=7", "--set", "keep_failed=5000,14d"],
    "queue-pause": ["queue", "pause"],
    "queue-pause-group": ["queue", "pause", "--group", "user:1"],
    "queue-resume": ["queue", "resume"],
    "queue-purge": ["queue", "purge", "--yes"],
    "queue-purge-all": ["queue", "purge", "--all", "--yes"],
    "queue-repair": ["queue", "repair"],
    "queue-clean": ["queue", "clean", "--state", "failed", "--older-than", "0"],
    "repeat-list": ["repeat", "list"],
    "repeat-remove": ["repeat", "remove", "hourly", "--group", "sweep"],
    "mark": ["mark", "v1.4", "--at", "2026-01-31T09:00:00+01:00"],
    "check": ["check"],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["txt", "json"])
def test_the_answer_is_the_golden_one(command: Command, stocked: Queue, name: str, form: str) -> None:
    answer = command(*CASES[name], *(["--json"] if form == "json" else []))
    assert answer.err == ""
    # check fails, since jobs wait and there is no worker.
    assert answer.code == (1 if name == "check" else 0)
    golden(f"{name}.{form}", answer.out)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (["job:add", "orders", "--payload", '{"n": 9}', "--id", "new", "--group", "user:[1]"], "job-add"),
        (["job:status", "a"], "job-status-waiting"),
        (["job:retry", "bad-1"], "job-retry"),
        (["job:fail", "a", "--reason", "gone"], "job-fail"),
        (["queue:stats"], "queue-stats"),
        (["queue:purge", "--yes"], "queue-purge"),
    ],
)
def test_the_spelling_with_a_colon_answers_the_same(
    command: Command, stocked: Queue, spelling: list[str], name: str
) -> None:
    golden(f"{name}.txt", command(*spelling).out)
