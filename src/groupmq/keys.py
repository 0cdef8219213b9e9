"""Every key name of a queue. `lua/lib/keys.lua` spells the same names; a test compares the two."""

from __future__ import annotations

from dataclasses import dataclass

FIXED = (
    "meta",
    "jobs",
    "state",
    "results",
    "groups",
    "conf",
    "ready",
    "parked",
    "delayed",
    "active",
    "leases",
    "completed",
    "failed",
    "failures",
    "lanes",
    "workers",
    "wake",
)


@dataclass(frozen=True, slots=True)
class Keys:
    """Key names of one queue, all under one hash tag so that they share a cluster slot."""

    prefix: str
    queue: str

    @property
    def base(self) -> str:
        return f"{self.prefix}:{{{self.queue}}}:"

    @property
    def meta(self) -> str:
        return self.base + "meta"

    @property
    def wake(self) -> str:
        return self.base + "wake"

    def fixed(self, name: str) -> str:
        """The key called `name`, one of `FIXED`."""
        return self.base + name

    def group(self, group_id: str) -> str:
        """The waiting jobs of a group; of jobs without a group for an empty id."""
        return f"{self.base}g:{group_id}"
