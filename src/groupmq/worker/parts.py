"""The parts of a consumer of a worker, each made from those that it uses.

Jobs go one way: the fetcher gives them to the dispatcher, which gives them to the executor. The executor reports each
outcome to the requester that took the job, and the fetcher sends it with the next call of that requester. The heartbeat
and the duties are separate from that. A part that must be woken by another one subscribes to it, through a method
whose name begins with `on_`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from groupmq.client.answers.jobs import MakeJob
from groupmq.client.connection.blocking_reads import WakeConnection
from groupmq.client.job import Job
from groupmq.client.queue.access import QueueAccess
from groupmq.core.queue_options import QueueOptions
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
from groupmq.worker.outcome import OutcomePolicy
from groupmq.worker.prefetch import Prefetch
from groupmq.worker.reachability import Reachability
from groupmq.worker.runners import Preparing
from groupmq.worker.sharing import SharedSlots
from groupmq.worker.telemetry import Telemetry


class WorkerParts(NamedTuple):
    maintenance: Maintenance
    executor: JobExecutor
    dispatcher: Dispatcher
    fetcher: Fetcher
    prefetch: Prefetch
    leases: LeaseKeeper
    heartbeat: Heartbeat


class ConsumerSetup(NamedTuple):
    """The arguments with which all consumers of a worker are made."""

    worker: str
    """The id of the worker."""
    options: WorkerOptions
    telemetry: Telemetry
    invoke: Callable[[Any], Awaitable[Any]]
    """Calls the handler: with a job, or with a list of them if it takes batches."""
    preparing: Preparing | None
    """As in `Executor`."""
    context: Any
    """The value of `job.context`."""
    slots: SharedSlots | None
    """Slots that are shared with other consumers or other workers; None: the only consumer has its own."""
    changed: Callable[[], None]
    """Called when a run has ended, when nothing is ready, and when a consumer gives up."""
    on_drained: Callable[[], None]
    """Called when a consumer has worked and has nothing more to do."""
    watches_marker: bool = True
    """Each consumer has its own connection that waits for work."""
    waits_until_asked: int = 1
    """After this many blocking reads that timed out, a consumer asks for work even without a marker."""


class SlotUse(NamedTuple):
    """How a consumer uses the slots that it shares with others (sharing.py)."""

    executor: JobExecutor
    demand: Demand

    def slots_used(self) -> int:
        return self.executor.slots_used

    def slots_asked(self) -> int:
        return self.demand.asked_in_time

    def is_hungry(self) -> bool:
        return self.demand.is_hungry


def make_parts(
    setup: ConsumerSetup, access: QueueAccess, reachability: Reachability, loop_watch: LoopWatch
) -> WorkerParts:
    """The parts of one consumer."""
    options, telemetry, queue = setup.options, setup.telemetry, access.queue
    shared, live = queue.options, LiveSettings(queue, options)

    def make_jobs() -> MakeJob[Job]:
        return access.job_maker(live.now().max_attempts, telemetry.progress, setup.context)

    def ended() -> None:
        setup.changed()
        dispatcher.slot_freed()

    outcomes = OutcomePolicy(shared, options.backoff, live)
    prefetch = Prefetch(options.prefetch)
    maintenance = Maintenance(options, access.duties(lambda: live.now().policy), reachability, telemetry)
    executor: JobExecutor
    if options.batch is None:
        executor = Executor(setup.invoke, outcomes, telemetry, prefetch, ended, setup.preparing)
    else:
        executor = BatchExecutor(setup.invoke, outcomes, telemetry, ended)
    demand = _demand(setup, shared, prefetch)
    share = None if setup.slots is None else setup.slots.join(SlotUse(executor, demand))
    dispatcher = Dispatcher(
        options.name,
        options.concurrency,
        make_jobs,
        outcomes,
        executor,
        prefetch,
        telemetry,
        share,
        on_drained=setup.on_drained,
        on_idle=setup.changed,
        on_tick=maintenance.tick_in,
    )
    fetcher = _fetcher(setup, access, live, dispatcher, demand, reachability)
    leases = LeaseKeeper(options, live, executor, fetcher, dispatcher, outcomes, loop_watch, reachability)
    heartbeat = Heartbeat(
        # A beat that hangs must be given up in time for the next one to save the leases.
        lambda: MailConnection(access.endpoint, shared, min(max(options.heartbeat, 0.2), 10.0), access.known),
        HeartbeatSettings(setup.worker, live),
        leases,
    )
    if share is not None:
        share.on_room(fetcher.look_again)
    # After an outage the leases must be renewed before they expire. When the loop is blocked, unstarted jobs go back.
    reachability.on_return(heartbeat.retry_now)
    loop_watch.on_blocked(partial(_when_blocked, fetcher, heartbeat))
    # After leases were made shorter, a beat at the old interval would come too late.
    live.on_change(heartbeat.hurry)
    return WorkerParts(maintenance, executor, dispatcher, fetcher, prefetch, leases, heartbeat)


def _offers(setup: ConsumerSetup, shared: QueueOptions) -> bool:
    """Whether an add may grant a job to this consumer while it is idle.

    No offers where a free slot may be used by others, or where several jobs are taken together or in turns.
    """
    return setup.watches_marker and setup.slots is None and setup.options.batch is None and not shared.exclusive


def _demand(setup: ConsumerSetup, shared: QueueOptions, prefetch: Prefetch) -> Demand:
    options = setup.options
    return Demand(
        prefetch,
        options.concurrency,
        # Not longer than a lease, so that one granted while this worker sleeps is seen before it can expire.
        min(options.stalled_interval, shared.job_timeout_ms / 1000),
        atomic=options.atomic_completion,
        exclusive=shared.exclusive,
        batch=options.batch,
        batch_wait_ms=options.batch_wait_ms,
        offers=_offers(setup, shared),
    )


def _fetcher(
    setup: ConsumerSetup,
    access: QueueAccess,
    live: LiveSettings,
    dispatcher: Dispatcher,
    demand: Demand,
    reachability: Reachability,
) -> Fetcher:
    options, shared, keys = setup.options, access.queue.options, access.keys
    markers = [keys.wake, keys.wake_of(setup.worker)] if shared.exclusive else [keys.wake]
    grants = keys.grants(setup.worker) if _offers(setup, shared) else None
    if grants is not None:
        markers.append(grants)
    return Fetcher(
        dispatcher,
        demand,
        reachability,
        access.connection,
        partial(WakeConnection, access.endpoint, markers, options.blocking_timeout) if setup.watches_marker else None,
        FetchSettings(setup.worker, live, turn_size=options.batch_size if shared.exclusive else None, grants=grants),
        setup.waits_until_asked,
    )


def _when_blocked(fetcher: Fetcher, heartbeat: Heartbeat) -> None:
    if fetcher.has_unseen():
        heartbeat.start()  # it does not beat yet in a partition where this worker has had no job
    heartbeat.hurry()
