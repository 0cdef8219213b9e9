"""Slots that several workers of a process share: pure decisions, no I/O.

Each worker calls its own server for its own queue, so slots are shared out before a call and not after it. A worker may
always ask for its fair part, behind those that were served longer ago, and for more if no other worker wants it.
"""

from __future__ import annotations

from typing import Protocol


class Sharer(Protocol):
    """What the pool asks of a worker."""

    def slots_used(self) -> int: ...
    def slots_asked(self) -> int:
        """Slots that its calls under way may fill."""

    def is_hungry(self) -> bool:
        """Whether it would take a job if it had a slot: its queue is not known to have none."""

    def look_again(self) -> None:
        """There may be a slot for it."""


class SharedSlots:
    """So many slots for all workers that join."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.shares: list[Share] = []
        self._served = 0

    def join(self, sharer: Sharer, share: Share | None = None) -> Share:
        """`share`: that of the same worker, whose parts were made anew."""
        if share is not None:
            share.sharer = sharer
            return share
        share = Share(self, sharer, len(self.shares))
        self.shares.append(share)
        return share

    def turn(self) -> int:
        """A number for who was served just now."""
        self._served += 1
        return self._served

    def moved(self) -> None:
        """A slot may have become free, or a worker may want one no longer."""
        for share in sorted(self.shares, key=lambda share: share.served):
            share.sharer.look_again()


class Share:
    """The part of one worker."""

    def __init__(self, pool: SharedSlots, sharer: Sharer, number: int) -> None:
        self._pool = pool
        self.sharer = sharer
        self.served: tuple[int, int] = (0, number)
        """When it last got a job; of those that got none, the first that joined comes first."""

    def got_jobs(self) -> None:
        self.served = (self._pool.turn(), self.served[1])

    def moved(self) -> None:
        self._pool.moved()

    def free(self) -> int:
        """Slots that this worker may fill, those that it has asked for already among them."""
        others = [share for share in self._pool.shares if share is not self]
        room = self._pool.total - self.sharer.slots_used()
        room -= sum(share.sharer.slots_used() + share.sharer.slots_asked() for share in others)
        if room <= 0:
            return 0
        fair = max(1, self._pool.total // max(1, sum(share.is_involved() for share in self._pool.shares)))
        claims = {share: share.claim(fair) for share in others}
        ahead = sum(claim for share, claim in claims.items() if share.served < self.served)
        mine = min(room - ahead, fair - self.sharer.slots_used())
        return max(0, mine, room - sum(claims.values()))

    def is_involved(self) -> bool:
        return self.sharer.is_hungry() or self.sharer.slots_used() + self.sharer.slots_asked() > 0

    def claim(self, fair: int) -> int:
        """Slots that are left to this worker, because it wants them and has less than its fair part."""
        if not self.sharer.is_hungry():
            return 0
        return max(0, fair - self.sharer.slots_used() - self.sharer.slots_asked())
