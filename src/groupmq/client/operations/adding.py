"""Adding jobs, and what was there already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from groupmq.client.operations.finding import Finding
from groupmq.client.operations.steps import J, Steps
from groupmq.core import record
from groupmq.core.drafts import Draft, drafts_from
from groupmq.core.errors import ConfigurationError, GroupFull
from groupmq.core.record import Record
from groupmq.core.snapshot import GONE
from groupmq.core.tuples import of_class
from groupmq.protocol import commands
from groupmq.protocol.commands import Call

_NONE: dict[str, Any] = {}


class Adding(Finding[J]):
    def chunks(
        self, items: Iterable[Any], headers: dict[str, str] | None = None
    ) -> Iterator[tuple[Sequence[Draft], Call[commands.Added]]]:
        """The items of an add_many, all checked before the first call is given out, as calls of bounded size."""
        if not isinstance(items, Iterable):
            raise ConfigurationError.expected("items", "mappings or JobDrafts, as an iterable", items)
        drafts = drafts_from(self.options, items, headers)
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
            views = yield from self.views(list(added.stood_for.values()))
            for (i, job_id), view in zip(added.stood_for.items(), views, strict=True):
                if view is None:
                    jobs[i] = self._gone(drafts[i]._replace(id=job_id), added, added.made.get(i, 0))
                else:
                    jobs[i] = self.job_from(job_id, view)
                jobs[i].duplicate = True
        if added.duplicates:
            views = yield from self.views([drafts[i].id for i in added.duplicates])
            for i, view in zip(added.duplicates, views, strict=True):
                nonce = drafts[i].nonce
                # Our own add that was sent twice is no duplicate: we made the id, or the stored nonce is ours.
                if view is None:
                    jobs[i] = self._gone(drafts[i], added)
                    jobs[i].duplicate = nonce is not None
                    continue
                jobs[i] = self.job_from(drafts[i].id, view)
                jobs[i].duplicate = nonce is not None and record.unpack(view.record).options.get("n") != nonce
        return jobs

    def _gone(self, d: Draft, added: commands.Added, made_ms: int = 0) -> J:
        """A job that ended or was removed, and is not kept: its id is known, its own data are not.

        `made_ms`: when it was made, 0 = not known; how it ended is looked for in the log from there on.
        """
        job = self._job_of(d, added)
        job.state, job._run_at_ms, job._created_ms = GONE, 0, made_ms
        return job

    def _job_of(self, d: Draft, added: commands.Added) -> J:
        due = added.now + d.delay_ms if d.delay_ms else d.run_at_ms
        later = due > added.now
        order = d.order_ms if d.order_ms is not None else (due if later else added.order_ms)
        own_id, group, priority, _, _, _, attempts, options, data, *_ = d
        stored = of_class(Record, (priority, order, 0, added.now, attempts, False, group, options or _NONE, data))
        job = self.make(own_id, "delayed" if later else "waiting", stored)
        if later:
            job._run_at_ms = due
        return job
