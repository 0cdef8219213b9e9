# Generated from src/groupmq/client/partitions/moving.py by `make sync`; do not edit.
"""Changing the number of partitions of a queue: everything is copied to new hash tags, compared, and switched over.

Meanwhile the queue and all its partitions have a format that no function accepts, so nothing changes during the copy,
and no process can add jobs. Until the switch, which is one command, the old partitions count. If a run is killed before
the switch, the next run starts the copy again. If it is killed after the switch, the next run continues to remove the
old partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from groupmq.client.answers import moving
from groupmq.client.answers.moving import Digest
from groupmq.client.connection.replies import decoded
from groupmq.core.errors import ConfigurationError, GroupMQError, QueueNotFound
from groupmq.core.ids import new_id
from groupmq.core.partitions import Part, place_of
from groupmq.protocol import commands
from groupmq.protocol.keys import FIXED, Keys
from groupmq.sync.connection.connections import BlockingConnection
from groupmq.sync.partitions.whereabouts import entry_of

PAGE = 200
PAGES = {"bodies": 1, "results": 10}
"""Entries per page, for structures whose values may have a megabyte each."""
ABANDONED = 15.0
"""Seconds of silence after which a run counts as dead, and another may go on with its work."""
Pairs = list[tuple[bytes, bytes]]


class Repartition:
    """One run. `progress` is called with the number of entries copied so far."""

    def __init__(
        self,
        connection: BlockingConnection,
        connections: Callable[[], Sequence[BlockingConnection]],
        to: int,
        progress: Callable[[int], object] | None,
    ) -> None:
        """`connections`: those of the new partitions."""
        self._connection = connection
        self._connections = connections
        options = connection.session.options
        self._name, self._prefix = options.name, options.prefix
        self._whole = Keys(self._prefix, self._name)
        self._to = to
        self._progress = progress
        self._copied = 0
        self._token = new_id()
        self._alive = 0.0

    def _keys(self, partitions: int) -> list[Keys]:
        if partitions == 1:
            return [self._whole]
        return [Keys(self._prefix, self._name, Part(i, partitions)) for i in range(partitions)]

    def _run(self, *parts: Any, on: str) -> Any:
        return self._connection.command(*parts, key=on)

    def pending(self) -> tuple[int, int, str] | None:
        """The old and new number of partitions, and how far an earlier run got; None if none was begun."""
        schema, raw = self._run("HMGET", self._whole.meta, "schema", "moving", on=self._whole.meta)
        if schema is None:
            raise QueueNotFound(self._name, self._connection.session.where)
        if raw is None:
            return None
        before, to, phase = decoded(raw).split()
        return int(before), int(to), phase

    def begin(self, before: int) -> None:
        """Close the queue to every process. This one command begins the work."""
        fields = ("schema", commands.MOVING, "moving", f"{before} {self._to} copy")
        self._run("HSET", self._whole.meta, *fields, on=self._whole.meta)

    def finish(self, before: int, phase: str) -> int:
        """Do the whole work, or the rest of it, and return how many jobs there are."""
        self._claim()
        sources, targets = self._keys(before), self._keys(self._to)
        if phase == "copy":
            self._close_sources(sources)
            self._wipe(targets, sources)
            self._copy(sources, targets)
            self._compare(sources, targets)
            self._switch(before, sources)
        self._wipe(sources, sources)
        self._run("HDEL", self._whole.meta, "moving", "mover", on=self._whole.meta)
        sizes = [int(self._run("HLEN", one.fixed("jobs"), on=one.meta)) for one in targets]
        return sum(sizes)

    # Safety

    def _claim(self) -> None:
        """Claim the work for this run. Of two runs at a time, each would remove what the other has copied."""
        raw = self._run("HGET", self._whole.meta, "mover", on=self._whole.meta)
        if raw is not None:
            token, at = decoded(raw).split()
            silent = time.time() - float(at)
            if token != self._token and silent < ABANDONED:
                raise GroupMQError(
                    f"another run is repartitioning queue {self._name!r}, or died {silent:.0f} s ago; "
                    f"try again in {ABANDONED - silent:.0f} s"
                )
        self._sign()

    def _sign(self) -> None:
        self._run("HSET", self._whole.meta, "mover", f"{self._token} {time.time():.3f}", on=self._whole.meta)
        self._alive = time.monotonic()

    def _keep_claim(self) -> None:
        """Renew the claim before a step. Raises if another run has taken over while this process was stopped."""
        if time.monotonic() - self._alive < 1:
            return
        raw = self._run("HGET", self._whole.meta, "mover", on=self._whole.meta)
        if raw is None or not decoded(raw).startswith(self._token):
            raise GroupMQError(f"another run has taken over the repartitioning of queue {self._name!r}")
        self._sign()

    def _close_sources(self, sources: Sequence[Keys]) -> None:
        """Close the partitions to all functions. Jobs that were added before that are copied."""
        for one in sources:
            if self._run("EXISTS", one.meta, on=one.meta):
                self._run("HSET", one.meta, "schema", commands.MOVING, on=one.meta)
        for one in sources:
            for structure in ("active", "stopping"):
                if self._run("ZCARD", one.fixed(structure), on=one.meta):
                    self._undo(sources)
                    raise ConfigurationError(
                        f"queue {self._name!r} has running jobs; wait until it has none (it stays paused), then "
                        "repartition it"
                    )

    def _undo(self, sources: Sequence[Keys]) -> None:
        for one in sources:
            if one != self._whole and self._run("EXISTS", one.meta, on=one.meta):
                self._run("HSET", one.meta, "schema", commands.SCHEMA, on=one.meta)
        schema = commands.SCHEMA if len(sources) == 1 else commands.PARTITIONED
        self._run("HSET", self._whole.meta, "schema", schema, on=self._whole.meta)
        self._run("HDEL", self._whole.meta, "moving", "mover", on=self._whole.meta)

    # Reading

    def _page(self, key: str, cursor: str, *, is_sorted: bool) -> tuple[str, Pairs]:
        """The next cursor, and a page of a hash (fields and values) or of a sorted set (members and scores)."""
        self._keep_claim()
        command = "ZSCAN" if is_sorted else "HSCAN"
        reply = self._run(command, key, cursor, "COUNT", PAGES.get(key.rpartition(":")[2], PAGE), on=key)
        return decoded(reply[0]), moving.pairs_of(reply[1], is_sorted=is_sorted)

    def _groups(self, one: Keys, structure: str = "groups") -> list[str]:
        cursor, found = "", dict[str, None]()
        while cursor != "0":
            cursor, pairs = self._page(one.fixed(structure), cursor or "0", is_sorted=structure == "rated")
            found.update((decoded(field), None) for field, _ in pairs)
        return list(found)

    # Copying

    def _copy(self, sources: Sequence[Keys], targets: Sequence[Keys]) -> None:
        for one in sources:
            deduped = self._deduped(one)
            for structure in moving.HASHES:
                self._copy_structure(one, targets, structure, deduped, is_sorted=False)
            for structure in moving.SORTED:
                self._copy_structure(one, targets, structure, deduped, is_sorted=True)
            for group_id in self._groups(one):
                self._copy_group(one, targets, group_id, deduped)
            for group_id in self._groups(one, "rated"):
                self._copy_rate(one, targets[place_of(group_id) % self._to], group_id)
            self._copy_group(one, targets, "", deduped)
        self._make_loose_groups(targets)

    def _deduped(self, one: Keys) -> dict[bytes, int]:
        """The jobs without a group that have a dedupe key, each with the place of the key."""
        cursor, found = "", dict[bytes, int]()
        while cursor != "0":
            cursor, pairs = self._page(one.fixed("dedupe"), cursor or "0", is_sorted=False)
            for field, value in pairs:
                group, key = moving.dedupe_parts(field)
                if not group:
                    found[value[12:]] = place_of(key)
        return found

    def _copy_structure(
        self, one: Keys, targets: Sequence[Keys], structure: str, deduped: dict[bytes, int], *, is_sorted: bool
    ) -> None:
        cursor = ""
        while cursor != "0":
            cursor, pairs = self._page(one.fixed(structure), cursor or "0", is_sorted=is_sorted)
            places = self._targets_of(one, structure, [field for field, _ in pairs], deduped)
            by_target: dict[int, Pairs] = {}
            for (field, value), where in zip(pairs, places, strict=True):
                for at in where:
                    by_target.setdefault(at, []).append((field, value))
            for at, some in by_target.items():
                self._write(targets[at], structure, some, is_sorted=is_sorted)
            if structure == "jobs":
                self._enter(targets, pairs, places)
            self._copied += len(pairs)
            if self._progress is not None:
                self._progress(self._copied)

    def _targets_of(
        self, one: Keys, structure: str, fields: Sequence[bytes], deduped: dict[bytes, int]
    ) -> list[list[int]]:
        """The targets of each field."""
        n = self._to
        if structure in (*moving.EVERYWHERE, *moving.EVERYWHERE_SORTED):
            return [list(range(n)) for _ in fields]
        if structure in (*moving.BY_JOB, *moving.BY_JOB_SORTED):
            ids = [moving.job_of(structure, field) for field in fields]
            records = self._run("HMGET", one.fixed("jobs"), *ids, on=one.meta) if ids else []
            places = []
            for field, job_id, raw in zip(fields, ids, records, strict=True):
                rid = moving.repeat_of(structure, field)
                at = moving.place_of_repeat(rid) if rid else moving.place_of_job(job_id, raw, deduped)
                places.append([at % n])
            return places
        if structure in (*moving.BY_GROUP, *moving.BY_GROUP_SORTED):
            # The jobs without a group are spread over several partitions, so their value is computed again.
            return [
                [place_of(decoded(field)) % n] if field else ([] if structure == "groups" else list(range(n)))
                for field in fields
            ]
        if structure == "labels":
            return [[0] for _ in fields]
        place = {
            "blocking": moving.place_of_blocking,
            "dedupe": moving.place_of_dedupe,
            "deduped": moving.place_of_dedupe,
            "repeats": moving.place_of_repeat,
            "ticks": moving.place_of_repeat,
        }[structure]
        return [[place(field) % n] for field in fields]

    def _write(self, target: Keys, structure: str, pairs: Pairs, *, is_sorted: bool) -> None:
        key = target.fixed(structure)
        if is_sorted:
            flat = [part for member, score in pairs for part in (score, member)]
            self._run("ZADD", key, *flat, on=key)
        else:
            self._run("HSET", key, *(part for pair in pairs for part in pair), on=key)

    def _enter(self, targets: Sequence[Keys], pairs: Pairs, places: Sequence[Sequence[int]]) -> None:
        """Write entries for jobs whose ids do not carry the place."""
        now_ms, by_home = int(time.time() * 1000), dict[int, list[Any]]()
        for (job_id, _), (at,) in zip(pairs, places, strict=True):
            if moving.needs_entry(job_id, at, self._to):
                home = place_of(job_id.decode()) % self._to
                by_home.setdefault(home, []).extend((job_id, entry_of(at, now_ms)))
        for home, flat in by_home.items():
            self._run("HSET", targets[home].elsewhere, *flat, on=targets[home].elsewhere)

    def _copy_group(self, one: Keys, targets: Sequence[Keys], group_id: str, deduped: dict[bytes, int]) -> None:
        """Copy the waiting jobs of a group. Their order is in their member names, which begin with the sort key."""
        key, cursor = one.group(group_id), ""
        while cursor != "0":
            cursor, pairs = self._page(key, cursor or "0", is_sorted=True)
            by_target: dict[int, list[Any]] = {}
            for member, score in pairs:
                at = place_of(group_id) if group_id else moving.place_of_member(member, deduped)
                by_target.setdefault(at % self._to, []).extend((score, member))
            for at, flat in by_target.items():
                to = targets[at].group(group_id)
                self._run("ZADD", to, *flat, on=to)

    def _copy_rate(self, one: Keys, target: Keys, group_id: str) -> None:
        key, to = one.rate(group_id), target.rate(group_id)
        starts = self._run("LRANGE", key, 0, -1, on=key)
        self._run("UNLINK", to, on=to)
        if starts:
            self._run("RPUSH", to, *starts, on=to)

    def _make_loose_groups(self, targets: Sequence[Keys]) -> None:
        for target in targets:
            heads = self._run("ZRANGE", target.group(""), -1, -1, on=target.meta)
            delayed, cursor = 0, ""
            while cursor != "0":
                cursor, pairs = self._page(target.fixed("delayed"), cursor or "0", is_sorted=True)
                ids = [job_id for job_id, _ in pairs]
                records = self._run("HMGET", target.fixed("jobs"), *ids, on=target.meta) if ids else []
                delayed += sum(raw is not None and moving.group_of_record(raw) is None for raw in records)
            if heads or delayed:
                value = moving.loose_value(delayed, heads[0] if heads else b"")
                self._run("HSET", target.fixed("groups"), "", value, on=target.meta)
            if not heads:
                self._run("ZREM", target.fixed("ready"), "", on=target.meta)

    # Comparing and switching

    def _compare(self, sources: Sequence[Keys], targets: Sequence[Keys]) -> None:
        """Raise unless the new partitions have everything that the old ones have, and nothing else."""
        before, after = self._digests(sources), self._digests(targets)
        wrong = [name for name in before if before[name] != after[name]]
        if wrong:
            raise GroupMQError(
                f"queue {self._name!r}: the copy differs in {', '.join(wrong)}. Nothing was switched over, and the old "
                "partitions are unchanged; repartition it again"
            )

    def _digests(self, partitions: Sequence[Keys]) -> dict[str, Digest]:
        found: dict[str, Digest] = {}
        compared = [
            *((name, False) for name in moving.HASHES if name not in moving.EVERYWHERE),
            *((name, True) for name in moving.SORTED if name not in moving.EVERYWHERE_SORTED),
        ]
        for structure, is_sorted in compared:
            digest = Digest()
            for one in partitions:
                seen: dict[bytes, bytes] = {}  # a scan may show an entry twice
                cursor = ""
                while cursor != "0":
                    cursor, pairs = self._page(one.fixed(structure), cursor or "0", is_sorted=is_sorted)
                    seen.update((field, moving.short(value)) for field, value in pairs if field)
                for field, value in seen.items():
                    digest = digest.plus(field, value)
            found[structure] = digest
        waiting = Digest()
        for one in partitions:
            for group_id in {*self._groups(one), ""}:
                seen, cursor = {}, ""
                while cursor != "0":
                    cursor, pairs = self._page(one.group(group_id), cursor or "0", is_sorted=True)
                    seen.update(pairs)
                for member in seen:
                    waiting = waiting.plus(group_id.encode(), member)
        return found | {"the waiting jobs": waiting}

    def _switch(self, before: int, sources: Sequence[Keys]) -> None:
        numbers = []
        for one in sources:
            raw = self._run("HGET", one.meta, "numbers", on=one.meta)
            if raw is not None:
                numbers.append(raw)
        # The settings are those of the queue itself: a partition may not have received the last change.
        key = self._whole.meta
        stored = moving.settings_for(commands.stored_queue(self._run(*commands.read_settings(key), on=key)), self._to)
        done = f"{before} {self._to} clean"
        self._keep_claim()
        if self._to == 1:
            self._connection.call_closed(commands.absorb(numbers, self._name, stored, done))
            return
        for connection in self._connections():
            connection.call_closed(commands.absorb(numbers, self._name, stored))
            connection.close()
        switched = ["schema", commands.PARTITIONED, "config", stored.config, "moving", done]
        if stored.revision:
            switched += ["revision", stored.revision.decode()]
        self._run("HSET", key, *switched, on=key)

    # Removing

    def _wipe(self, doomed: Sequence[Keys], listed: Sequence[Keys]) -> None:
        """Remove all keys of the `doomed` partitions, except the queue's settings. Both arguments name their groups."""
        groups, rated = set[str](), set[str]()
        for one in {*listed, *doomed}:
            groups.update(self._groups(one))
            rated.update(self._groups(one, "rated"))
        for one in doomed:
            names = [*(one.group(group_id) for group_id in {*groups, ""}), *(one.rate(group_id) for group_id in rated)]
            names += [one.fixed(name) for name in FIXED if not (name == "meta" and one == self._whole)]
            for at in range(0, len(names), PAGE):
                self._keep_claim()
                self._run("UNLINK", *names[at : at + PAGE], on=one.meta)
