"""Every key name of a queue. `lua/lib/keys.lua` spells the same names; a test compares the two."""

from __future__ import annotations

from dataclasses import dataclass

from groupmq.core.partitions import Part, tag_of

FIXED = (
    "meta",
    "jobs",
    "bodies",
    "state",
    "results",
    "progress",
    "logs",
    "interrupts",
    "stopping",
    "stops",
    "events",
    "segments",
    "labels",
    "groups",
    "conf",
    "blocked",
    "blockers",
    "blocking",
    "breakers",
    "breaking",
    "opened",
    "ready",
    "parked",
    "delayed",
    "expiring",
    "active",
    "leases",
    "completed",
    "failed",
    "failures",
    "series",
    "requesters",
    "calls_even",
    "calls_odd",
    "workers",
    "holders",
    "wake",
    "starts",
    "rated",
    "dedupe",
    "deduped",
    "elsewhere",
    "unique",
    "uniques",
    "repeats",
    "ticks",
    "durable",
    "never",
)


def registry_key(prefix: str) -> str:
    """The names of all queues of a prefix. This is the only key without the hash tag of a queue."""
    return f"{prefix}:queues"


@dataclass(frozen=True, slots=True)
class Keys:
    """Key names of one queue, all under one hash tag so that they share a cluster slot; or of one of its partitions."""

    prefix: str
    queue: str
    part: Part | None = None

    @property
    def base(self) -> str:
        tag = self.queue if self.part is None else tag_of(self.queue, self.part)
        return f"{self.prefix}:{{{tag}}}:"

    @property
    def meta(self) -> str:
        return self.base + "meta"

    @property
    def wake(self) -> str:
        return self.base + "wake"

    def fixed(self, name: str) -> str:
        """The key called `name`, one of `FIXED`."""
        return self.base + name

    @property
    def elsewhere(self) -> str:
        """Ids that were given to jobs of groups of other partitions (client/partitions/whereabouts.py)."""
        return self.base + "elsewhere"

    def wake_of(self, worker: str) -> str:
        """The marker of the worker whose turn it is, in an exclusive queue."""
        return f"{self.base}wake:{worker}"

    def mail(self, worker: str) -> str:
        """The key that makes a worker's next heartbeat come at once."""
        return f"{self.base}mail:{worker}"

    def grants(self, worker: str) -> str:
        """The job that an add has granted to an idle worker, until that worker has received it."""
        return f"{self.base}grants:{worker}"

    @property
    def durable(self) -> str:
        """The key that is written behind a call that waits to be durable (`core/durability.py`)."""
        return self.base + "durable"

    def rate(self, group_id: str) -> str:
        """The last starts of a group with a rate limit."""
        return f"{self.base}r:{group_id}"

    def group(self, group_id: str) -> str:
        """The waiting jobs of a group; with an empty id, those without a group."""
        return f"{self.base}g:{group_id}"
