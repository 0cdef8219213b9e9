"""All actions by name."""

from __future__ import annotations

from groupmq.dashboard.actions import matching, one_group, one_job, repeats, settings, whole_queue
from groupmq.dashboard.actions.action import Action

ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        *one_job.ACTIONS,
        *one_group.ACTIONS,
        *whole_queue.ACTIONS,
        *settings.ACTIONS,
        *matching.ACTIONS,
        *repeats.ACTIONS,
    )
}
