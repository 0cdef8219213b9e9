"""Adding to a queue with partitions: where each job goes, and the ids that carry its place."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupmq.client.answers import repeats
from groupmq.client.answers.repeats import repeat_place
from groupmq.client.job import Job
from groupmq.client.partitions.overriding import across
from groupmq.client.partitions.routing import Routing
from groupmq.client.partitions.whereabouts import SLOW_ADD, Whereabouts
from groupmq.client.queue.adding import chunks, drafts_of
from groupmq.client.queue.methods import QueueMethods
from groupmq.core import schedule as schedules
from groupmq.core.checks import text
from groupmq.core.draft_chain import JobDraft
from groupmq.core.drafts import Draft, draft
from groupmq.core.errors import ConfigurationError
from groupmq.core.partitions import PLACES, carried, carrying, home_of, place_of
from groupmq.core.schedule import Repeat

if TYPE_CHECKING:
    from groupmq.client.queue.queue import Queue


def place_for(draft: Draft) -> int:
    """Where a job goes: to its group; without one to the other jobs of its dedupe key, its id's home, or anywhere."""
    if draft.group_id is not None:
        return place_of(draft.group_id)
    if draft.dedupe is not None:
        return place_of(draft.dedupe.key)
    return home_of(draft.id) if draft.nonce is not None else secrets.randbelow(PLACES)


def placed(draft: Draft, place: int) -> Draft:
    """The draft with an id that carries its place, unless a user gave the id."""
    return draft if draft.nonce is not None else draft._replace(id=carrying(draft.id, place))


class Spreading(Routing):
    """The methods that add jobs."""

    async def add_many(self, items: Iterable[Mapping[str, Any] | JobDraft[Any]]) -> list[Job]:
        drafts = drafts_of(self, items)
        if not await self._learn():
            return await self._submit_all(chunks(drafts))
        return await self._spread(drafts)

    async def _spread_one(self, d: Draft) -> Job:
        await self._learn()
        if d.nonce is not None:
            (job,) = await self._spread([d])
            return job
        place = place_for(d)
        return await self._at(place)._submit(placed(d, place))

    async def _spread(self, drafts: Sequence[Draft]) -> list[Job]:
        places = [place_for(d) for d in drafts]
        for d, place in zip(drafts, places, strict=True):
            if d.nonce is not None and carried(d.id) not in (None, place):
                raise ConfigurationError(
                    f"job_id: {d.id!r} looks like an id that groupmq makes, for a job of another partition; "
                    "choose another id"
                )
        began = time.time()
        jobs = await self._existing_elsewhere(drafts, places)
        existing = set(jobs)
        by_part: dict[int, list[int]] = {}
        for i, place in enumerate(places):
            if i not in jobs:
                by_part.setdefault(id(self._at(place)), []).append(i)
        for there in by_part.values():
            part = self._at(places[there[0]])
            added = await part._submit_all(chunks([placed(drafts[i], places[i]) for i in there]))
            jobs.update(zip(there, added, strict=True))
        if time.time() - began > SLOW_ADD:
            await self._enter_again([i for i in range(len(drafts)) if i not in existing], drafts, places)
        return [jobs[i] for i in range(len(drafts))]

    async def _enter_again(self, added: Sequence[int], drafts: Sequence[Draft], places: Sequence[int]) -> None:
        """Write the entries of jobs just added once more: the first ones may have been swept away during the add."""
        for i in added:
            if drafts[i].nonce is not None:
                home = self._at(home_of(drafts[i].id))
                if self._at(places[i]) is not home:
                    await Whereabouts(home._connection).enter({drafts[i].id: places[i]})

    async def _existing_elsewhere(self, drafts: Sequence[Draft], places: Sequence[int]) -> dict[int, Job]:
        """Enter ids that users gave, if their job goes to another partition than the home of the id.

        Returns the jobs with such an id that exist in a third partition.

        Such a job makes the new one a duplicate. Two adds of one id to groups of different partitions at the same time
        may both find none, and both add. Within a group, and among jobs without one, an id is always unique.
        """
        by_home: dict[int, list[int]] = {}
        for i, d in enumerate(drafts):
            if d.nonce is not None:
                by_home.setdefault(id(self._at(home_of(d.id))), []).append(i)
        found: dict[int, Job] = {}
        for given in by_home.values():
            home = self._at(home_of(drafts[given[0]].id))
            found.update(await self._enter(home, [(i, drafts[i].id, places[i]) for i in given]))
        return found

    async def _enter(self, home: Queue, given: Sequence[tuple[int, str, int]]) -> dict[int, Job]:
        book = Whereabouts(home._connection)
        entered = await book.find([job_id for _, job_id, _ in given])
        elsewhere = [
            (i, job_id, self._at(home_of(job_id) if entry is None else entry))
            for (i, job_id, place), entry in zip(given, entered, strict=True)
            if self._at(home_of(job_id) if entry is None else entry) is not self._at(place)
        ]
        jobs = await self._read_at([job_id for _, job_id, _ in elsewhere], [part for _, _, part in elsewhere])
        found = {i: job for (i, _, _), job in zip(elsewhere, jobs, strict=True) if job is not None}
        for job in found.values():
            job.duplicate = True
        # Written even if the entry is right: an old one would be swept away if it has no job when the sweep reads it.
        away = {
            job_id: place
            for (i, job_id, place), entry in zip(given, entered, strict=True)
            if i not in found and (entry is not None or self._at(place) is not home)
        }
        if away:
            await book.enter(away)
        return found

    # Repeating jobs

    async def _add_repeating(self, data: Any, repeat: object, headers: dict[str, str] | None, **options: Any) -> Job:
        schedule = schedules.checked(repeat)
        repeats.check(options)
        checked = draft(self.options, data, headers, **{**options, "order_ms": 0})
        if not await self._learn():
            return await super()._add_repeating(data, repeat, headers, **options)
        part = self._at(repeat_place(checked.group_id, schedule.name))
        return await part._add_repeating(data, repeat, headers, **options)

    @across(QueueMethods.remove_repeating_job)
    async def remove_repeating_job(self, group_id: str | None, repeat_or_key: Repeat | str) -> bool:
        if isinstance(repeat_or_key, str):
            name = text(repeat_or_key, "repeat_or_key")
        else:
            name = schedules.checked(repeat_or_key, "repeat_or_key").name
        place = repeat_place(None if group_id is None else text(group_id, "group_id"), name)
        return await self._at(place).remove_repeating_job(group_id, repeat_or_key)
