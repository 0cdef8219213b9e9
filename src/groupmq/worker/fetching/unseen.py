"""Answers that the event loop has not seen because a handler blocks it: their jobs must not wait until it goes on.

The heartbeat thread names such a call in its beats, and the server takes its jobs back if it has carried the call out.
The loop may go on at any moment and find the answer. So for each answer it is decided once, under a lock, whether its
jobs start, are given back by the loop, or are not this worker's any more.
"""

from __future__ import annotations

import threading
from typing import Literal, NamedTuple

Verdict = Literal["start", "give back", "drop"]


class UnseenCall(NamedTuple):
    requester: str
    request: int


class UnseenAnswers:
    """The calls of one worker whose answers its event loop has not seen."""

    __slots__ = ("_asked", "_lock", "_taken_back", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, int] = {}
        """Requester -> request."""
        self._asked: set[UnseenCall] = set()
        """Calls that a beat has named, while the server has not answered that beat."""
        self._taken_back: set[UnseenCall] = set()

    # In the event loop

    def sent(self, requester: str, request: int) -> None:
        """A call is about to be made."""
        with self._lock:
            self._waiting[requester] = request

    def seen(self, requester: str) -> Verdict:
        """The answer has come, or the call is given up; returns what to do with the jobs of the answer."""
        with self._lock:
            request = self._waiting.pop(requester, None)
            if request is None:
                return "start"
            call = UnseenCall(requester, request)
            # A beat that is under way may take them back or may not: then it is safe to give them back as well.
            verdict: Verdict = "drop" if call in self._taken_back else "give back" if call in self._asked else "start"
            self._taken_back.discard(call)
            self._asked.discard(call)
            return verdict

    # From the heartbeat thread

    def any(self) -> bool:
        return bool(self._waiting)

    def ask(self) -> UnseenCall | None:
        """The loop is blocked: a call to name in the next beat, if its jobs have not been taken back."""
        with self._lock:
            calls = (UnseenCall(requester, request) for requester, request in self._waiting.items())
            call = next((call for call in calls if call not in self._taken_back), None)
            if call is not None:
                self._asked.add(call)
            return call

    def answered(self, call: UnseenCall, *, carried_out: bool) -> None:
        """The beat that named this call was answered. If it was carried out, the server has taken its jobs back."""
        with self._lock:
            self._asked.discard(call)
            if carried_out and self._waiting.get(call.requester) == call.request:
                self._taken_back.add(call)
