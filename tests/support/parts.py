"""The parts of a worker, for tests that look behind its methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupmq import Worker
from groupmq.worker.consumer_set import ConsumerSet
from groupmq.worker.parts import WorkerParts


def parts_of_each(worker: Worker) -> list[WorkerParts]:
    """The parts of each consumer of a worker that has started."""
    assert worker._consumers is not None, "the worker has not started"
    return [consumer._parts for consumer in worker._consumers._all]


def parts_of(worker: Worker) -> WorkerParts:
    """The parts of a worker that has started, of a queue without partitions."""
    [parts] = parts_of_each(worker)
    return parts


def at_start(worker: Worker, change: Callable[[WorkerParts], object]) -> None:
    """Call `change` with the parts of each consumer, now if the worker has started, or when they have been made."""
    if worker._consumers is not None:
        for parts in parts_of_each(worker):
            change(parts)
        return
    make = worker._make_consumers

    def changed(*args: Any) -> ConsumerSet:
        consumers = make(*args)
        for consumer in consumers._all:
            change(consumer._parts)
        return consumers

    worker._make_consumers = changed  # type: ignore[method-assign, assignment]
