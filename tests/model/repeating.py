"""Rules: repeating jobs are defined, changed and removed, and one or several schedulers tick."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from groupmq.core import record
from groupmq.core.drafts import Draft
from groupmq.protocol import commands
from tests.model import strategies as draws
from tests.model.grants import Grants
from tests.model.pair import same
from tests.model.parts import Repeat


class Repeating(Grants):
    @precondition(lambda self: self.kind.extras)
    @rule(
        which=st.integers(0, len(draws.REPEATS) - 1),
        item=draws.items(),
        ahead=st.sampled_from((20, 20, 700, 0, None)),
        at_once=st.booleans(),
        outdated=st.sampled_from((False, False, False, True)),
        removes=st.sampled_from((False, False, False, True)),
    )
    def somebody_defines_a_repeat(
        self, which: int, item: draws.Item, ahead: int | None, at_once: bool, outdated: bool, removes: bool
    ) -> None:
        """`ahead`: ms until its next tick, None = it has none. `outdated`: another process changed it in between."""
        repeat_id = draws.REPEATS[which]
        if removes:
            self.define(repeat_id, None, None, outdated=outdated)
            return
        draft = occurrence(self.adapted(item).draft(self.groups, self.now))
        before = self.model.repeats.get(repeat_id)
        fields: dict[str, Any] = {
            "group": draft.group_id or "",
            "key": "key",
            "priority": draft.priority,
            "ttl": draft.ttl_ms or False,
            "next": 0 if ahead is None else self.now + ahead,
            "last": before.fields["last"] if before else 0,
            "count": before.fields["count"] if before else 0,
            "plan": "{}",
        }
        if self.kind.unique:
            fields |= {"overlap": "skip"}
        if before and "skipped" in before.fields:
            fields |= {"skipped": before.fields["skipped"]}
        self.define(repeat_id, Repeat(fields, draft), self.now if at_once else None, outdated=outdated)

    def define(self, repeat_id: str, repeat: Repeat | None, first: int | None, *, outdated: bool) -> None:
        found = self.call(commands.repeats_of([repeat_id], self.now)).found
        same(bool(found), repeat_id in self.model.repeats)
        seen = found.get(repeat_id, b"")
        expected = seen[:-1] + b"?" if outdated else seen
        if repeat is None:
            call = commands.undefine(repeat_id, expected, self.now)
        else:
            body = repeat.draft.body
            call = commands.define(repeat_id, expected, dict(repeat.fields), body, first, self.now)
        same(self.call(call), not outdated)
        if not outdated:
            before = self.model.first_tick()
            self.model.define(repeat_id, repeat, first, self.now)
            self.look()
            if self.model.first_tick() < before:
                assert self.any_marker(), "a tick is earlier than all others, but no marker wakes an idle worker"

    @precondition(lambda self: self.model.repeats)
    @rule(
        late=st.sampled_from((0, 0, 1, 30)),
        missed=st.integers(0, 2),
        ahead=st.sampled_from((20, 700, None)),
        rivals=st.sampled_from((0, 1, 1)),
    )
    def schedulers_tick(self, late: int, missed: int, ahead: int | None, rivals: int) -> None:
        """At the next tick or later, all schedulers read the same definitions, and then each sends its ticks."""
        self.go_to(max(self.now, int(self.model.first_tick()) + late))
        ticks = self.due_ticks(missed, ahead)
        for _ in range(1 + rivals):
            self.tick(ticks)

    def due_ticks(self, missed: int, ahead: int | None) -> list[list[Any]]:
        nexts = {i: repeat.fields["next"] for i, repeat in self.model.repeats.items()}
        due = self.call(commands.repeats_due(now=self.now))
        same(sorted(due.found), sorted(i for i, tick in nexts.items() if tick <= self.now))
        same(due.wait_ms, min((tick - self.now for tick in nexts.values() if tick > self.now), default=-1))
        return [
            [i, nexts[i], 0 if ahead is None else self.now + ahead, *range(nexts[i], nexts[i] + 1 + missed)]
            for i in sorted(due.found)
        ]

    def tick(self, ticks: list[list[Any]]) -> None:
        same(self.call(commands.tick(ticks, self.now)), self.model.tick(ticks, self.now))
        self.look()


def occurrence(draft: Draft) -> Draft:
    """The draft of the occurrences of a repeating job: each has its tick as its order, and may start at once."""
    terms = draft.max_attempts, True, (draft.group_id or "").encode(), draft.options
    holds = draft.options.get("f") if draft.options else None
    body = record.pack_body(*terms, draft.data, has_ttl=draft.ttl_ms > 0, holds=holds)
    return draft._replace(delay_ms=0, run_at_ms=0, dedupe=None, unique_ms=0, body=body)
