"""Waiting until a worker is idle and the server knows of the slot that it offers."""

from __future__ import annotations

from groupmq import Worker
from tests.support.parts import parts_of
from tests.support.waiting import eventually


async def offers(worker: Worker) -> bool:
    """Whether the server knows that this worker offers a slot."""
    connection = worker.queue._connection
    raw = await connection.execute("HGET", connection.session.keys.meta, "offer") or b""
    return bool(raw[:1] == b"o" and raw[7:].decode() == worker.id)


async def idle(worker: Worker) -> None:
    """Wait until the worker offers a slot and has received the answer to the call that offered it."""

    async def is_idle() -> bool:
        return await offers(worker) and not parts_of(worker).fetcher.busy

    await eventually(is_idle, "the worker offers a slot", 10)
