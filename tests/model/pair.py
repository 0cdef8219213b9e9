"""The queue on the server and its model side by side: what every rule of the state machine builds on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from groupmq.commands import Call, Policy
from groupmq.connection import BlockingConnection, Endpoint
from groupmq.operations import Operations
from groupmq.options import QueueOptions
from tests.model import strategies as draws
from tests.model.model import Job, Model
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

    @initialize(
        groups=st.lists(st.sampled_from(draws.GROUPS), min_size=3, max_size=3, unique=True),
        concurrency=st.sampled_from((1, 1, 2)),
        keep=st.tuples(st.sampled_from(draws.KEEPS), st.sampled_from(draws.KEEPS)),
        max_attempts=st.sampled_from((1, 2, 3)),
        max_stalled=st.sampled_from((-1, 0, 1)),
    )
    def open(
        self, groups: list[str], concurrency: int, keep: tuple[int, int], max_attempts: int, max_stalled: int
    ) -> None:
        self.groups = tuple(groups)
        options = QueueOptions(QUEUE, group_concurrency=concurrency)
        self.connection = BlockingConnection(Endpoint(self.client), options)
        self.operations: Operations[Any] = Operations(options, lambda *_: None)
        policy = Policy(max_attempts, max_stalled, {"completed": keep[0], "failed": keep[1]})
        self.model = Model(concurrency, policy)
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
