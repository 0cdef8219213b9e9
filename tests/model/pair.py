"""The queue on the server together with its model: the base of all rules of the state machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import redis
from hypothesis.stateful import RuleBasedStateMachine, invariant

from groupmq.client.connection.endpoint import Endpoint
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol import functions
from groupmq.protocol.commands import Call, Policy
from groupmq.sync.connection.connections import BlockingConnection
from tests.model import strategies as draws
from tests.model.model import Model
from tests.model.parts import Entry, Job
from tests.model.stored import Stored, differences
from tests.support.by_hand import Operations, carry
from tests.support.dump import Dump
from tests.support.keyspace.invariants import PRIORITY_UNIT
from tests.support.resending import Before, Unanswered

T = TypeVar("T")
QUEUE = "model"
KEPT = 30_000
"""The least time, in milliseconds, for which an answer is kept."""


class Pair(RuleBasedStateMachine):
    """One queue and its model. The invariant compares everything stored; the rules compare the replies."""

    kinds: Sequence[draws.Kind] = draws.KINDS
    """Kinds of queues; each example uses one of them."""
    joins: float = math.inf
    """How many due jobs one call promotes; a finite number is patched into the scripts."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        self.client: Any = client
        self.client.flushall()
        self.now = self.latest = draws.START
        self.calls = 0
        self.seen = (-1, 0)
        """The number of calls and the time when the server was last read."""
        self.heard = 0
        """The number of entries of the event log that were compared."""
        self.fault = ""
        """What happens to the next call whose answer is kept: see `call`."""
        self.unanswered: tuple[Unanswered[Any], Any] | None = None
        """A call that took effect and whose answer was lost, with that answer."""
        self.times = (self.now, self.now)
        """The first and last time of the clock since that call."""

    def open(self, setup: draws.Setup) -> None:
        self.groups, self.kind = setup.groups, setup.kind
        options = QueueOptions(QUEUE, group_concurrency=setup.concurrency, **setup.kind.options)
        self.connection = BlockingConnection(Endpoint(self.client), options)
        self.operations = Operations(options, lambda *_: None)
        keep = {"completed": setup.keep_completed, "failed": setup.keep_failed}
        self.model = Model(options, Policy(setup.max_attempts, setup.max_stalled, keep), self.joins)
        self.connection.open()
        self.look()

    @invariant()
    def stored_as_the_model_says(self) -> None:
        self.look()
        found = differences(self.model, self.stored, self.kind.turn_size)
        assert not found, "\n  ".join(["not as the model says:", *found])

    def look(self) -> None:
        """Read the server. Holds are judged by the latest time: a hold that was over stays over for its group, even if
        the clock stepped back, though not for a take."""
        if self.seen != (self.calls, self.latest):
            self.seen = self.calls, self.latest
            self.stored = Stored(Dump(self.client), QUEUE, self.latest)
            if self.stored.keyspace.offer is None:
                self.model.offer = None  # any call that wakes a worker ends an offer, and calls may wake one needlessly
            self.model.has_large = self.stored.keyspace.meta.get("large") == "1"
            self.look_at_the_line()
            self.look_at_the_log()

    def look_at_the_line(self) -> None:
        """With round-robin, a ready group keeps its ticket until it is served, and a group that becomes ready goes to
        the end. Tickets come from the same sequence as arrivals; the model does not predict how many were drawn."""
        model, ready = self.model, self.stored.keyspace.ready
        if model.options.fairness == "round-robin":
            drawn = {group: int(score) % PRIORITY_UNIT for group, score in ready.items() if group}
            for group, number in drawn.items():
                if group in model.line and group not in model.served:
                    assert number == model.line[group], f"{group!r} lost its ticket {model.line[group]}, has {number}"
                else:
                    assert number > model.arrivals, f"{group!r} must go to the end of the line, not to {number}"
            model.line = drawn
            model.arrivals = max(model.arrivals, int(self.stored.keyspace.meta.get("seq", "0")))
        model.served.clear()

    def look_at_the_log(self) -> None:
        """Each call writes one entry with all its events; a call without events writes none."""
        told = self.stored.entries_after(self.heard)
        same(told, [entry for entry in self.model.entries if entry.rows])
        self.heard += len(told)
        self.model.entries.clear()

    def call(self, call: Call[T]) -> T:
        """Make a call, possibly with a fault: its answer is lost and it is resent "at once" or "later", or the first
        request is "overtaken" by the second. In any case it takes effect once and gets the same answer. A call that
        is resent "at once" was first sent too early: before the call that it follows."""
        self.calls += 1
        self.model.entries.append(Entry(self.now))
        if call.script == "update":
            call = at(call, self.now)  # the call itself needs no time, but keeping its answer does
        if not self.fault or not functions.load(call.script).remembers:
            return self.connection.call(call, patience=0)
        fault, self.fault = self.fault, ""
        sending = Unanswered(self.connection, self.client, call, Before() if fault == "at once" else None)
        if fault == "at once":
            before = self.state()
            sending.arrives_too_early()
            same(self.state(), before)
        if fault == "overtaken":
            answer = sending.send_again()
            if sending.is_kept:
                self.changes_nothing(sending.arrives, answer)
            return answer
        before = self.state()
        answer = sending.arrives()
        # The answer of a call that did nothing need not be kept: the call may be executed again.
        if sending.is_kept or self.state() != before:
            if fault == "at once":
                self.changes_nothing(sending.send_again, answer)
            else:
                self.unanswered, self.times = (sending, answer), (self.now, self.now)
        return answer

    def changes_nothing(self, action: Callable[[], Any], answer: object) -> None:
        before = self.state()
        same(action(), answer)
        same(self.state(), before)

    def state(self) -> dict[str, Any]:
        """Everything stored, as of now, except markers, which are hints, and the window of kept answers."""
        return Stored(Dump(self.client), QUEUE, self.latest).state()

    def carry(self, steps: Any, change: Callable[[Call[Any]], Call[Any]] = lambda call: call) -> Any:
        """Execute an operation that consists of several calls."""
        return carry(steps, lambda call: self.call(change(call)))

    def go_to(self, now: int) -> None:
        self.now = now
        self.latest = max(self.latest, now)
        self.times = min(self.times[0], now), max(self.times[1], now)

    def fallen_back(self) -> list[Job]:
        """Heads of groups that are still in `ready`, though they are held by the clock, which stepped back."""
        ready = self.stored.keyspace.ready
        return [job for job in self.model.startable_heads() if self.model.opens(job) > self.now and job.group in ready]


def same(answer: object, expected: object) -> None:
    assert answer == expected, f"the answer is\n  {answer}, expected\n  {expected}"


def at(call: Call[T], now: int) -> Call[T]:
    """The same call at another instant."""
    args = msgspec.msgpack.decode(call.args)
    return call._replace(args=msgspec.msgpack.encode({**args, "now": now}))
