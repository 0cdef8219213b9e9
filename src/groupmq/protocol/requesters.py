"""Requesters: the names by which the server recognises a call that is sent again.

A client names a requester for each call that changes something, and counts the calls of a requester. The server keeps
the reply to the last call of each (`lua/lib/kept_replies.lua`), so one requester must never have two calls under way: a
client has as many requesters as it has calls under way at once.

A call that is sent before its predecessor was answered names the request of that one too, and takes effect only after
it.
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple, Protocol

from groupmq.core.ids import new_id
from groupmq.runtime.loops import this_process


class Request(NamedTuple):
    """The name of one call: its requester and its number."""

    requester: str
    number: int
    """The number of the call among those of this requester, from 1."""


class Predecessor(Protocol):
    """A call that must take effect before another one. The blocking client has none: it makes one call at a time."""

    request: Request

    def succeeded(self) -> Any:
        """Await the answer of that call. Raises the error that the call raised."""


class Requesters:
    """The requesters of one queue object. Safe in threads and after a fork."""

    def __init__(self) -> None:
        self._process: object = None
        self._free: list[Request] = []
        """The last request of each requester without a call under way."""
        self._new = count()
        self._client = ""

    def take(self) -> Request:
        """A request for one call, of a requester that has no other under way."""
        if self._process is not this_process():
            # A forked child that used the requesters of its parent would be given the answers to its parent's calls.
            self._free, self._client, self._process = [], new_id(), this_process()
        try:
            requester, number = self._free.pop()
        except IndexError:
            return Request(f"{self._client}:{next(self._new)}", 1)
        return Request(requester, number + 1)

    def give_back(self, request: Request) -> None:
        """Free the requester of a call that was sent once and has been answered.

        A requester whose call was sent twice must not be given back: one of the two may still be under way.
        """
        self._free.append(request)
