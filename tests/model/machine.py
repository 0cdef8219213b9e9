"""The state machine: the real scripts on a real server against the model, and the rules of operators and readers."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from groupmq import commands, record
from groupmq.commands import FRESH
from tests.model import strategies as draws
from tests.model.pair import at, same
from tests.model.work import Work

Finished = Literal["completed", "failed"]
STATES = ("waiting", "delayed", "active", "completed", "failed")
WHICH = st.integers(0, len(draws.JOB_IDS))


class QueueMachine(Work):
    def pick(self, which: int, state: str = "") -> str:
        """One of the jobs, in that state if there are some; 0 = one that does not exist."""
        jobs = sorted(job.id for job in self.model.jobs.values() if state in ("", job.state))
        jobs = jobs or sorted(self.model.jobs)
        return jobs[which % len(jobs)] if which and jobs else "never added"

    # One job

    @rule(which=st.lists(WHICH, min_size=1, max_size=3), only=st.sampled_from((None, None, *STATES)))
    def remove(self, which: list[int], only: str | None) -> None:
        ids = [self.pick(one) for one in which]
        states = None if only is None else [only]
        same(self.call(commands.remove(ids, states, self.now)), self.model.remove(ids, states))

    @rule(which=WHICH, delay=st.sampled_from(draws.DELAYS), only_delayed=st.booleans())
    def promote_or_change_delay(self, which: int, delay: int, only_delayed: bool) -> None:
        delay = 0 if only_delayed else delay
        job_id = self.pick(which)
        answer = self.call(commands.reschedule(job_id, delay, only_delayed=only_delayed, now=self.now))
        same(answer, self.model.reschedule(job_id, delay, self.now, only_delayed=only_delayed))

    @rule(which=WHICH)
    def fail(self, which: int) -> None:
        job_id = self.pick(which)
        answer = self.call(commands.fail(job_id, "by hand", self.model.policy.keep, self.now))
        same(answer, self.model.fail(job_id, "by hand", self.now))

    @precondition(lambda self: self.model.in_state("failed"))
    @rule(which=WHICH, mostly=st.sampled_from(("", "failed", "failed")))
    def retry(self, which: int, mostly: str) -> None:
        job_id = self.pick(which, mostly)
        same(self.call(commands.retry(job_id, self.now)), self.model.retry(job_id))

    @precondition(lambda self: self.model.jobs)
    @rule(which=WHICH, data=st.sampled_from((*draws.DATA, b"new")))
    def update_data(self, which: int, data: bytes) -> None:
        job_id = self.pick(which)
        same(self.call(commands.update(job_id, data)), self.model.update(job_id, data))

    # The queue and its groups

    @rule(paused=st.booleans())
    def pause_or_resume_the_queue(self, paused: bool) -> None:
        same(self.call(commands.switch(paused=paused, now=self.now)), self.model.switch_queue(paused))

    @rule(
        group=st.integers(0, 2),
        paused=st.sampled_from((None, True, False)),
        limit=st.sampled_from((None, 0, 1, 2, 3)),
    )
    def change_a_group(self, group: int, paused: bool | None, limit: int | None) -> None:
        name = self.groups[group]
        answer = self.call(commands.switch(group_id=name, paused=paused, limit=limit, now=self.now))
        same(answer, self.model.switch_group(name, paused, limit))

    @precondition(lambda self: self.model.in_state("completed") or self.model.in_state("failed"))
    @rule(
        kind=st.sampled_from(("completed", "failed")), age=st.sampled_from((0, 0, 1, 1000)), limit=st.integers(1, 3)
    )
    def clean(self, kind: Finished, age: int, limit: int) -> None:
        answer = self.call(commands.clean(kind, age, limit, self.now))
        same(answer, self.model.clean(kind, age, limit, self.now))

    @rule(completed=st.sampled_from(draws.KEEPS), failed=st.sampled_from(draws.KEEPS))
    def change_retention(self, completed: int, failed: int) -> None:
        self.model.policy = self.model.policy._replace(keep={"completed": completed, "failed": failed})

    # The server, and looking at it

    @rule(flush=st.booleans())
    def repair_finds_nothing(self, flush: bool) -> None:
        """Also after the server has forgotten every script."""
        if flush:
            self.client.script_flush()
        report = self.carry(self.operations.repair(), lambda call: at(call, self.latest))
        assert report.clean, report.mended

    @rule()
    def what_is_read_is_what_is_stored(self) -> None:
        model = self.model
        counts = self.call(commands.counts())
        sizes = [len(model.in_state(state)) for state in ("active", "waiting", "delayed", "completed", "failed")]
        same(counts[:7], [*sizes, len(model.live_groups() - {""}), int(model.paused)])
        ids = sorted(model.jobs)
        for job_id, view in zip(ids, self.call(commands.get(ids, self.now)), strict=True):
            job = model.jobs[job_id]
            assert view is not None, f"{job_id!r} is stored and not found"
            same((view.state, view.stored, view.result), (job.state, job.stored or FRESH, job.result))
            same(record.unpack(view.record), job.record)
            same((view.token, view.hold), (job.lease.token if job.lease else 0, job.hold))
            same(view.score, job.due or job.stamp)
        for group in self.groups:
            place, *sizes, limit, _, _ = self.call(commands.look_group(group, self.now))
            expected = [len(model.in_state(state, group)) for state in ("waiting", "active", "delayed")]
            same([place, *sizes, limit], [self.place(group), *expected, model.limit_of(group)])
        listed = sorted(self.carry(self.operations.list_ids("waiting", 100)))
        same(listed, sorted(job.id for job in model.in_state("waiting")))

    def place(self, group: str) -> str:
        """Where a group is said to be. A full group is busy, whether or not more of its jobs wait."""
        conf, waiting = self.model.conf.get(group), self.model.waiting(group)
        paused = conf is not None and conf.paused
        if len(self.model.in_state("active", group)) >= self.model.limit_of(group):
            return "paused" if paused else "busy"
        if not waiting:
            return "idle"
        return "paused" if paused else "parked" if waiting[0].hold > self.now else "ready"
