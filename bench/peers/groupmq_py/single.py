"""Single calls: the time of an awaited add, and the server cost of a call apart from its commands."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import redis
import redis.asyncio

from bench.peers.clocks import payload
from bench.peers.groupmq_py.common import open_queue
from groupmq import Queue
from groupmq.protocol import commands, functions
from groupmq.protocol.commands import Call

REFERENCE = "return 1"
"""The smallest possible script."""
BLOCK = 50
"""Consecutive calls of one kind, before those of the other kind."""
NO_FUNCTIONS = "scripts-only"
"""A user without permission for functions, so that the library has to use EVALSHA."""
SCRIPT_ROWS = ("eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro")
OWN_ROWS = ("config|resetstat", "info")
PROBE = "groupmq_bench_probe"
"""A function that returns at once, in a copy of the whole library."""
EMPTY: dict[str, Callable[[], Call[Any]]] = {"read": lambda: commands.get([]), "write": lambda: commands.remove([])}
"""Calls that name no job: a script that reads and one that may write, with nothing to do."""


async def adds(args: argparse.Namespace) -> dict[str, list[float]]:
    """Microseconds of each of --jobs awaited adds, one by one, and of as many bare EVALSHA by redis-py.

    Each job has its own group. The two alternate, after --warmup of each that do not count.
    """
    figures: dict[str, list[float]] = {"us": [], "bare_us": []}
    client: Any = redis.asyncio.Redis(port=args.port)
    async with client, open_queue(args) as queue:
        sha = await client.script_load(REFERENCE)
        for first in range(0, args.warmup + args.jobs, BLOCK):
            block = range(first, first + BLOCK)
            took = await _timed(block, lambda i: _add(queue, i))
            bare = await _timed(block, lambda _: client.evalsha(sha, 0))
            if first >= args.warmup:
                figures["us"] += took
                figures["bare_us"] += bare
    return figures


def _add(queue: Queue, index: int) -> Awaitable[Any]:
    return queue.add(payload(index), group_id=f"group-{index}")


async def _timed(indices: range, make: Callable[[int], Awaitable[Any]]) -> list[float]:
    took_us = []
    for i in indices:
        began = time.perf_counter_ns()
        await make(i)
        took_us.append((time.perf_counter_ns() - began) / 1000)
    return took_us


async def fixed(args: argparse.Namespace) -> dict[str, list[float]]:
    """The server time of an empty call outside its commands, once per block of --slices, in microseconds.

    `reference` is a script that returns 1, by EVALSHA. `defined` is a function in a copy of the library that returns 1:
    the cost of a call after its definitions and before any work. `read` and `write` are empty calls as the library
    makes them by default, `read_scripts` and `write_scripts` those of a user without permission for functions.
    `functions` is 1 if the first were function calls, `add` the cost of a single add including its commands, and
    `add_commands` their number.
    """
    figures: dict[str, list[float]] = defaultdict(list)
    with redis.Redis(port=args.port) as client:
        sha = client.script_load(REFERENCE)
        client.function_load(_library_with_probe())
        rights = ["on", "nopass", "~*", "&*", "+@all", "-function", "-fcall", "-fcall_ro"]
        client.execute_command("ACL", "SETUSER", NO_FUNCTIONS, *rights)
        scripts_only = argparse.Namespace(**{**vars(args), "user": NO_FUNCTIONS, "queue": f"{args.queue}-scripts"})
        async with open_queue(args) as queue, open_queue(scripts_only) as other:
            for queued in (queue, other):
                await _add(queued, 0)
                for make in EMPTY.values():
                    await queued._connection.call(make())
            for number in range(args.slices):
                client.config_resetstat()
                for _ in range(BLOCK):
                    client.evalsha(sha, 0)
                figures["reference"].append(outside_us(client.info("commandstats")))
                client.config_resetstat()
                for _ in range(BLOCK):
                    client.fcall(PROBE, 0)
                figures["defined"].append(outside_us(client.info("commandstats")))
                for name, make in EMPTY.items():
                    for case, queued in ((name, queue), (f"{name}_scripts", other)):
                        client.config_resetstat()
                        for _ in range(BLOCK):
                            await queued._connection.call(make())
                        rows = client.info("commandstats")
                        figures[case].append(outside_us(rows))
                        if case == "read" and not number:
                            figures["functions"].append(float(any(row.startswith("cmdstat_fcall") for row in rows)))
                client.config_resetstat()
                for i in range(BLOCK):
                    await _add(queue, 1 + number * BLOCK + i)
                rows = client.info("commandstats")
                figures["add"].append(sum(numbers["usec"] for numbers in _scripts(rows).values()) / BLOCK)
                figures["add_commands"].append(sum(numbers["calls"] for numbers in _nested(rows).values()) / BLOCK)
        client.execute_command("ACL", "DELUSER", NO_FUNCTIONS)
    return dict(figures)


def _library_with_probe() -> str:
    library = functions.load("add").library
    probe = f"redis.register_function({{ function_name = '{PROBE}', callback = function() return 1 end }})"
    return f"{library.text.replace(library.name, 'groupmq_bench')}\n{probe}\n"


Rows = Mapping[str, Mapping[str, float]]


def outside_us(rows: Rows) -> float:
    """Microseconds per script call that were not spent in the commands it made."""
    scripts = _scripts(rows)
    inside = sum(numbers["usec"] for numbers in _nested(rows).values())
    calls = sum(numbers["calls"] for numbers in scripts.values())
    return (sum(numbers["usec"] for numbers in scripts.values()) - inside) / calls


def _scripts(rows: Rows) -> Rows:
    return {row: numbers for row, numbers in rows.items() if row.removeprefix("cmdstat_") in SCRIPT_ROWS}


def _nested(rows: Rows) -> Rows:
    """The rows of commands that scripts called: only scripts, and the benchmark's own commands, were sent."""
    left_out = (*SCRIPT_ROWS, *OWN_ROWS)
    return {row: numbers for row, numbers in rows.items() if row.removeprefix("cmdstat_") not in left_out}
