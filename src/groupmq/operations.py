"""What a queue can do, without I/O: each operation is a generator that yields Calls and is sent their answers.

The asynchronous and the blocking Queue drive the same generators, so there is one meaning of everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from groupmq import codec, commands, limits, record
from groupmq.checks import one_of, text, whole
from groupmq.commands import CHUNK, Call, Policy, Taken, View
from groupmq.drafts import Draft, draft_from
from groupmq.durations import millis
from groupmq.errors import ConfigurationError, GroupFull, JobNotFound, LeaseLost, WrongState
from groupmq.job import Snapshot
from groupmq.options import QueueOptions
from groupmq.record import Record
from groupmq.views import Failure, GroupInfo, JobCounts, Metrics, RepairReport, Turn, WorkerInfo

T = TypeVar("T")
J = TypeVar("J", bound=Snapshot)
Steps = Generator[Call[Any], Any, T]
NOTHING: Any = object()
"""Progress may be any JSON, None too."""
STATES = ("active", "waiting", "delayed", "completed", "failed")


def one(call: Call[T]) -> Steps[T]:
    """An operation of a single call."""
    answer: T = yield call
    return answer


class Operations(Generic[J]):
    """The operations of one queue. `make` builds a job object from (id, state, record)."""

    def __init__(self, options: QueueOptions, make: Callable[[str, str, Record], J]) -> None:
        self.options = options
        self.make = make
        self.policy = Policy(options.max_attempts, -1, options.keep)

    # Adding

    def chunks(
        self, items: Iterable[Any], headers: dict[str, str] | None = None
    ) -> Iterator[tuple[Sequence[Draft], Call[commands.Added]]]:
        """The items of an add_many, all checked before the first call is given out, as calls of bounded size."""
        if not isinstance(items, Iterable):
            raise ConfigurationError.expected("items", "mappings or JobDrafts, as an iterable", items)
        drafts = [draft_from(self.options, item, i, headers) for i, item in enumerate(items)]
        for chunk in commands.chunked(drafts, lambda d: len(d.body)):
            yield chunk, commands.add(chunk, whole=True)

    def add_many(self, items: Iterable[Any], headers: dict[str, str] | None = None) -> Steps[list[J]]:
        jobs: list[J] = []
        for chunk, call in self.chunks(items, headers):
            jobs += yield from self.added(chunk, (yield call))
        return jobs

    def add_one(self, d: Draft) -> Steps[J]:
        return (yield from self.added([d], (yield commands.add([d], whole=True))))[0]

    def add(self, drafts: Sequence[Draft]) -> Steps[list[J | GroupFull]]:
        """At most CHUNK drafts, of callers that know nothing of each other, in one call."""
        answer: commands.Added = yield commands.add(drafts)
        jobs: list[J | GroupFull] = []
        jobs += yield from self._added(drafts, answer)
        for i in answer.full:
            jobs[i] = self._full(drafts[i])
        return jobs

    def added(self, drafts: Sequence[Draft], added: commands.Added) -> Steps[list[J]]:
        """The jobs of an add of one caller: all or none."""
        if added.full:
            raise self._full(drafts[added.full[0]])
        return (yield from self._added(drafts, added))

    def _full(self, d: Draft) -> GroupFull:
        return GroupFull(d.group_id or "", self.options.max_group_size or 0)

    def _added(self, drafts: Sequence[Draft], added: commands.Added) -> Steps[list[J]]:
        """The jobs of an add; those whose id existed, or that another stands for, come back as they are stored."""
        jobs = [self._job_of(d, added) for d in drafts]
        if added.stood_for:
            views = yield commands.get(list(added.stood_for.values()))
            for (i, job_id), view in zip(added.stood_for.items(), views, strict=True):
                # Gone already: all that is known of it is its id.
                jobs[i] = (
                    self._job_of(drafts[i]._replace(id=job_id), added) if view is None else self.job_from(job_id, view)
                )
                jobs[i].duplicate = True
        if added.duplicates:
            views = yield commands.get([drafts[i].id for i in added.duplicates])
            for i, view in zip(added.duplicates, views, strict=True):
                nonce = drafts[i].nonce
                # Our own add that was sent twice is no duplicate: we made the id, or the stored nonce is ours.
                if view is None:
                    jobs[i].duplicate = nonce is not None
                    continue
                jobs[i] = self.job_from(drafts[i].id, view)
                jobs[i].duplicate = nonce is not None and record.unpack(view.record).options.get("n") != nonce
        return jobs

    def _job_of(self, d: Draft, added: commands.Added) -> J:
        due = added.now + d.delay_ms if d.delay_ms else d.run_at_ms
        later = due > added.now
        order = d.order_ms if d.order_ms is not None else (due if later else added.order_ms)
        stored = Record(d.priority, order, 0, added.now, d.max_attempts, False, d.group_id, d.options or {}, d.data)
        job = self.make(d.id, "delayed" if later else "waiting", stored)
        if later:
            job._run_at_ms = due
        return job

    # Looking

    def get_jobs_by_id(self, ids: Sequence[str]) -> Steps[list[J | None]]:
        jobs: list[J | None] = []
        for at in range(0, len(ids), CHUNK):
            page = ids[at : at + CHUNK]
            views = yield commands.get(page)
            jobs += [None if view is None else self.job_from(i, view) for i, view in zip(page, views, strict=True)]
        return jobs

    def get_job(self, job_id: str) -> Steps[J | None]:
        return (yield from self.get_jobs_by_id([text(job_id, "job_id")]))[0]

    def require_job(self, job_id: str) -> Steps[J]:
        job = yield from self.get_job(job_id)
        if job is None:
            raise JobNotFound(job_id)
        return job

    def job_from(self, job_id: str, view: View) -> J:
        job = self.make(job_id, view.state, record.unpack(view.record))
        stored = view.stored
        job.attempts_made, job.stalls = stored.attempts, stored.stalls
        job._started_ms = view.started or stored.started
        job._finished_ms = stored.finished
        job.worker = view.worker or stored.worker or None
        job.failed_reason, job.stacktrace = stored.reason or None, stored.stack or None
        job.fence = view.token
        job._raw_result = view.result
        if view.progress is not None:
            job.progress = json.loads(view.progress)
        if view.log is not None:
            job.logs = commands.log_lines(view.log)
        if view.state == "delayed":
            job._run_at_ms = int(view.score)
        elif view.hold:
            job._run_at_ms = view.hold
        return job

    def job_taken(self, taken: Taken, started_ms: int, worker: str) -> J:
        """A job this worker has just been given."""
        job = self.make(taken.id, "active", record.unpack(taken.record))
        job.fence = taken.token
        job._started_ms = started_ms
        job.worker = worker
        stored = taken.stored
        if stored is not commands.FRESH:
            job.attempts_made, job.stalls = stored.attempts, stored.stalls
            job.failed_reason, job.stacktrace = stored.reason or None, stored.stack or None
        return job

    def get_job_counts(self) -> Steps[JobCounts]:
        active, waiting, delayed, completed, failed, groups, *_ = yield commands.counts()
        return JobCounts(active, waiting, delayed, completed, failed, active + waiting + delayed, groups)

    def list_ids(self, state: str, limit: int, offset: int = 0, *, newest: bool = False) -> Steps[list[str]]:
        whole(limit, "limit", 0, 2**31)
        whole(offset, "offset", 0, 2**53)
        if state == "waiting":
            return (yield from self._list_waiting(limit, offset))
        ids: list[str] = []
        while len(ids) < limit:
            size = min(CHUNK, limit - len(ids))
            page = yield commands.list_jobs(state, offset + len(ids), size, newest=newest)
            ids += page
            if len(page) < size:
                break
        return ids

    def _list_waiting(self, limit: int, offset: int) -> Steps[list[str]]:
        # A dict: a hash that is resized while it is walked may show a group twice.
        ids: dict[str, None] = {}
        cursor = "0"
        while len(ids) < limit + offset:
            cursor, page = yield commands.list_waiting(cursor, limit + offset - len(ids))
            ids.update(dict.fromkeys(page))
            if cursor == "0":
                break
        return list(ids)[offset : offset + limit]

    def list_jobs(self, state: str, limit: int, offset: int) -> Steps[list[J]]:
        ids = yield from self.list_ids(state, limit, offset, newest=True)
        jobs = yield from self.get_jobs_by_id(ids)
        return [job for job in jobs if job is not None and job.state == state]

    def get_jobs(self, limit: int) -> Steps[dict[str, list[str]]]:
        found: dict[str, list[str]] = {}
        for state in STATES:
            found[state] = yield from self.list_ids(state, limit, newest=state in ("completed", "failed"))
        return found

    def get_unique_groups(self, limit: int | None) -> Steps[list[str]]:
        if limit is not None:
            whole(limit, "limit", 0, 2**31)
        groups: dict[str, None] = {}
        cursor = "0"
        while limit is None or len(groups) < limit:
            cursor, page = yield commands.list_groups(cursor)
            groups.update(dict.fromkeys(page))
            if cursor == "0":
                break
        return list(groups)[:limit]

    def get_group(self, group_id: str) -> Steps[GroupInfo]:
        place, waiting, active, delayed, limit, paused, held_ms = yield commands.look_group(text(group_id, "group_id"))
        held = None if held_ms < 0 else held_ms / 1000
        return GroupInfo(group_id, place, waiting, active, delayed, limit, paused == 1, held)

    def get_group_job_count(self, group_id: str) -> Steps[int]:
        group = yield from self.get_group(group_id)
        return group.waiting + group.active

    def is_paused(self) -> Steps[bool]:
        return (yield from one(commands.counts()))[6] == 1

    def get_metrics(self) -> Steps[Metrics]:
        return Metrics(*(yield commands.stats()).counters)

    def get_failures(self, limit: int) -> Steps[list[Failure]]:
        stats = yield commands.stats(whole(limit, "limit", 0, 2**31))
        return [
            Failure(job_id, attempt, error, stack, datetime.fromtimestamp(at / 1000, UTC), final, worker)
            for job_id, attempt, error, stack, at, final, worker in stats.failures
        ]

    def get_workers(self) -> Steps[list[WorkerInfo]]:
        stats = yield commands.stats()
        workers = [worker_info(worker_id, raw) for worker_id, raw in sorted(stats.workers.items())]
        return [worker for worker in workers if stats.now / 1000 - worker.last_seen.timestamp() <= 2 * worker.heartbeat]

    def gone_workers(self) -> Steps[list[str]]:
        """Workers that missed three heartbeats and then some."""
        stats = yield commands.stats()
        seen = [worker_info(worker_id, raw) for worker_id, raw in stats.workers.items()]
        return [
            worker.id for worker in seen if stats.now / 1000 - worker.last_seen.timestamp() > 3 * worker.heartbeat + 5
        ]

    # Changing

    def remove(self, job_id: str) -> Steps[bool]:
        return (yield from one(commands.remove([text(job_id, "job_id")])))[0]

    def retry(self, job_id: str) -> Steps[bool]:
        answer = yield commands.retry(text(job_id, "job_id"))
        return self._changed(job_id, answer, "failed")

    def promote(self, job_id: str) -> Steps[bool]:
        answer = yield commands.reschedule(text(job_id, "job_id"), 0, only_delayed=True)
        return self._changed(job_id, answer, "delayed")

    def change_delay(self, job_id: str, delay: Any) -> Steps[bool]:
        delay_ms = millis(delay, "delay")
        answer = yield commands.reschedule(text(job_id, "job_id"), delay_ms, only_delayed=False)
        return self._changed(job_id, answer, "delayed", "waiting")

    def fail(self, job_id: str, reason: str) -> Steps[bool]:
        if not isinstance(reason, str):
            raise ConfigurationError.expected("reason", "a string", reason)
        answer = yield commands.fail(text(job_id, "job_id"), clipped(reason), self.options.keep)
        return self._changed(job_id, answer, "waiting", "delayed", "active")

    def cancel(self, job_id: str) -> Steps[bool]:
        answer = yield commands.cancel([text(job_id, "job_id")])
        ((_, state),) = answer.found
        return self._changed(job_id, (state, state in ("waiting", "delayed", "active")), "waiting", "delayed", "active")

    def cancel_group(self, group_id: str) -> Steps[int]:
        """Cancel everything of a group, in bounded steps; how many jobs."""
        text(group_id, "group_id")
        cancelled: set[str] = set()
        delayed = yield from self._delayed_of(group_id)
        for at in range(0, len(delayed), CHUNK):
            cancelled |= (yield commands.cancel(delayed[at : at + CHUNK])).live
        while True:
            answer: commands.Cancelled = yield commands.cancel_group(group_id, CHUNK)
            cancelled |= answer.live
            if answer.left == 0:
                return len(cancelled)

    def _delayed_of(self, group_id: str) -> Steps[list[str]]:
        """Delayed jobs are not indexed by group: look at all of them, a page at a time."""
        found: list[str] = []
        offset = 0
        while True:
            ids = yield from self.list_ids("delayed", CHUNK, offset)
            jobs = yield from self.get_jobs_by_id(ids)
            found += [job.id for job in jobs if job is not None and job.group_id == group_id]
            offset += len(ids)
            if len(ids) < CHUNK:
                return found

    def say(self, job_id: str, token: int, progress: Any, line: str | None) -> Steps[None]:
        """What a running handler says about its job."""
        told = None
        if progress is not NOTHING:
            told = codec.encode(codec.JSON, progress, self.options.max_payload, "progress").decode()
        if not (yield commands.note(job_id, token, told, None if line is None else clipped(line, 2000))):
            raise LeaseLost(job_id)

    @staticmethod
    def _changed(job_id: str, answer: tuple[str, bool], *expected: str) -> bool:
        state, changed = answer
        if not state:
            raise JobNotFound(job_id)
        if not changed:
            raise WrongState(job_id, expected, state)
        return True

    def update_data(self, job_id: str, data: Any) -> Steps[None]:
        raw = codec.encode(self.options.serializer, data, self.options.max_payload, "data")
        state = yield commands.update(text(job_id, "job_id"), raw)
        if not state:
            raise JobNotFound(job_id)

    def set_group_concurrency(self, group_id: str, limit: int | None) -> Steps[bool]:
        n = 0 if limit is None else whole(limit, "n", 1, 65_535)
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), limit=n)))

    def set_group_rate_limit(self, group_id: str, rate: object) -> Steps[bool]:
        limit = limits.rate_limit(rate, "rate_limit")
        packed = limit.packed() if limit else []
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), rate=packed)))

    def get_turn(self) -> Steps[Turn | None]:
        answer = yield commands.look_turn()
        return Turn(answer[0], answer[1], answer[2] / 1000, answer[3]) if answer else None

    def switch_group(self, group_id: str, *, paused: bool) -> Steps[bool]:
        return (yield from one(commands.switch(group_id=text(group_id, "group_id"), paused=paused)))

    def clean(self, state: str, grace: Any, limit: int) -> Steps[int]:
        one_of(state, "state", "completed", "failed", "waiting", "delayed")
        age_ms = millis(grace, "grace")
        left = whole(limit, "limit", 0, 2**31)
        removed = 0
        while removed < left:
            size = min(CHUNK, left - removed)
            if state in ("completed", "failed"):
                n = yield commands.clean(state, age_ms, size)
                removed += n
                if n < size:
                    break
            else:
                return (yield from self._clean_live(state, age_ms, left))
        return removed

    def _clean_live(self, state: str, age_ms: int, limit: int) -> Steps[int]:
        """Waiting or delayed jobs are not indexed by age: go through them all, a page at a time."""
        now = (yield commands.stats()).now
        removed = kept = 0
        while removed < limit:
            ids = yield from self.list_ids(state, CHUNK, kept)
            jobs = yield from self.get_jobs_by_id(ids)
            old = [job.id for job in jobs if job is not None and job._created_ms <= now - age_ms]
            gone = yield from self._remove_all(old[: limit - removed], [state])
            removed, kept = removed + gone, kept + len(ids) - gone
            if not ids:
                break
        return removed

    def _remove_all(self, ids: list[str], states: list[str]) -> Steps[int]:
        removed = 0
        for at in range(0, len(ids), CHUNK):
            removed += sum((yield commands.remove(ids[at : at + CHUNK], states)))
        return removed

    def purge(self, states: Sequence[str]) -> Steps[int]:
        for state in states:
            one_of(state, "states", *STATES)
        removed = 0
        for state in states:
            while True:
                ids = yield from self.list_ids(state, CHUNK)
                gone = yield from self._remove_all(ids, [state])
                removed += gone
                if gone == 0:  # none left, or only ghosts that are repair's business
                    break
        return removed

    def obliterate(self) -> Steps[None]:
        yield commands.switch(paused=True)
        while (yield commands.obliterate()) > 0:
            pass

    def repair(self) -> Steps[RepairReport]:
        """Go through every structure, page by page."""
        report = RepairReport()
        indexes = (
            "leases",
            "active",
            "delayed",
            "completed",
            "failed",
            "expiring",
            "state",
            "results",
            "progress",
            "logs",
            "cancels",
        )
        for structure in (*indexes, "jobs"):
            looked_at = yield from self._repair(report, structure)
            report.jobs = looked_at if structure == "jobs" else 0
        groups = {"": None} | dict.fromkeys((yield from self.get_unique_groups(None)))
        yield from self._repair(report, "keys", found=groups)
        for group_id in groups:
            yield from self._repair(report, "group", group_id)
        for structure in ("repeats", "ticks", "ready", "parked", "groups"):
            report.groups = yield from self._repair(report, structure)
        return report

    def _repair(
        self,
        report: RepairReport,
        structure: str,
        group_id: str | None = None,
        found: dict[str, None] | None = None,
    ) -> Steps[int]:
        looked_at, cursor = 0, "0"
        while True:
            page = yield from one(commands.repair(structure, cursor, group_id))
            looked_at += page.looked_at
            for kind, name in page.damage:
                report.mended.setdefault(kind, []).append(name)
            if found is not None:
                found.update(dict.fromkeys(page.groups))
            cursor = page.cursor
            if cursor == "0":
                return looked_at

    # Time

    def run_due(self, *, promote: bool = True, unpark: bool = True, expire: bool = True) -> Steps[commands.Due]:
        """Everything that is due now, however much it is: bounded calls until nothing is left."""
        promoted = woken = 0
        stalled: list[commands.Stalled] = []
        while True:
            due = yield commands.due(self.policy, promote=promote, unpark=unpark, expire=expire)
            promoted, woken = promoted + due.promoted, woken + due.woken
            stalled += due.stalled
            if due.wait_ms != 0 or not (due.promoted or due.woken or due.stalled):
                return commands.Due(promoted, woken, stalled, due.wait_ms)

    def clean_up(self) -> Steps[int]:
        """Retention by age."""
        removed = 0
        for kind, kept in (("completed", self.options.keep_completed), ("failed", self.options.keep_failed)):
            if kept.age_ms is not None:
                while (n := (yield commands.clean(kind, kept.age_ms, CHUNK))) > 0:
                    removed += n
        return removed


def worker_info(worker_id: str, raw: bytes) -> WorkerInfo:
    seen, _, text_of_info = raw.decode().partition(" ")
    info = json.loads(text_of_info)
    return WorkerInfo(
        id=worker_id,
        last_seen=datetime.fromtimestamp(int(seen) / 1000, UTC),
        # By name: a worker of a newer release may say more.
        **{name: info[name] for name in ("name", "host", "pid", "concurrency", "current_jobs", "heartbeat", "version")},
        jobs=info.get("jobs", []),
    )


def clipped(value: str, longest: int = 16_000) -> str:
    """Text that is safe to store: bounded, and without lone surrogates."""
    if len(value) > longest:
        value = value[: longest // 2] + "\n...\n" + value[-longest // 2 :]
    return value.encode("utf-8", "backslashreplace").decode()
