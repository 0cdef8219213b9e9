"""What a small call costs the server: the number of its commands, and the time that it takes beside them.

Most queues have no backlog: jobs come one at a time, and these calls are nearly the whole load. A change that makes one
of them cheaper states the new number here. A change that makes one more expensive needs a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.protocol import commands
from tests.lua.engine import Engine

SCRIPT_CALLS = ("eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro")
OWN = ("config|resetstat", "info", "script|load")

STATED = {
    "add": 11,
    "take": 15,
    "complete": 16,
    "add without a group": 12,
    "take of a job without a group": 17,
    "complete and take where nothing waits": 17,
    "take where nothing waits": 4,
    "read nothing": 1,
    "write nothing": 2,
}
"""Commands that a call makes in a queue without a backlog, not counting the call itself. TIME is not among them, since
tests send the time."""

WITH_AN_OFFER = {"add": 13, "complete and take where nothing waits": 17}
"""The same for a job whose worker was idle and had offered a slot: its whole life is these two calls."""

BLOCKS, CALLS = 25, 20
CLOSURES = "local made = {} for i = 1, 200 do made[i] = function() return i end end return #made"
"""A script that makes as many closures as our library has functions, and does nothing with them."""
MOST = {"evalsha": 12.0, "fcall": 2.0}
"""The most time that an empty call may take beside its commands, as a multiple of the time of that script.

With EVALSHA every call first defines the whole library. For a function it is already defined, which leaves only the
beginning and the end of the call.
"""


class Meter:
    """Reads the server's own statistics of one action."""

    def __init__(self, engine: Engine) -> None:
        self._client = engine.client

    def rows(self, action: Callable[[], Any], times: int = 1) -> dict[str, dict[str, float]]:
        self._client.config_resetstat()
        for _ in range(times):
            action()
        found = self._client.info("commandstats")
        named = {row.removeprefix("cmdstat_"): numbers for row, numbers in found.items()}
        return {row: numbers for row, numbers in named.items() if row not in OWN}

    def commands(self, action: Callable[[], Any]) -> int:
        """How many commands the script call of the action makes."""
        rows = self.rows(action)
        assert sum(numbers["calls"] for row, numbers in rows.items() if row in SCRIPT_CALLS) == 1
        return int(sum(numbers["calls"] for row, numbers in rows.items() if row not in SCRIPT_CALLS))

    def beside(self, action: Callable[[], Any]) -> float:
        """Microseconds per call that were not spent in the commands it made."""
        rows = self.rows(action, CALLS)
        spent = sum(numbers["usec"] for row, numbers in rows.items() if row in SCRIPT_CALLS)
        return (spent - sum(numbers["usec"] for row, numbers in rows.items() if row not in SCRIPT_CALLS)) / CALLS


def small_calls(engine: Engine, job: str = "job") -> dict[str, Callable[[], Any]]:
    """The calls, to be made once each in this order: the lives of a few jobs in a queue without a backlog."""
    taken: list[commands.Taken] = []

    def completed() -> commands.Outcome:
        one = taken.pop()
        return commands.completed(one.id, one.fence, None)

    return {
        "add": lambda: engine.add(job, group="g"),
        "take": lambda: taken.extend(engine.take(1)),
        "complete": lambda: engine.advance(completed()),
        "add without a group": lambda: engine.add(f"{job}-alone", group=None),
        "take of a job without a group": lambda: taken.extend(engine.take(1)),
        "complete and take where nothing waits": lambda: engine.advance(completed(), take=1),
        "take where nothing waits": lambda: engine.take(1),
        "read nothing": lambda: engine.call(commands.get([], engine.now)),
        "write nothing": lambda: engine.remove(),
    }


def test_small_calls_make_as_many_commands_as_stated(engine: Engine) -> None:
    for action in small_calls(engine, "first").values():
        action()  # load the scripts and open the queue
    engine.pass_time(1)
    meter = Meter(engine)
    found = {name: meter.commands(action) for name, action in small_calls(engine).items()}
    assert found == STATED


def test_the_life_of_a_lone_job_is_two_calls_while_a_worker_offers_a_slot(engine: Engine) -> None:
    for action in small_calls(engine, "first").values():
        action()
    engine.offer_slot()
    meter, found = Meter(engine), {}
    for group in ("g", "h"):  # twice, since the first time may cost more
        engine.pass_time(1)
        found["add"] = meter.commands(lambda group=group: engine.add("job", group=group))  # type: ignore[misc]
        granted = engine.pop_grant()
        assert granted is not None
        found["complete and take where nothing waits"] = meter.commands(
            lambda job=granted.job: engine.advance(  # type: ignore[misc]
                commands.completed(job.id, job.fence, None), take=1, confirms=True, offers=True, received=job.fence
            )
        )
        engine.remove("job")
        engine.offer_slot()
    assert found == WITH_AN_OFFER


@pytest.mark.parametrize("empty", ["read nothing", "write nothing"])
def test_an_empty_call_costs_little_beside_its_commands(engine: Engine, empty: str) -> None:
    """Compare it with a script in the same run, in alternating blocks, by the server's own measurement.

    A disturbance can only make a block slower, so the fastest block is steady even on a busy machine.
    """
    meter = Meter(engine)
    action = small_calls(engine)[empty]
    sha = engine.client.script_load(CLOSURES)
    engine.add("first")
    action()
    way = "fcall" if any(row.startswith("fcall") for row in meter.rows(action)) else "evalsha"
    ours, closures = [], []
    for _ in range(BLOCKS):
        ours.append(meter.beside(action))
        closures.append(meter.beside(lambda: engine.client.evalsha(sha, 0)))
    assert min(ours) < MOST[way] * min(closures), (min(ours), min(closures))
