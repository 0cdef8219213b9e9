"""The queue on the server and its model side by side: what every rule of the state machine builds on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import redis
from hypothesis.stateful import RuleBasedStateMachine, invariant

from groupmq.commands import Call, Policy
from groupmq.connection import BlockingConnection, Endpoint
from groupmq.operations import Operations
from groupmq.options import QueueOptions
from tests.model import strategies as draws
from tests.model.model import Model
from tests.model.parts import Job
from tests.model.stored import Dump, Stored, differences

T = TypeVar("T")
QUEUE = "model"


class Pair(RuleBasedStateMachine):
    """One queue and its model. The invariant compares all that is stored; the rules compare the replies."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        self.client: Any = client
        self.client.flushall()
        self.now = self.latest = draws.START

    def open(self, setup: draws.Setup) -> None:
        self.groups = setup.groups
        options = QueueOptions(QUEUE, group_concurrency=setup.concurrency)
        self.connection = BlockingConnection(Endpoint(self.client), options)
        self.operations: Operations[Any] = Operations(options, lambda *_: None)
        keep = {"completed": setup.keep_completed, "failed": setup.keep_failed}
        self.model = Model(setup.concurrency, Policy(setup.max_attempts, setup.max_stalled, keep))
        self.connection.drive(self.connection.dialogue.open())
        self.look()

    @invariant()
    def stored_as_the_model_says(self) -> None:
        self.look()
        found = differences(self.model, self.stored)
        assert not found, "\n  ".join(["not as the model says:", *found])

    def look(self) -> None:
        """Holds are judged by the latest clock: one that was over stays over for a group, though not for a take."""
        self.stored = Stored(Dump(self.client), QUEUE, self.latest)

    def call(self, call: Call[T]) -> T:
        return self.connection.call(call, patience=0)

    def carry(self, steps: Any, change: Callable[[Call[Any]], Call[Any]] = lambda call: call) -> Any:
        """Carry out an operation of many calls."""
        try:
            call = next(steps)
            while True:
                call = steps.send(self.call(change(call)))
        except StopIteration as stop:
            return stop.value

    def go_to(self, now: int) -> None:
        self.now = now
        self.latest = max(self.latest, now)

    def fallen_back(self) -> list[Job]:
        """Heads of groups that stand in `ready` though the clock, which stepped back, says they are held."""
        ready = self.stored.keyspace.ready
        return [job for job in self.model.startable_heads() if job.hold > self.now and job.group in ready]


def same(answer: object, expected: object) -> None:
    assert answer == expected, f"the answer is\n  {answer}, expected\n  {expected}"


def at(call: Call[T], now: int) -> Call[T]:
    """The same call at another instant."""
    args = msgspec.msgpack.decode(call.args)
    return call._replace(args=msgspec.msgpack.encode({**args, "now": now}))
