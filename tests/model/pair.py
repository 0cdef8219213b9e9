"""The queue on the server and its model side by side: what every rule of the state machine builds on."""

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
from tests.support.resending import Unanswered

T = TypeVar("T")
QUEUE = "model"
KEPT = 30_000
"""Milliseconds for which an answer is kept at least."""


class Pair(RuleBasedStateMachine):
    """One queue and its model. The invariant compares all that is stored; the rules compare the replies."""

    kinds: Sequence[draws.Kind] = draws.KINDS
    """Of queues; one of them for each example."""
    joins: float = math.inf
    """How many delayed jobs that are due one call lets join; a finite number is patched into the scripts."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        self.client: Any = client
        self.client.flushall()
        self.now = self.latest = draws.START
        self.calls = 0
        self.seen = (-1, 0)
        """How many calls there were, and what time it was, when the server was looked at."""
        self.heard = 0
        """How many entries of the log of events there were."""
        self.fault = ""
        """What happens to the next call whose answer is kept: see `call`."""
        self.unanswered: tuple[Unanswered[Any], Any] | None = None
        """A call that took effect and whose answer did not arrive, and that answer."""
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
        found = differences(self.model, self.stored, self.kind.batch)
        assert not found, "\n  ".join(["not as the model says:", *found])

    def look(self) -> None:
        """Holds are judged by the latest clock: one that was over stays over for a group, though not for a take."""
        if self.seen != (self.calls, self.latest):
            self.seen = self.calls, self.latest
            self.stored = Stored(Dump(self.client), QUEUE, self.latest)
            self.look_at_the_line()
            self.look_at_the_log()

    def look_at_the_line(self) -> None:
        """With round-robin, a ready group keeps its number in the line until it is served, and whoever joins goes to
        its end. Numbers are of the same sequence as arrivals; how many groups drew one is for the server to say."""
        model, ready = self.model, self.stored.keyspace.ready
        if model.options.fairness == "round-robin":
            drawn = {group: int(score) % PRIORITY_UNIT for group, score in ready.items() if group}
            for group, number in drawn.items():
                if group in model.line and group not in model.served:
                    assert number == model.line[group], f"{group!r} lost its turn {model.line[group]}, has {number}"
                else:
                    assert number > model.arrivals, f"{group!r} goes to the end of the line, not to {number}"
            model.line = drawn
            model.arrivals = max(model.arrivals, int(self.stored.keyspace.meta.get("seq", "0")))
        model.served.clear()

    def look_at_the_log(self) -> None:
        """Each call tells of what it did in one entry, or in none if that concerns nobody."""
        told = self.stored.entries_after(self.heard)
        same(told, [entry for entry in self.model.entries if entry.rows])
        self.heard += len(told)
        self.model.entries.clear()

    def call(self, call: Call[T]) -> T:
        """Make a call, perhaps with a fault: its answer is lost and it is sent again "at once" or "later", or its first
        sending is "overtaken" by the second. Whatever happens, it takes effect once and is answered the same."""
        self.calls += 1
        self.model.entries.append(Entry(self.now))
        if call.script == "update":
            call = at(call, self.now)  # it needs no time, but the answers that are kept do
        if not self.fault or not functions.load(call.script).remembers:
            return self.connection.call(call, patience=0)
        fault, self.fault = self.fault, ""
        sending = Unanswered(self.connection, self.client, call)
        if fault == "overtaken":
            answer = sending.send_again()
            if sending.is_kept:
                self.changes_nothing(sending.arrives, answer)
            return answer
        before = self.state()
        answer = sending.arrives()
        # The answer of a call that did nothing need not be kept: it is looked at anew.
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
        """All that is stored, as of now. Markers are hints, and how a window of answers is counted says nothing."""
        return Stored(Dump(self.client), QUEUE, self.latest).state()

    def carry(self, steps: Any, change: Callable[[Call[Any]], Call[Any]] = lambda call: call) -> Any:
        """Carry out an operation of many calls."""
        return carry(steps, lambda call: self.call(change(call)))

    def go_to(self, now: int) -> None:
        self.now = now
        self.latest = max(self.latest, now)
        self.times = min(self.times[0], now), max(self.times[1], now)

    def fallen_back(self) -> list[Job]:
        """Heads of groups that stand in `ready` though the clock, which stepped back, says they are held."""
        ready = self.stored.keyspace.ready
        return [job for job in self.model.startable_heads() if self.model.opens(job) > self.now and job.group in ready]


def same(answer: object, expected: object) -> None:
    assert answer == expected, f"the answer is\n  {answer}, expected\n  {expected}"


def at(call: Call[T], now: int) -> Call[T]:
    """The same call at another instant."""
    args = msgspec.msgpack.decode(call.args)
    return call._replace(args=msgspec.msgpack.encode({**args, "now": now}))
