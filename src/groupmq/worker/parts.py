"""The parts of a worker, each made from those that it uses.

Jobs go one way: the fetcher gives them to the dispatcher, which gives them to the executor. The executor reports each
outcome to the requester that took the job, and the fetcher sends it with the next call of that requester. The heartbeat
and the duties are separate from that. Parts that another part must wake subscribe to it (`on_return`, `on_blocked`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from groupmq.client.answers.jobs import MakeJob
from groupmq.client.connection.blocking_reads import WakeConnection
from groupmq.client.job import Job
from groupmq.client.outage import OutageLog
from groupmq.client.queue.queue import Queue
from groupmq.core.worker_options import WorkerOptions
from groupmq.sync.connection.mail import MailConnection
from groupmq.worker.batches import BatchExecutor
from groupmq.worker.demand import Demand
from groupmq.worker.dispatcher import Dispatcher
from groupmq.worker.execution import JobExecutor
from groupmq.worker.executor import Executor
from groupmq.worker.fetcher import Fetcher, FetchSettings
from groupmq.worker.heartbeat import Heartbeat, HeartbeatSettings
from groupmq.worker.leases import LeaseKeeper
from groupmq.worker.live import LiveSettings
from groupmq.worker.loop_watch import LoopWatch
from groupmq.worker.maintenance import Maintenance
from groupmq.worker.outage import outage_log
from groupmq.worker.outcome import OutcomePolicy
from groupmq.worker.prefetch import Prefetch
from groupmq.worker.reachability import Reachability
from groupmq.worker.runners import Preparing
from groupmq.worker.sharing import SharedSlots
from groupmq.worker.telemetry import Telemetry


class WorkerParts(NamedTuple):
    prefetch: Prefetch
    reachability: Reachability
    maintenance: Maintenance
    executor: JobExecutor
    dispatcher: Dispatcher
    fetcher: Fetcher
    loop_watch: LoopWatch
    leases: LeaseKeeper
    heartbeat: Heartbeat


class Sharing(NamedTuple):
    """A worker as seen by the workers with which it shares slots (sharing.py)."""

    executor: JobExecutor
    demand: Demand
    fetcher: Fetcher

    def slots_used(self) -> int:
        return self.executor.slots_used

    def slots_asked(self) -> int:
        asked = 0
        for requester in self.demand.requesters:  # often called: a generator takes twice as long
            if not requester.overdue:
                asked += requester.asked
        return asked

    def is_hungry(self) -> bool:
        demand = self.demand
        return self.fetcher.started and demand.phase == "taking" and demand.wants and not demand.overdue

    def look_again(self) -> None:
        if self.fetcher.started:
            self.fetcher.look_again()


def _when_blocked(fetcher: Fetcher, heartbeat: Heartbeat) -> None:
    if fetcher.unseen.any():
        heartbeat.start()  # that of a partition without a job of this worker does not beat yet
    heartbeat.hurry()


def make_parts(
    worker_id: str,
    queue: Queue,
    options: WorkerOptions,
    telemetry: Telemetry,
    invoke: Callable[[Any], Awaitable[Any]],
    changed: Callable[[], None],
    slots: SharedSlots | None = None,
    before: WorkerParts | None = None,
    loop_watch: LoopWatch | None = None,
    outage: OutageLog | None = None,
    *,
    preparing: Preparing | None = None,
    watches_marker: bool = True,
    rounds: int = 1,
) -> WorkerParts:
    """`invoke` calls the handler: with a job, or with a list of them if it takes batches.

    `changed` is called when a run has ended, when nothing is ready, and when the worker gives up. `slots`: those that
    it shares with other workers; None = it has its own. `before`: parts that these replace and that were not started.
    `loop_watch`, `outage`: those that it shares too. `preparing`: as in `Executor`. `watches_marker`: it has its own
    connection that waits for work; `rounds` as in `Fetcher`.
    """
    shared, connection = queue.options, queue._connection
    serializer, live = shared.serializer, LiveSettings(queue, options)

    def make_jobs() -> MakeJob[Job]:
        attempts = live.now().max_attempts
        return lambda job_id, state, stored: Job(queue, serializer, job_id, state, stored, attempts)

    outcomes = OutcomePolicy(shared, options.backoff, live)
    prefetch = Prefetch(options.prefetch)
    if before is None:
        part = connection.session.keys.part
        words = "" if part is None else f" in partition {part.number + 1} of {part.of}"
        if outage is None:
            outage, words = outage_log(options.name, shared.name + words, options.logger), ""
        reachability = Reachability(outage, telemetry, options.unreachable_timeout, changed, words)
    else:
        reachability = before.reachability  # it knows how long the server has been away
    maintenance = Maintenance(options, live, queue._call, reachability, telemetry)

    def ended() -> None:
        changed()
        dispatcher.slot_freed()

    executor: JobExecutor
    if options.batch is None:
        executor = Executor(invoke, outcomes, telemetry, prefetch, ended, preparing)
    else:
        executor = BatchExecutor(invoke, outcomes, telemetry, ended)
    dispatcher = Dispatcher(
        options.name,
        options.concurrency,
        make_jobs,
        outcomes,
        executor,
        prefetch,
        telemetry,
        on_rest=changed,
        on_tick=maintenance.tick_in,
    )
    demand = Demand(
        prefetch,
        options.concurrency,
        # Not longer than a lease: a lease that is granted while this worker sleeps is seen before it can expire.
        min(options.stalled_interval, shared.job_timeout_ms / 1000),
        atomic=options.atomic_completion,
        exclusive=shared.exclusive,
        batch=options.batch,
    )
    keys = connection.session.keys
    markers = [keys.wake, keys.hail(worker_id)] if shared.exclusive else [keys.wake]
    # No offers where a free slot may be used by others, or where several jobs are taken together or in turns.
    offers = watches_marker and slots is None and options.batch is None and not shared.exclusive
    if offers:
        markers.append(keys.grants(worker_id))
    fetcher = Fetcher(
        dispatcher,
        demand,
        reachability,
        connection,
        (lambda: WakeConnection(connection.endpoint, markers, options.blocking_timeout)) if watches_marker else None,
        FetchSettings(
            worker_id,
            live,
            turn_size=options.batch_size if shared.exclusive else None,
            together_ms=None if options.batch is None else options.batch_wait_ms,
            grants=keys.grants(worker_id) if offers else None,
        ),
        rounds,
    )
    if slots is not None:
        share = slots.join(Sharing(executor, demand, fetcher), None if before is None else before.dispatcher.share)
        dispatcher.share = share
    if loop_watch is None:
        loop_watch = LoopWatch(options.name, executor.running_tasks, options.logger)
    leases = LeaseKeeper(options, live, executor, fetcher, dispatcher, outcomes, loop_watch, reachability)
    heartbeat = Heartbeat(
        # A beat that hangs must be given up in time for the next one to save the leases.
        lambda: MailConnection(
            connection.endpoint, shared, min(max(options.heartbeat, 0.2), 10.0), connection.session.known
        ),
        HeartbeatSettings(worker_id, live),
        leases,
    )
    # After an outage the leases must be renewed before they expire. When the loop is blocked, unstarted jobs go back.
    reachability.on_return(heartbeat.retry_now)
    # If leases were made shorter, the next beat would come too late by the old interval.
    live.on_change = heartbeat.hurry
    loop_watch.on_blocked(partial(_when_blocked, fetcher, heartbeat))
    return WorkerParts(
        prefetch,
        reachability,
        maintenance,
        executor,
        dispatcher,
        fetcher,
        loop_watch,
        leases,
        heartbeat,
    )
