"""Slots: by what the server recognises a call that is sent again.

A client names the slot of each call that changes something, and counts the calls of a slot. The server keeps the answer
of the last call of each slot (`lua/lib/answered.lua`), so one slot must never have two calls under way.

A call that is sent before its predecessor was answered names the slot of that one too, and takes effect only after it.
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple, Protocol

from groupmq.core.ids import new_id
from groupmq.core.loops import this_process


class Slot(NamedTuple):
    name: str
    number: int
    """Of the call, in this slot."""


class Predecessor(Protocol):
    """A call that must take effect before another one. The blocking client has none: it makes one call at a time."""

    slot: Slot

    def succeeded(self) -> Any:
        """Awaited: until it has been answered. Raises what it has raised."""


class CallSlots:
    """The slots of one queue object. Safe in threads and after a fork."""

    def __init__(self) -> None:
        self._process: object = None
        self._free: list[Slot] = []
        self._new = count()
        self._client = ""

    def take(self) -> Slot:
        """A slot for one call."""
        if self._process is not this_process():
            # A forked child that used the slots of its parent would be given the answers to its parent's calls.
            self._free, self._client, self._process = [], new_id(), this_process()
        try:
            name, number = self._free.pop()
        except IndexError:
            return Slot(f"{self._client}:{next(self._new)}", 1)
        return Slot(name, number + 1)

    def give_back(self, slot: Slot) -> None:
        """The call was sent once and has been answered.

        A slot whose call was sent twice is not used again: one of the two may still be under way.
        """
        self._free.append(slot)
