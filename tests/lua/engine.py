"""The scripts of one queue, called one by one with a clock that stands still until a test moves it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec
import redis

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.duties.presence import PresenceCleanup, WorkerRecords
from groupmq.client.duties.scheduler import Scheduler
from groupmq.client.job import Job
from groupmq.core import events
from groupmq.core.codec import JSON
from groupmq.core.drafts import draft
from groupmq.core.events import Entry, Event
from groupmq.core.ids import new_id
from groupmq.core.limits import RateLimit
from groupmq.core.queue_options import QueueOptions
from groupmq.core.record import Stored
from groupmq.core.retention import Retention
from groupmq.core.views import DutyReport
from groupmq.protocol import commands
from groupmq.protocol.commands import (
    Added,
    Advanced,
    Call,
    Change,
    Granted,
    Outcome,
    Policy,
    Stalled,
    StoredJob,
    Taken,
)
from groupmq.protocol.keys import Keys, registry_key
from groupmq.sync.connection.connections import BlockingConnection
from tests.support import keyspace, meta
from tests.support.by_hand import Operations, Steps, asked, carry
from tests.support.dump import Dump
from tests.support.keyspace import Keyspace

T = TypeVar("T")
T0 = 1_700_000_000_000
SECOND, HOUR = 1000, 3_600_000
LEASE = 30 * SECOND


class Engine:
    """A queue as its scripts see it. `now` is sent with every call that takes it; None = the server's own time."""

    def __init__(self, url: str, name: str | None = None, *, kept: int = 100, **options: Any) -> None:
        kept_jobs = Retention(count=kept)
        self.options = QueueOptions(
            name=name or f"q-{new_id()}", keep_completed=kept_jobs, keep_failed=kept_jobs, **options
        )
        self.connection = BlockingConnection(Endpoint(url), self.options)
        self.client: Any = redis.Redis.from_url(url)
        self.keys = Keys(self.options.prefix, self.options.name)
        self.now: int | None = T0
        self.policy = Policy(self.options.max_attempts, -1, self.options.keep)
        self.requests = 0
        self.operations = Operations(self.options, self._make)

    def _make(self, job_id: str, state: str, stored: Stored) -> Job:
        return Job(None, JSON, job_id, state, stored, self.options.max_attempts)

    def close(self) -> None:
        self.connection.close()
        self.client.close()

    def call(self, call: Call[T]) -> T:
        return self.connection.call(call, 0.0)

    def run(self, steps: Steps[T]) -> T:
        """Execute a method of the queue."""
        return carry(steps, self.call)

    def at_now(self, call: Call[T]) -> Call[T]:
        """The same call at the engine's own time."""
        return call._replace(args=msgspec.msgpack.encode(msgspec.msgpack.decode(call.args) | {"now": self.now}))

    def run_now(self, steps: Steps[T]) -> T:
        """Execute a method of the queue, each of its calls at the engine's own time."""
        return carry(steps, lambda call: self.call(self.at_now(call)))

    def pass_time(self, ms: int) -> None:
        assert self.now is not None
        self.now += ms

    # What producers and workers do

    def add(self, *job_ids: str, data: Any = None, group: str | None = "g", **fields: Any) -> Added:
        drafts = [draft(self.options, data, group_id=group, job_id=job_id, **fields) for job_id in job_ids]
        return self.call(commands.add(drafts, self.now))

    def advance(
        self,
        *outcomes: Outcome,
        take: int = 0,
        worker: str = "w",
        lease_ms: int = LEASE,
        requester: str = "w:0",
        request: int | None = None,
        policy: Policy | None = None,
        row: int = 1,
        fill: int = 0,
        batch_wait_ms: int | None = None,
        confirms: bool = False,
        offers: bool | None = None,
        received: int = 0,
        turn_size: int | None = None,
        epoch: int | None = None,
    ) -> Advanced:
        self.requests += 1
        if self.options.exclusive and turn_size is None:
            turn_size, epoch = 10_000, 0
        return self.call(
            commands.advance(
                worker=worker,
                requester=requester,
                request=self.requests if request is None else request,
                outcomes=outcomes,
                take=take,
                lease_ms=lease_ms,
                policy=policy or self.policy,
                row=row,
                fill=fill,
                batch_wait_ms=batch_wait_ms,
                confirms=confirms,
                offers=offers,
                received=received,
                turn_size=turn_size,
                epoch=epoch,
                now=self.now,
            )
        )

    def offer_slot(self, worker: str = "w", **how: Any) -> None:
        """Act as a worker that finds nothing to start and offers a slot."""
        assert (
            self.advance(take=1, worker=worker, requester=f"{worker}:0", confirms=True, offers=True, **how).jobs == []
        )

    def pop_grant(self, worker: str = "w") -> Granted | None:
        """Pop the grant that a worker waits for; None if there is none."""
        popped = self.client.zpopmin(self.keys.grants(worker))
        return commands.read_grant(popped[0][0]) if popped else None

    def take(self, n: int = 1, **how: Any) -> list[Taken]:
        return self.advance(take=n, **how).jobs

    def take_one(self, **how: Any) -> Taken:
        [taken] = self.take(1, **how)
        return taken

    def take_row(self, row: int = 3, **how: Any) -> list[Taken]:
        """Take one job, and the jobs of its group that may follow it in a row."""
        return self.take(1, row=row, **how)

    def begin(self, *taken: Taken) -> list[int]:
        """Report that the handlers of these jobs were called."""
        return self.advance(*(commands.begun(t.id, t.fence) for t in taken)).accepted

    def complete(self, *taken: Taken, result: bytes | None = None) -> list[int]:
        return self.advance(*(commands.completed(t.id, t.fence, result) for t in taken)).accepted

    def retry_run(self, taken: Taken, delay_ms: int, *, yields: bool = False, reason: str = "boom") -> list[int]:
        return self.advance(commands.retried(taken.id, taken.fence, delay_ms, yields, reason, "stack")).accepted

    def fail_run(self, taken: Taken, reason: str = "boom") -> list[int]:
        return self.advance(commands.failed(taken.id, taken.fence, reason, "stack")).accepted

    def release(self, *taken: Taken, begun: bool = False) -> list[int]:
        return self.advance(*(commands.released(t.id, t.fence, begun=begun) for t in taken)).accepted

    def end_run(self, *taken: Taken) -> None:
        """Report that the handlers of these runs, whose jobs an operator has ended, have returned."""
        assert self.advance(*(commands.ended(t.id, t.fence) for t in taken)).accepted == [1] * len(taken)

    def limit_run(self, taken: Taken, delay_ms: int) -> list[int]:
        """Report that the handler raised RateLimited."""
        return self.advance(commands.rate_limited(taken.id, taken.fence, delay_ms)).accepted

    def beat(self, *held: Taken, worker: str = "w", lease_ms: int = LEASE) -> list[str]:
        """Renew these leases. Returns the ids of the jobs whose leases are lost."""
        return self.call(commands.beat(worker, None, lease_ms, [(t.id, t.fence) for t in held], self.now)).lost

    def repeat(self, schedule: object, group: str | None = "g", data: Any = None, **fields: Any) -> Job:
        return self.run_now(self.operations._add_repeating(data, schedule, None, group_id=group, **fields))

    def tick(self, watched_since: int | None = None) -> DutyReport:
        """Run the scheduler once."""
        return self.run_now(Scheduler(asked, watched_since).run_once())

    def forget_gone_workers(self) -> list[str]:
        """Run the presence clean-up of another worker. Returns the workers that it removed."""
        listed = [name.decode() for name in self.client.hkeys(self.key("requesters"))]

        class Records(WorkerRecords):
            async def requesters(self) -> list[str]:
                return listed

        async def records() -> list[WorkerRecords]:
            return [Records(asked, cast(Any, None))]

        return [*self.run_now(PresenceCleanup(records).run_once()).gone_workers]

    def due(self, policy: Policy | None = None, **which: bool) -> commands.Due:
        return self.call(commands.due(policy or self.policy, now=self.now, **which))

    def stall(self, lease_ms: int = LEASE, policy: Policy | None = None) -> list[Stalled]:
        """Let every lease expire, and take the jobs back."""
        self.pass_time(lease_ms)
        return self.due(policy).stalled

    def run_all(self, n: int = 1, limit: int = 100_000) -> list[str]:
        """Take and complete jobs, `n` at a time, until none is ready. Returns the ids in the order they started."""
        started: list[str] = []
        outcomes: list[Outcome] = []
        while len(started) < limit:
            jobs = self.advance(*outcomes, take=n).jobs
            if not jobs and not outcomes:
                break
            started += [job.id for job in jobs]
            outcomes = [commands.completed(job.id, job.fence, None) for job in jobs]
        return started

    def run_rows(self, row: int = 3) -> list[list[str]]:
        """Take and complete jobs, a row at a time, until none is ready. Returns the ids of each row."""
        found: list[list[str]] = []
        while jobs := self.take_row(row):
            found.append([job.id for job in jobs])
            self.complete(*jobs)
        return found

    # What operators do

    def remove(self, *job_ids: str, states: Sequence[str] | None = None) -> list[int]:
        return self.call(commands.remove(job_ids, states, self.now))

    def promote(self, job_id: str) -> Change:
        return self.call(commands.reschedule(job_id, 0, only_delayed=True, now=self.now))

    def change_delay(self, job_id: str, delay_ms: int) -> Change:
        return self.call(commands.reschedule(job_id, delay_ms, only_delayed=False, now=self.now))

    def retry(self, job_id: str) -> Change:
        return self.call(commands.retry(job_id, self.now))

    def fail(self, job_id: str, reason: str = "by hand") -> Change:
        return self.call(commands.fail(job_id, reason, self.options.keep, self.now)).change

    def skip(self, *job_ids: str) -> list[Change]:
        return self.call(commands.skip(job_ids, self.options.keep, self.now)).changes

    def skip_group(self, group: str = "g", limit: int = 100) -> commands.Skipped:
        return self.call(commands.skip_group(group, limit, self.options.keep, self.now))

    def update(self, job_id: str, data: bytes) -> Change:
        return self.call(commands.update(job_id, data, self.now))

    def pause(self, group: str | None = None) -> bool:
        return self.call(commands.switch(paused=True, group_id=group, now=self.now))

    def resume(self, group: str | None = None) -> bool:
        return self.call(commands.switch(paused=False, group_id=group, now=self.now))

    def limit(self, group: str, n: int) -> bool:
        return self.call(commands.switch(group_id=group, concurrency=n, now=self.now))

    def cancel(self, *job_ids: str) -> dict[str, str]:
        """Cancel jobs. Returns the state that each was found in."""
        return dict(self.call(commands.cancel(job_ids, self.now)).found)

    def heartbeat(self, *held: Taken, worker: str = "w", info: str | None = "{}") -> commands.Beat:
        return self.call(commands.beat(worker, info, LEASE, [(one.id, one.fence) for one in held], self.now))

    def report_progress(self, taken: Taken, progress: str | None = None, line: str | None = None) -> bool:
        said = []
        if progress is not None:
            said.append(self.call(commands.report_progress(taken.id, taken.fence, progress, self.now)))
        if line is not None:
            said.append(self.call(commands.append_log(taken.id, taken.fence, line, self.now)))
        assert len(set(said)) == 1, said
        return said[0]

    def rate(self, group: str, rate: RateLimit | None) -> bool:
        return self.run_now(self.operations.set_group_rate_limit(group, rate))

    # Reading

    def entries(self) -> list[Entry]:
        """The whole log of events."""
        return [events.read(raw, JSON) for raw in self.call(commands.log("-", 10_000))]

    def heard(self) -> list[tuple[str, str | None]]:
        """Kind and job of every event so far."""
        return [(event.kind, event.job_id) for entry in self.entries() for event in entry.events]

    def last_events(self) -> list[Event]:
        """The events of the last call that published any."""
        return self.entries()[-1].events

    def view(self, job_id: str) -> StoredJob:
        view = self.call(commands.get([job_id], self.now))[0]
        assert view is not None, f"job {job_id!r} is gone"
        return view

    def state(self, job_id: str) -> str | None:
        view = self.call(commands.get([job_id], self.now))[0]
        return None if view is None else view.state

    def group(self, group: str = "g") -> str:
        """The state of a group."""
        state: str = self.call(commands.look_group(group, self.now))[0]
        return state

    def blocked(self) -> dict[str, int]:
        """The blocked groups, and since when each is blocked."""
        return dict(self.call(commands.list_since("blocked", 0, 1000, self.now)).found)

    def look_group(self, group: str = "g") -> commands.GroupLook:
        _, (look,) = self.call(commands.look_groups([group], 10, self.now))
        return look

    def counts(self) -> dict[str, int]:
        names = ("active", "waiting", "delayed", "completed", "failed", "groups")
        found: list[int] = self.call(commands.counts())
        return dict(zip(names, found, strict=False))

    def meta(self) -> dict[str, str]:
        return meta.decode({field.decode(): value for field, value in self.client.hgetall(self.keys.meta).items()})

    def counter(self, name: str) -> int:
        return int(self.meta().get(name, 0))

    def woken(self) -> bool:
        """Whether the marker for idle workers was set. Deletes it."""
        return bool(self.client.delete(self.keys.wake))

    def woken_for_its_turn(self, worker: str) -> bool:
        """Whether the marker of this worker, which has the turn, was set. Deletes it."""
        return bool(self.client.delete(self.keys.wake_of(worker)))

    def key(self, name: str) -> str:
        return self.keys.fixed(name)

    def look(self) -> Keyspace:
        return keyspace.read(Dump(self.client), self.options.prefix, self.options.name, self.now)

    def violations(self) -> list[str]:
        return keyspace.violations(self.look())

    def damage(self) -> dict[str, list[str]]:
        """Run a repair. Returns what it mended."""
        return self.run_now(self.operations.repair()).mended

    def digest(self) -> dict[bytes, str]:
        """Every key of the server, with a digest of its content. DUMP would not do: it may give the fields of equal
        hashes in different orders.

        Left out are the answers of calls, which are kept even if a call changes nothing, and the list of queues, which
        scripts do not touch.
        """
        others = {self.key("calls_even"), self.key("calls_odd"), registry_key(self.options.prefix)}
        return {
            key: hashlib.sha1(repr(self._content(key)).encode()).hexdigest()
            for key in self.client.scan_iter(count=1000)
            if key.decode() not in others
        }

    def _content(self, key: bytes) -> Any:
        kind = self.client.type(key)
        if kind == b"hash":
            return sorted(self.client.hgetall(key).items())
        if kind == b"zset":
            return self.client.zrange(key, 0, -1, withscores=True)
        if kind == b"stream":
            return self.client.xrange(key)
        return self.client.lrange(key, 0, -1) if kind == b"list" else self.client.get(key)
