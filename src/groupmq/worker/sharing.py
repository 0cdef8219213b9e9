"""Slots that several workers of a process share: pure decisions, no I/O.

Each worker calls its own server for its own queue, so slots are shared out before a call and not after it. A worker may
always ask for its fair share, behind those that were served longer ago, and for more if no other worker wants it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol


class Sharer(Protocol):
    """The worker as the shared slots see it."""

    def slots_used(self) -> int: ...
    def slots_asked(self) -> int:
        """Slots that its calls under way may fill, except those that are overdue: a server that is away must not keep
        the slots of the others."""

    def is_hungry(self) -> bool:
        """Whether it would take a job if it had a slot, as far as it knows: its queue may have one, and be in reach."""


class Membership(NamedTuple):
    """What a worker has in common with the others that it runs together with (workers.py)."""

    slots: SharedSlots
    on_change: Callable[[], None]
    """Called when a worker may have become idle, or was closed."""


class SharedSlots:
    """A fixed number of slots for all workers that join."""

    def __init__(
        self,
        total: int,
        *,
        least: int = 1,
        slice_length: float = 0.0,
        defer: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """`least`: the smallest fair share, for many workers with few slots: calls for one job each would cost more
        than the jobs. `slice_length`: seconds for which a worker that is served stays first, for the same reason.
        `defer` calls a function a moment later, so that with many workers all changes of that moment are handled
        once."""
        self.total = total
        self._least = min(least, total)
        self.slice_length = slice_length
        self._defer = defer
        self._deferred = False
        self.shares: list[Share] = []
        self._sharers: list[Sharer] = []
        self._served = 0
        self._on_room: list[Callable[[], None]] = []

    def on_room(self, notify: Callable[[], None]) -> None:
        """Call `notify` when a slot may have become free."""
        self._on_room.append(notify)

    def join(self, sharer: Sharer) -> Share:
        share = Share(self, sharer, len(self.shares))
        self.shares.append(share)
        self._sharers.append(sharer)
        return share

    def served_now(self) -> int:
        """The next number, for a worker that was served just now."""
        self._served += 1
        return self._served

    def moved(self) -> None:
        """A slot may have become free, or a worker may no longer want one."""
        if self._defer is None:
            self._look()
        elif not self._deferred:
            self._deferred = True
            self._defer(self._look)

    def _look(self) -> None:
        self._deferred = False
        room = self.room()
        if room <= 0:
            return
        for notify in self._on_room:
            notify()
        hungry = [share for share in self.shares if share.is_hungry()]
        fair = self.fair()
        for share in sorted(hungry, key=lambda share: share.served):
            share.look_again()
            # Those behind get nothing while these want it; with a hundred workers, asking all of them takes long.
            room -= share.claim(fair)
            if room <= 0:
                break

    def room(self) -> int:
        """Slots that are free and not asked for."""
        return self.total - sum(sharer.slots_used() + sharer.slots_asked() for sharer in self._sharers)

    def fair(self) -> int:
        """The fair share of each worker that has a slot or wants one."""
        return max(self._least, self.total // max(1, sum(share.is_involved() for share in self.shares)))


class Share:
    """The share of one worker."""

    def __init__(self, pool: SharedSlots, sharer: Sharer, number: int) -> None:
        self._pool = pool
        self._sharer = sharer
        # Without a method of its own in between: with many workers it is asked for every two of them.
        self.is_hungry = sharer.is_hungry
        self.served: tuple[int, int] = (0, number)
        """When its last time slice ended; among those that had none, the first that joined comes first."""
        self._slice_began: float | None = None
        self._on_room: list[Callable[[], None]] = []

    def on_room(self, notify: Callable[[], None]) -> None:
        """Call `notify` when there may be a slot for this worker, and it wants one."""
        self._on_room.append(notify)

    def look_again(self) -> None:
        for notify in self._on_room:
            notify()

    def got_jobs(self) -> None:
        now = time.monotonic()
        if self._slice_began is None:
            self._slice_began = now
        if now - self._slice_began >= self._pool.slice_length:
            self._slice_began = None
            self.served = (self._pool.served_now(), self.served[1])

    def moved(self) -> None:
        self._pool.moved()

    def free(self) -> int:
        """Slots that this worker may fill, those that it has asked for already among them."""
        room = self._pool.room() + self._sharer.slots_asked()
        if room <= 0:
            return 0
        fair = self._pool.fair()
        claimed = claimed_first = 0
        for share in self._pool.shares:
            if share is not self and (claim := share.claim(fair)):
                claimed += claim
                claimed_first += claim if share.served < self.served else 0
        mine = min(room - claimed_first, fair - self._sharer.slots_used())
        return max(0, mine, room - claimed)

    def room(self) -> int:
        """Slots that nobody uses or has asked for."""
        return self._pool.room()

    def is_involved(self) -> bool:
        return self.is_hungry() or self._sharer.slots_used() + self._sharer.slots_asked() > 0

    def claim(self, fair: int) -> int:
        """Slots that are left to this worker, because it wants them and has less than its fair share."""
        if not self.is_hungry():
            return 0
        return max(0, fair - self._sharer.slots_used() - self._sharer.slots_asked())
