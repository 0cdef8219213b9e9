"""A server without memory refuses new jobs and changes of data, while calls that drain the queue still work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis.stateful import rule

from groupmq.core.errors import ServerRefused
from groupmq.core.settings import StoredQueue
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.sync.connection.connections import BlockingConnection
from tests.model import strategies as draws
from tests.model.machine import QueueMachine
from tests.model.parts import Progress, Repeat
from tests.model.running import run
from tests.support.servers import Kind, Server, available_kinds

EXAMPLES = 40
ENOUGH, NONE = 0, 1


@pytest.fixture(params=available_kinds())
def small_server(request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    """A separate server whose memory can be limited."""
    kind: Kind = request.param
    server = Server.start(kind, config={"maxmemory-policy": "noeviction"})
    client = redis.Redis.from_url(server.unix_url)
    yield client
    client.close()
    server.stop()


class FullServerMachine(QueueMachine):
    """The same rules while memory runs out and comes back. A refused call writes nothing, so the model skips it."""

    def __init__(self, client: redis.Redis) -> None:
        self.full = False
        client.config_set("maxmemory", ENOUGH)
        super().__init__(client)

    def beside_a_partition(self) -> None:
        """A full server cannot create a partition."""
        if not self.full:
            super().beside_a_partition()

    def settings_of_a_partition(self, other: BlockingConnection, was: StoredQueue) -> None:
        if not self.full:
            super().settings_of_a_partition(other, was)

    @rule()
    def memory_runs_out_or_is_there_again(self) -> None:
        self.full = not self.full
        self.client.config_set("maxmemory", NONE if self.full else ENOUGH)

    def add(self, items: list[draws.Item], *, whole: bool = False) -> None:
        if not self.full:
            super().add(items, whole=whole)
            return
        self.refused(commands.add([item.draft(self.groups, self.now) for item in items], self.now))

    def update_data(self, which: int, detail: int) -> None:
        if self.full:
            self.refused(commands.update(self.pick(which), b"new data"))
        else:
            super().update_data(which, detail)

    def report_progress(self, said: Progress, call: Call[bool]) -> None:
        if self.full:
            self.refused(call)
        else:
            super().report_progress(said, call)

    def append_log(self, said: Progress, call: Call[bool]) -> None:
        if self.full:
            self.refused(call)
        else:
            super().append_log(said, call)

    def define(self, repeat_id: str, repeat: Repeat | None, first: int | None, *, outdated: bool) -> None:
        """A full server refuses definitions, but allows removing them."""
        if not self.full or repeat is None:
            super().define(repeat_id, repeat, first, outdated=outdated)
        else:
            seen = self.call(commands.repeats_of([repeat_id], self.now)).found.get(repeat_id, b"")
            self.refused(commands.define(repeat_id, seen, repeat.fields, repeat.draft.body, first, self.now))

    def tick(self, ticks: list[list[Any]]) -> None:
        if self.full:
            self.refused(commands.tick(ticks, self.now))
        else:
            super().tick(ticks)

    def refused(self, call: commands.Call[Any]) -> None:
        with pytest.raises(ServerRefused) as refusal:
            self.call(call)
        assert refusal.value.kind == "OOM"


def test_full_server_refuses_additions_whole_and_goes_on_with_the_rest(small_server: redis.Redis) -> None:
    run(FullServerMachine, small_server, EXAMPLES)
