"""The methods of a queue without a server: each call is yielded to the test, which sends in the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, TypeVar, cast

from groupmq.client.answers.jobs import MakeJob
from groupmq.client.connection.connections import Connection
from groupmq.client.connection.function_client import FunctionClient
from groupmq.client.connection.session import Session
from groupmq.client.job import Job
from groupmq.client.queue.adding import added_apart, added_together
from groupmq.client.queue.base import Chunk
from groupmq.client.queue.methods import QueueMethods
from groupmq.core.drafts import Draft
from groupmq.core.errors import GroupFull
from groupmq.core.job_log import JobLog
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol import commands
from groupmq.protocol.commands import Call

T = TypeVar("T")
Steps = Coroutine[Any, Any, T]
"""A running method. `send(None)` starts it and returns its first call; `send(answer)` continues it."""


class Asked:
    """Something that a method waits for: it is yielded from the coroutine, and the answer is sent in."""

    def __init__(self, what: Any) -> None:
        self._what = what

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self._what)


async def asked(call: Call[T]) -> T:
    """A Caller that yields its calls to the test."""
    answer: T = await Asked(call)
    return answer


class Unlisted(FunctionClient):
    """A client of a server that has no list of queues."""

    async def execute(self, *parts: Any) -> Any:
        return 0


class Operations(QueueMethods):
    """The methods of a queue, with calls that the test answers by hand."""

    def __init__(self, options: QueueOptions, make: MakeJob[Any]) -> None:
        self.name = options.name
        self._job_log = JobLog(logging.getLogger("groupmq.queue"), self.name)
        self._make = make
        self._middleware = ()
        self._connection = cast(Connection, Unlisted(Session(options, "nowhere")))

    def _make_job(self, *stored: Any) -> Job:
        job: Job = self._make(*stored)
        return job

    async def _call(self, call: Call[T], /) -> T:
        return await asked(call)

    async def _submit(self, draft: Draft) -> Job:
        [job] = await added_together(self, [draft], await self._call(commands.add([draft], whole=True)))
        return job

    async def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        jobs: list[Job] = []
        for drafts, call in chunks:
            jobs += await added_together(self, drafts, await self._call(call))
        return jobs

    async def add_drafts(self, drafts: list[Draft]) -> list[Job | GroupFull]:
        """Add drafts of independent callers in one call."""
        return await added_apart(self, drafts, await self._call(commands.add(drafts)))


def carry(steps: Steps[T], answer: Callable[[Call[Any]], Any]) -> T:
    """Run a method to its end, answering each call that it yields."""
    try:
        call = steps.send(None)
        while True:
            call = steps.send(answer(call))
    except StopIteration as stop:
        result: T = stop.value
        return result


class ClientByHand(FunctionClient):
    """A client that yields its commands as tuples and its pauses as seconds."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)

    async def execute(self, *parts: Any) -> Any:
        return await Asked(parts)

    async def sleep(self, seconds: float) -> None:
        await Asked(seconds)
