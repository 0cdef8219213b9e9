# Generated from src/groupmq/client/duties/presence.py by `make sync`; do not edit.
"""Presence: forgets workers that died without deregistering."""

from __future__ import annotations

from groupmq.client.answers.measures import gone_workers
from groupmq.core.views import DutyReport
from groupmq.protocol import commands
from groupmq.sync.queue.caller import Caller


class PresenceCleanup:
    """Deregisters workers that have been silent for longer than a minute (`gone_workers`), and deletes the last replies
    that the server keeps for them."""

    task = "clean up after dead workers"

    def __init__(self, call: Caller) -> None:
        self._call = call

    def run_once(self) -> DutyReport:
        gone = gone_workers(self._call(commands.stats()))
        if gone:
            requesters = [requester for worker in gone for requester in commands.requester_names(worker)]
            self._call(commands.leave(gone, requesters))
        return DutyReport(len(gone), gone_workers=tuple(gone))
