"""The methods of a queue, by concept, each with the file that has it."""

from __future__ import annotations

import inspect

from groupmq.client.queue import (
    adding,
    bulk,
    changes,
    checking,
    duties,
    group_changes,
    groups,
    inspection,
    marks,
    measures,
    reading,
    repeats,
    searching,
    stored_settings,
    surveying,
)
from groupmq.client.queue.base import QueueBase


class QueueMethods(QueueBase):
    """The methods that both clients share. Each is a function that takes the queue as its first argument.

    Options and addresses are in `base.py`, the class methods (`Queue.open`, `Queue.list` ...) in `directory.py`.
    """

    # Adding jobs
    add = adding.add
    add_many = adding.add_many
    create_job = adding.create_job
    check_job = adding.check_job
    save_all = adding.save_all

    # Repeating jobs
    remove_repeating_job = repeats.remove_repeating_job
    get_repeating_jobs = repeats.get_repeating_jobs

    # Looking at jobs
    get_job = inspection.get_job
    require_job = inspection.require_job
    get_jobs_by_id = reading.get_jobs_by_id
    get_job_ids = inspection.get_job_ids
    get_jobs = inspection.get_jobs
    get_active_jobs = inspection.get_active_jobs
    get_waiting_jobs = inspection.get_waiting_jobs
    get_delayed_jobs = inspection.get_delayed_jobs
    get_completed_jobs = inspection.get_completed_jobs
    get_failed_jobs = inspection.get_failed_jobs
    get_attempts = inspection.get_attempts
    get_position = inspection.get_position

    # Counting jobs
    get_job_counts = inspection.get_job_counts
    get_active_count = inspection.get_active_count
    get_waiting_count = inspection.get_waiting_count
    get_delayed_count = inspection.get_delayed_count
    get_completed_count = inspection.get_completed_count
    get_failed_count = inspection.get_failed_count
    wait_for_empty = inspection.wait_for_empty

    # Finding jobs by a filter, and acting on all that match
    search = searching.search
    retry_many = searching.retry_many
    remove_many = searching.remove_many
    get_failure_groups = searching.get_failure_groups

    # Changing one job
    remove = changes.remove
    retry = changes.retry
    skip = changes.skip
    promote = changes.promote
    change_delay = changes.change_delay
    update_data = changes.update_data
    fail = changes.fail
    cancel = changes.cancel

    # Looking at groups
    get_groups = groups.get_groups
    get_unique_groups = groups.get_unique_groups
    get_unique_groups_count = groups.get_unique_groups_count
    get_blocked_groups = groups.get_blocked_groups
    get_open_breakers = groups.get_open_breakers
    get_group = groups.get_group
    get_group_jobs = groups.get_group_jobs
    get_group_job_count = groups.get_group_job_count

    # Changing one group
    pause_group = group_changes.pause_group
    resume_group = group_changes.resume_group
    set_group_concurrency = group_changes.set_group_concurrency
    set_group_rate_limit = group_changes.set_group_rate_limit
    cancel_group = group_changes.cancel_group

    # The whole queue
    pause = changes.pause
    resume = changes.resume
    is_paused = changes.is_paused
    get_turn = inspection.get_turn
    get_last_event_id = inspection.get_last_event_id
    get_settings = stored_settings.get_settings
    reconfigure = stored_settings.reconfigure
    clean = bulk.clean
    purge = bulk.purge
    obliterate = bulk.obliterate
    repair = bulk.repair

    # Watching the queue
    get_metrics = measures.get_metrics
    get_failures = measures.get_failures
    get_workers = measures.get_workers
    survey = surveying.survey
    check = checking.check
    mark = marks.mark
    get_marks = marks.get_marks
    ensure_writable = checking.ensure_writable
    get_server_info = checking.get_server_info

    # Duties, which workers run beside the jobs
    run_duty_once = duties.run_duty_once
    run_scheduler_once = duties.run_scheduler_once
    promote_delayed_jobs = duties.promote_delayed_jobs
    recover_delayed_groups = duties.recover_delayed_groups
    check_stalled_jobs = duties.check_stalled_jobs

    # Steps of these methods that work differently with partitions
    _add_repeating = repeats.add_repeating
    _walk = reading.walk
    _list_ids = reading.list_ids
    _list_waiting = reading.list_waiting
    _lanes = groups.lanes
    _listed = groups.listed
    _counts = surveying.counts
    _spread_settings = stored_settings.spread_settings
    _reasons = searching.reasons
    _retry_found = searching.retry_found
    _remove_found = searching.remove_found


for _method in vars(QueueMethods).values():
    if inspect.isfunction(_method):
        # `typing.get_type_hints` would not find this class, which the function's module imports for type checkers only.
        _method.__annotations__.pop("queue", None)
