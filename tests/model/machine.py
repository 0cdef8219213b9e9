"""The state machine, which compares the scripts on a real server with the model: rules of operators and readers."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from groupmq.core import record
from groupmq.core.settings import QueueSettings, StoredQueue
from groupmq.protocol import commands
from groupmq.protocol.commands import FRESH
from groupmq.sync.connection.connections import BlockingConnection
from tests.model import browsing, parting, waiting
from tests.model import strategies as draws
from tests.model.deciding import Deciding
from tests.model.pair import at, same
from tests.model.parts import State
from tests.model.reconfiguring import other_process, refuses_old_settings

CHANGES_OF_A_JOB = (
    "remove",
    "remove_some",
    "promote",
    "change_delay",
    "fail",
    "retry",
    "retry",
    "retry_some",
    "update_data",
)
CHANGES_OF_THE_QUEUE = ("pause_queue", "pause_group", "limit_group", "rate_group", "clean")
LOOKS = (*("at_everything", "for_damage") * 4, "after_a_flush", "after_a_change", *("through_the_queue",) * 2)
"""A flush is rare, since the server then has to compile the library again, which takes longer than the comparison."""


class QueueMachine(Deciding):
    """Operators have few rules with many variants, so that most steps are those of workers."""

    # One job

    @precondition(lambda self: self.model.jobs)
    @rule(what=st.sampled_from(CHANGES_OF_A_JOB), which=st.integers(0, 12), detail=st.integers(0, 4))
    def an_operator_changes_a_job(self, what: str, which: int, detail: int) -> None:
        getattr(self, what)(which, detail)

    def remove(self, which: int, detail: int) -> None:
        states = None if detail else [draws.STATES[which % len(draws.STATES)]]
        self.remove_all([self.pick(which, draws.STATES[detail])], states)

    def remove_some(self, which: int, detail: int) -> None:
        self.remove_all([self.pick(which), self.pick(detail), self.pick(which + 1)], None)

    def remove_all(self, ids: list[str], states: list[State] | None) -> None:
        same(self.call(commands.remove(ids, states, self.now)), self.model.remove(ids, states, self.now))

    def promote(self, which: int, detail: int) -> None:
        self.reschedule(self.pick(which, "delayed"), 0, only_delayed=True)

    def change_delay(self, which: int, detail: int) -> None:
        job_id = self.pick(which, "delayed") if detail % 2 else self.pick(which, "waiting")
        self.reschedule(job_id, draws.DELAYS[detail], only_delayed=False)

    def reschedule(self, job_id: str, delay: int, *, only_delayed: bool) -> None:
        answer = self.call(commands.reschedule(job_id, delay, only_delayed=only_delayed, now=self.now))
        same(answer, self.model.reschedule(job_id, delay, self.now, only_delayed=only_delayed))

    def fail(self, which: int, detail: int) -> None:
        self.fail_by_hand(self.pick(which, draws.STATES[detail]))

    def fail_by_hand(self, job_id: str) -> None:
        answer = self.call(commands.fail(job_id, "by hand", self.model.policy.keep, self.now))
        same(answer, self.model.fail(job_id, "by hand", self.now))

    def retry(self, which: int, detail: int) -> None:
        job_id = self.pick(which, "failed") if detail else self.pick(which)
        same(self.call(commands.retry(job_id, self.now)), self.model.retry(job_id))

    def retry_some(self, which: int, detail: int) -> None:
        """Retry failed jobs as a page lists them, possibly one with the stamp of another failure."""
        failed = self.model.finished("failed")[: 1 + which]
        ids = [*(job.id for job in failed), self.pick(which)]
        stamps = [*(job.stamp for job in failed), 1]
        if detail < 2:
            stamps[0] += 1
        answer = self.call(commands.retry_all(ids, [str(stamp) for stamp in stamps], self.now))
        same(answer, self.model.retry_all(ids, stamps))

    def update_data(self, which: int, detail: int) -> None:
        job_id, data = self.pick(which), self.adapted_data((*draws.DATA, b"new", b"{}")[detail])
        same(self.call(commands.update(job_id, data, self.now)), self.model.update(job_id, data, self.now))

    @precondition(lambda self: self.model.stand_ins)
    @rule(item=draws.items(), which=st.integers(0, 3), removes=st.booleans())
    def a_key_is_used_again(self, item: draws.Item, which: int, removes: bool) -> None:
        """Possibly after the job that stands for it has been promoted or removed."""
        (kind, group, key), entry = sorted(self.model.stand_ins.items())[which % len(self.model.stand_ins)]
        if which < 2 and entry.id in self.model.jobs:
            if removes:
                self.remove_all([entry.id], None)
            else:
                self.reschedule(entry.id, 0, only_delayed=True)
            self.look()
        dedupe = next(d for d in draws.DEDUPES if d.packed()[:2] == [kind, key])
        where = self.groups.index(group) if group else -1
        self.add([replace(item, group=where, dedupe=dedupe)])

    # The queue and its groups

    @rule(what=st.sampled_from(CHANGES_OF_THE_QUEUE), which=st.integers(0, 4), detail=st.integers(0, 4))
    def an_operator_changes_the_queue(self, what: str, which: int, detail: int) -> None:
        getattr(self, what)(which, detail)

    def pause_queue(self, which: int, detail: int) -> None:
        """Pause or resume: a queue does little while it is paused, so each pause ends with the next call."""
        paused = not self.model.paused
        same(self.call(commands.switch(paused=paused, now=self.now)), self.model.switch_queue(paused))

    def pause_group(self, which: int, detail: int) -> None:
        self.change_group(which, paused=detail % 2 == 0)

    def limit_group(self, which: int, detail: int) -> None:
        self.change_group(which, limit=detail)

    def rate_group(self, which: int, detail: int) -> None:
        rate = draws.RATES[detail % len(draws.RATES)] if self.kind.steady else ()
        self.promises.except_for(self.groups[which % len(self.groups)])
        self.change_group(which, rate=rate)

    def change_group(
        self, which: int, paused: bool | None = None, limit: int | None = None, rate: tuple[int, ...] | None = None
    ) -> None:
        group = self.groups[which % len(self.groups)]
        answer = self.call(commands.switch(group_id=group, paused=paused, concurrency=limit, rate=rate, now=self.now))
        same(answer, self.model.switch_group(group, self.now, paused=paused, limit=limit, rate=rate))

    def clean(self, which: int, detail: int) -> None:
        age, limit = (0, 0, 0, 1, 1000)[which], 1 + detail // 2
        for kind in draws.FINISHED:
            answer = self.call(commands.clean(kind, age, limit, self.now))
            same(answer, self.model.clean(kind, age, limit, self.now))

    @precondition(lambda self: self.model.in_state("completed") or self.model.in_state("failed"))
    @rule(completed=st.sampled_from((0, *draws.KEEPS)), failed=st.sampled_from((0, *draws.KEEPS)))
    def a_worker_that_keeps_other_numbers_reports(self, completed: int, failed: int) -> None:
        """A positive number bounds the kept jobs of all workers; 0 applies only to jobs that this worker ends."""
        self.model.policy = self.model.policy._replace(keep={"completed": completed, "failed": failed})
        if self.model.in_state("active"):
            self.every_run_completes(draws.REQUESTERS[0], None, 1, draws.LEASES[0])

    # Looking

    @rule(what=st.sampled_from(LOOKS))
    def somebody_looks(self, what: str) -> None:
        getattr(self, what)()

    def for_damage(self) -> None:
        report = self.carry(self.operations.repair(), lambda call: at(call, self.latest))
        assert report.clean, report.mended
        self.beside_a_partition()

    def beside_a_partition(self) -> None:
        parting.compare_numbers(self.client, self.model, self.connection)

    def after_a_flush(self) -> None:
        self.client.function_flush()
        self.at_everything()

    def after_a_change(self) -> None:
        """Another process changes a setting. Calls with the old revision are refused until the new one has been read.

        Neither a call nor opening the queue overwrites settings that another process has stored since they were read.
        """
        other = other_process(self.client, self.model.options)
        before, known = self.state(), self.connection.session.known
        was = other.call(commands.look_at_queue(), patience=0)
        other.reconfigure({"max_attempts": 1 + QueueSettings.of(was).max_attempts})
        now = other.call(commands.look_at_queue(), patience=0)
        assert now.revision not in (was.revision, known.revision), "the change has no new revision"
        same(other.call(commands.open_queue(self.model.options, was), patience=0), now)
        same(other.call(commands.open_queue(self.model.options), patience=0), now)
        self.settings_of_a_partition(other, was)
        assert refuses_old_settings(self.client, self.connection), "a call with an old revision was carried out"
        self.calls += 1
        self.look()
        same(self.state(), before)
        self.at_everything()
        same(known.revision, now.revision)

    def settings_of_a_partition(self, other: BlockingConnection, was: StoredQueue) -> None:
        parting.compare_settings(self.client, self.model, other, was)

    def at_everything(self) -> None:
        model = self.model
        sizes = [len(model.in_state(state)) for state in ("active", "waiting", "delayed", "completed", "failed")]
        expected = [*sizes, len(model.live_groups() - {""}), int(model.paused)]
        same((counted := self.call(commands.counts()))[:7], expected)
        same(counted[10], len(model.blocked))
        stats = self.call(commands.stats(now=self.now))
        same((stats.blocked, stats.blocked_since), (len(model.blocked), min(model.blocked.values(), default=0)))
        opened = model.opened_since()
        same((stats.opened, stats.opened_since), (len(opened), min(opened.values(), default=0)))
        ids = sorted(model.jobs)
        views = self.call(commands.get(ids, self.now))
        for job_id, view in zip(ids, views, strict=True):
            job = model.jobs[job_id]
            assert view is not None, f"{job_id!r} is stored and not found"
            same((view.state, view.stored, view.result), (job.state, job.stored or FRESH, job.result))
            same(record.unpack(view.record), job.record)
            same((view.fence, view.hold), (job.lease.fence if job.lease else 0, job.hold))
            same((view.score, view.blocks), (job.due or job.stamp, job.blocks))
            same(view.progress, job.progress.encode() if job.progress is not None else None)
            same(
                [line.text for line in commands.log_lines(view.log)] if view.log else [], [line for _, line in job.log]
            )
        for group in self.groups:
            state, *sizes, limit, _, wait_ms = self.call(commands.look_group(group, self.now))
            still, delayed = (len(model.in_state(state, group)) for state in ("waiting", "delayed"))
            same([*sizes, limit], [still, model.running(group), delayed, model.limit_of(group)])
            same((state, wait_ms), self.group_state(group))
        waiting.compare(self.call(commands.waits(now=self.now)), model, self.now)
        turn = model.turn
        said = [turn.worker, turn.epoch, turn.deadline - self.now, turn.taken] if turn else []
        same(self.call(commands.look_turn(self.now)), said)
        same(self.call(commands.runnable(self.now)), self.may_start())
        listed = sorted(self.carry(self.operations.get_waiting_jobs(100)))
        same(listed, sorted(job.id for job in model.in_state("waiting")))

    def through_the_queue(self) -> None:
        browsing.compare(self.call, self.model, self.groups, self.now)

    def may_start(self) -> bool:
        """Whether a burst continues: a group is ready, and neither a pause nor the queue's rate limit stops it.

        It does not matter which worker has the turn, since turns end.
        """
        model, rate = self.model, self.model.options.rate_limit
        throttled = rate is not None and self.now < model.throttled <= self.now + rate.packed()[1] + 1
        return bool(self.stored.keyspace.ready) and not model.paused and not throttled

    def group_state(self, group: str) -> tuple[str, int]:
        """The state of a group, by the same order of questions as `group_state.lua`, and the ms until its head may
        start, or -1."""
        conf, waiting = self.model.conf.get(group), self.model.waiting(group)
        if waiting and conf is not None and conf.paused:
            return "paused", -1
        if group in self.model.blocked:
            return "blocked", -1
        if not waiting:
            return "idle", -1
        if self.model.running(group) >= self.model.slots_of(group):
            return "busy", -1
        opens = self.model.opens(waiting[0])
        return ("parked", opens - self.now) if opens > self.now else ("ready", -1)
