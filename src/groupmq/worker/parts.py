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
from groupmq.worker.dispatcher import Dispatcher
from groupmq.worker.duties.maintenance import Maintenance
from groupmq.worker.fetching.demand import Demand
from groupmq.worker.fetching.fetcher import Fetcher, FetchSetup
from groupmq.worker.fetching.grants import Grants
from groupmq.worker.fetching.prefetch import Prefetch
from groupmq.worker.fetching.unseen import UnseenAnswers
from groupmq.worker.leases.heartbeat import Heartbeat, HeartbeatSetup
from groupmq.worker.leases.lease_keeper import LeaseKeeper
from groupmq.worker.leases.loop_watch import LoopWatch
from groupmq.worker.live_settings import LiveSettings
from groupmq.worker.reachability import Reachability
from groupmq.worker.runners import Preparing
from groupmq.worker.running.batches import BatchExecutor
from groupmq.worker.running.execution import JobExecutor
from groupmq.worker.running.executor import Executor
from groupmq.worker.running.outcome import OutcomePolicy
from groupmq.worker.sharing import SharedSlots
from groupmq.worker.telemetry import Telemetry


class WorkerParts(NamedTuple):
    maintenance: Maintenance
    executor: JobExecutor
    dispatcher: Dispatcher
    fetcher: Fetcher
    leases: LeaseKeeper
    heartbeat: Heartbeat


class ConsumerSetup(NamedTuple):
    """The arguments that all consumers of a worker have in common."""

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


class Cooperation(NamedTuple):
    """How a consumer works together with the others of its worker, and with other workers."""

    slots: SharedSlots | None
    """Slots that are shared with other consumers or other workers; None: the only consumer has its own."""
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
    setup: ConsumerSetup,
    cooperation: Cooperation,
    access: QueueAccess,
    reachability: Reachability,
    loop_watch: LoopWatch,
    on_change: Callable[[], None],
) -> WorkerParts:
    """The parts of one consumer. `on_change` is called when a run has ended, and when nothing is ready."""
    options, telemetry, queue = setup.options, setup.telemetry, access.queue
    slots = cooperation.slots
    shared, live = queue.options, LiveSettings(queue, options)

    def make_jobs() -> MakeJob[Job]:
        return access.job_maker(live.now().max_attempts, telemetry.progress, setup.context)

    def ended() -> None:
        on_change()
        if slots is not None:
            slots.moved()

    outcomes = OutcomePolicy(shared, options.backoff, live)
    prefetch = Prefetch(options.prefetch)
    maintenance = Maintenance(options, access.duties(lambda: live.now().policy), reachability, telemetry)
    executor: JobExecutor
    if options.batch is None:
        executor = Executor(setup.invoke, outcomes, telemetry, prefetch, ended, setup.preparing)
    else:
        executor = BatchExecutor(setup.invoke, outcomes, telemetry, ended)
    offers = _offers(options, shared, cooperation)
    demand = _demand(options, shared, prefetch, offers=offers)
    share = None if slots is None else slots.join(SlotUse(executor, demand))
    dispatcher = Dispatcher(
        options.name,
        options.concurrency,
        make_jobs,
        outcomes,
        executor,
        prefetch,
        telemetry,
        share,
        on_drained=cooperation.on_drained,
        on_idle=on_change,
    )
    grants, unseen = Grants(), UnseenAnswers()
    fetcher = Fetcher(
        dispatcher,
        demand,
        reachability,
        access.connection,
        _wake(setup, access, offers=offers) if cooperation.watches_marker else None,
        FetchSetup(
            setup.worker,
            live,
            turn_size=options.batch_size if shared.exclusive else None,
            grants=access.keys.grants(setup.worker) if offers else None,
        ),
        grants=grants,
        unseen=unseen,
        on_tick=maintenance.tick_in,
        waits_until_asked=cooperation.waits_until_asked,
    )
    leases = LeaseKeeper(
        options=options,
        live=live,
        executor=executor,
        fetcher=fetcher,
        dispatcher=dispatcher,
        grants=grants,
        unseen=unseen,
        policy=outcomes,
        loop_watch=loop_watch,
        on_tick=maintenance.tick_in,
    )
    heartbeat = Heartbeat(
        # A beat that hangs must be given up in time for the next one to save the leases.
        lambda: MailConnection(access.endpoint, shared, min(max(options.heartbeat, 0.2), 10.0), access.known),
        HeartbeatSetup(setup.worker, live),
        leases,
        reachability,
    )
    if share is not None:
        share.on_room(fetcher.look_again)
    # After an outage the leases must be renewed before they expire. When the loop is blocked, unstarted jobs go back.
    reachability.on_return(heartbeat.retry_now)
    loop_watch.on_blocked(partial(_when_blocked, unseen, heartbeat))
    # After leases were made shorter, a beat at the old interval would come too late.
    live.on_change(heartbeat.hurry)
    return WorkerParts(maintenance, executor, dispatcher, fetcher, leases, heartbeat)


def _offers(options: WorkerOptions, shared: QueueOptions, cooperation: Cooperation) -> bool:
    """Whether an add may grant a job to this consumer while it is idle.

    No offers where a free slot may be used by others, or where several jobs are taken together or in turns.
    """
    alone = cooperation.watches_marker and cooperation.slots is None
    return alone and options.batch is None and not shared.exclusive


def _demand(options: WorkerOptions, shared: QueueOptions, prefetch: Prefetch, *, offers: bool) -> Demand:
    return Demand(
        prefetch,
        options.concurrency,
        # Not longer than a lease, so that one granted while this worker sleeps is seen before it can expire.
        min(options.stalled_interval, shared.job_timeout_ms / 1000),
        atomic=options.atomic_completion,
        exclusive=shared.exclusive,
        batch=options.batch,
        batch_wait_ms=options.batch_wait_ms,
        offers=offers,
    )


def _wake(setup: ConsumerSetup, access: QueueAccess, *, offers: bool) -> Callable[[], WakeConnection]:
    """Makes the connection on which an idle consumer waits for work."""
    keys = access.keys
    markers = [keys.wake]
    if access.queue.options.exclusive:
        markers.append(keys.wake_of(setup.worker))
    if offers:
        markers.append(keys.grants(setup.worker))
    return partial(WakeConnection, access.endpoint, markers, setup.options.blocking_timeout)


def _when_blocked(unseen: UnseenAnswers, heartbeat: Heartbeat) -> None:
    if unseen.any():
        heartbeat.start()  # it does not beat yet in a partition where this worker has had no job
    heartbeat.hurry()
