"""`python -m bench.peers.groupmq_py ACTION --port ...`: runs an action and prints its figures as a line of JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from bench.peers.groupmq_py import (
    answers,
    batches,
    bulk,
    delays,
    operations,
    repeats,
    shares,
    single,
    trickle,
    turns,
    variants,
)
from bench.peers.groupmq_py.common import VARIANTS
from groupmq.cli.worker import lifecycle

T = TypeVar("T")
ACTIONS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, Any]]] = {
    "enqueue": bulk.enqueue,
    "process": bulk.process,
    "load": answers.load,
    "serve": answers.serve,
    "probe": answers.probe,
    "trickle": trickle.trickle,
    "stamp": trickle.stamp,
    "adds": single.adds,
    "fixed": single.fixed,
    "batches": batches.run,
    "delays": delays.run,
    "operations": operations.run,
    "repeats": repeats.run,
    "shares": shares.run,
    "turns": turns.run,
    "variants": variants.run,
}
NUMBERS = {
    "port": 6379,
    "jobs": 1000,
    "groups": 1000,
    "chunk": 1000,
    "inflight": 1,
    "concurrency": 1,
    "take": 0,
    "ordered": 0,
    "seconds": 1,
    "interval_ms": 1000,
    "batch": 1,
    "starts": 0,
    "slices": 1,
    "keep": 0,
    "rate": 1,
    "warmup": 0,
    "each": 1,
    "waited": 0,
    "sleep_ms": 0,
    "blocking": 0,
}


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run like `groupmq worker`: with uvloop if it is installed, and a tuned garbage collector."""
    lifecycle.calm_collector()
    return lifecycle.run(main)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--queue", default="bench")
    parser.add_argument("--variant", choices=VARIANTS, default="none")
    parser.add_argument("--variants", default="none", help="comma-separated names")
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse()
    print(json.dumps(run(ACTIONS[arguments.action](arguments))))
