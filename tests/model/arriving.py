"""How jobs are created: added by producers, possibly replacing others, or by the tick of a repeating job."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from groupmq.core.drafts import Draft
from groupmq.core.limits import Debounce
from groupmq.core.record import Record
from groupmq.protocol.commands import Added, Ticked
from tests.model.gates import Gates
from tests.model.parts import UNGROUPED, Job, Repeat, StandIn, Unique


class Arriving(Gates):
    # Producers

    def add(self, drafts: Sequence[Draft], now: int, *, whole: bool = False) -> Added:
        order = max(self.order, now)
        if whole and self.options.max_group_size is not None:
            full = deepcopy(self).add(drafts, now).full
            if full:
                return Added(now, order, [], {}, full)
        self.order = order
        duplicates: list[int] = []
        stood_for: dict[int, str] = {}
        made: dict[int, int] = {}
        too_many: list[int] = []
        for position, draft in enumerate(drafts):
            stand_in = self.stand_in(draft, now)
            if draft.id in self.jobs:
                duplicates.append(position)
            elif self._is_taken(draft.id, now):
                stood_for[position], made[position] = draft.id, self.uniques[draft.id].made
            elif stand_in is not None:
                stood_for[position] = stand_in
                made[position] = self._made(draft, stand_in)
                if isinstance(draft.dedupe, Debounce):
                    self._become(self.jobs[stand_in], draft, now)
            elif self.is_full(draft.group_id or UNGROUPED):
                too_many.append(position)
            else:
                self._enter(draft, now)
        self.tidy()
        return Added(now, order, duplicates, stood_for, too_many, made)

    def _is_taken(self, job_id: str, now: int) -> bool:
        """Whether a job that has ended still takes this id. Once `unique_for` is over, the id is free."""
        taken = self.uniques.get(job_id)
        if taken is not None and taken.ends <= now:
            del self.uniques[job_id]
            taken = None
        return taken is not None

    def _made(self, draft: Draft, stand_in: str) -> int:
        """When the job that stands for a draft was created, even if it is gone; exact if both have the same ttl."""
        assert draft.dedupe is not None
        if isinstance(draft.dedupe, Debounce):
            return self.jobs[stand_in].record.created_ms
        ms: int = draft.dedupe.packed()[2]
        return self.stand_ins[scope(draft)].ends - ms

    def is_full(self, group: str) -> bool:
        most = self.options.max_group_size
        return most is not None and group != UNGROUPED and self.size(group) >= most

    def stand_in(self, draft: Draft, now: int) -> str | None:
        """The job that stands for this add. For a debounced add it must still be replaceable."""
        if draft.dedupe is None:
            return None
        entry = self.stand_ins.get(scope(draft))
        if entry is None or entry.ends <= now:
            return None
        if isinstance(draft.dedupe, Debounce):
            job = self.jobs.get(entry.id)
            if job is None or job.state != "delayed" or job.record.arrival != entry.arrival:
                return None
        return entry.id

    def _enter(self, draft: Draft, now: int) -> None:
        due = due_of(draft, now)
        job = Job(draft.id, self._record(draft, now))
        job.expires = expiry(draft, max(due, now))
        if due > now:
            job.state, job.due = "delayed", due
        else:
            self.join(job, now)
        self.jobs[job.id] = job
        if draft.unique_ms:
            self.uniques[job.id] = Unique(draft.unique_ms, 0, now)
        self.publish("added", job.id, job.group)
        self._stand_for(draft, job.id, now)

    def _become(self, job: Job, draft: Draft, now: int) -> None:
        """Replace the content of a job. Its id and creation time stay; its delay starts again."""
        made, job.due = job.record.created_ms, due_of(draft, now)
        job.record = self._record(draft, now)._replace(created_ms=made)
        job.expires = expiry(draft, job.due)
        self._stand_for(draft, job.id, now)

    def _record(self, draft: Draft, now: int) -> Record:
        self.arrivals += 1
        due, given = due_of(draft, now), draft.order_ms is not None
        order = draft.order_ms if draft.order_ms is not None else due if due > now else self.order
        body = draft.max_attempts, given, draft.group_id, draft.options or {}, draft.data
        return Record(draft.priority, order, self.arrivals, now, *body)

    def _stand_for(self, draft: Draft, job_id: str, now: int) -> None:
        if draft.dedupe is not None:
            ms = draft.dedupe.packed()[2]
            self.stand_ins[scope(draft)] = StandIn(job_id, self.arrivals, now + ms)

    # Repeats

    def define(self, repeat_id: str, repeat: Repeat | None, first: int | None, now: int) -> None:
        """Store, change or remove a definition, possibly with an occurrence at once. An earlier tick wakes workers."""
        before = self.first_tick()
        if repeat is not None and first is not None:
            self._occur(repeat_id, repeat, first, now)
        self._keep(repeat_id, repeat)
        if self.first_tick() < before:
            self.send_mail(self.workers)
        self.tidy()

    def _keep(self, repeat_id: str, repeat: Repeat | None) -> None:
        """Store a definition, or remove it if it has no next tick."""
        self.repeats.pop(repeat_id, None)
        if repeat is not None and repeat.fields["next"]:
            self.repeats[repeat_id] = repeat

    def tick(self, ticks: Sequence[Sequence[Any]], now: int) -> Ticked:
        """Ticks of a scheduler take effect only if it expects the stored next tick."""
        added = 0
        for repeat_id, expected, following, *run in ticks:
            repeat = self.repeats.get(repeat_id)
            if repeat is not None and repeat.fields["next"] == expected:
                added += sum(self._occur(repeat_id, repeat, tick, now) for tick in run)
                repeat.fields["next"] = following
                self._keep(repeat_id, repeat)
        self.tidy()
        return Ticked(added, self.until_tick(now))

    def until_tick(self, now: int) -> int:
        return max(0, int(self.first_tick()) - now) if self.repeats else -1

    def first_tick(self) -> float:
        return min((repeat.fields["next"] for repeat in self.repeats.values()), default=float("inf"))

    def _occur(self, repeat_id: str, repeat: Repeat, tick: int, now: int) -> bool:
        """Add the job of a tick. Its order is the tick, and its id contains it, so that no tick has two jobs. False if
        the tick is skipped because the last occurrence is still live."""
        last = self.jobs.get(f"{repeat_id}:{repeat.fields['last']}")
        if repeat.fields.get("overlap") == "skip" and last is not None and last.state not in ("completed", "failed"):
            repeat.fields["skipped"] = repeat.fields.get("skipped", 0) + 1
            return False
        repeat.fields |= {"last": tick, "count": repeat.fields["count"] + 1}
        job_id = f"{repeat_id}:{tick}"
        if job_id not in self.jobs:
            self._enter(repeat.draft._replace(id=job_id, order_ms=tick), now)
        return True


def scope(draft: Draft) -> tuple[int, str, str]:
    """Kind, group and key: adds that have these in common stand for each other."""
    assert draft.dedupe is not None
    kind, key, _ = draft.dedupe.packed()
    return kind, draft.group_id or UNGROUPED, key


def expiry(draft: Draft, may_start: int) -> int:
    """When the ttl ends; it counts from when the job may start."""
    return may_start + draft.ttl_ms if draft.ttl_ms else 0


def due_of(draft: Draft, now: int) -> int:
    return now + draft.delay_ms if draft.delay_ms else draft.run_at_ms
