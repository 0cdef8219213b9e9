"""One round: processes run under faults, then the faults stop, the queues are drained and all keys are inspected.

Everything that happens is in the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import redis

from groupmq import GroupMQError
from tests.chaos.actor import PULSE, watch_ourselves
from tests.chaos.cast import QUEUES, actors, parts_of, targets
from tests.chaos.history import HistoryFile
from tests.chaos.injecting import Injector
from tests.chaos.looking import calls_of, last_look, plant_canaries, sample, slow_calls
from tests.chaos.network import Network
from tests.chaos.operating import Operator
from tests.chaos.schedule import LEASE, plan
from tests.chaos.skew import true_time
from tests.chaos.stage import Stage
from tests.chaos.topology import Topology, stolen
from tests.chaos.working import BLOCK, open_queue
from tests.support.waiting import wait_until

STEP, SAMPLE, LOG_EVERY = 0.02, 5.0, 10.0
SLOW, SERVED = 0.25, 1.0
IDLE = 4.0
GO_WITHIN = 20.0
DRAINING = 1_000_000
"""Number of the first action of the drain, above those of earlier actions of this process."""
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Round:
    """The parameters of one round."""

    number: int
    seed: int
    seconds: float
    kinds: Collection[str]
    folder: Path
    drain: float
    """Seconds without any job getting done after which the drain counts as stuck."""
    mutant: str | None = None
    gaps: Mapping[str, float] | None = None
    """Mean seconds between two faults, for kinds that differ from the default."""


def play(told: Round, topology: Topology, log: Log) -> dict[str, int]:
    """Play a round. Returns the number of faults of each kind; everything else is in the history."""
    history = HistoryFile(str(told.folder), "stage")
    over = threading.Event()
    watch = threading.Thread(target=_watch_server, args=(topology, history, over), daemon=True)
    threading.Thread(target=watch_ourselves, args=(history, over), daemon=True).start()
    watch.start()
    calls = threading.Thread(target=_watch_calls, args=(topology, history, over), daemon=True)
    calls.start()
    cast = actors(told.kinds, mutant=told.mutant)
    faults = plan(told.seed, told.seconds, told.kinds, targets(cast), told.gaps)
    history.note("round", seed=told.seed, seconds=told.seconds, kinds=list(told.kinds), faults=len(faults))
    plant_canaries(topology.client())
    shared = {"history": str(told.folder), "round": told.number, "epoch": float(int(true_time()) + 1)}

    def tried(name: str) -> None:
        history.note("try", actor=name)

    with Network(topology.port, [actor.name for actor in cast if actor.wire], tried) as network:
        wired = {actor.name for actor in cast if actor.wire and topology.HAS_WIRES}
        urls = {actor.name: network.url(actor.name) if actor.name in wired else topology.url for actor in cast}
        stage = Stage(cast, history, shared, urls)
        try:
            _begin(stage, told.folder)
            injector = Injector(faults, stage, network, topology, history)
            _chaos(told, injector, topology, history, log)
            _peace(told, injector, stage, topology, history, log)
        finally:
            over.set()
            stage.close()
            watch.join(60)
            calls.join(60)
    return dict(injector.counted)


def _begin(stage: Stage, folder: Path) -> None:
    """Start the recorder before all others, since it must read every event."""
    stage.start("recorder")
    wait_until(lambda: _lines(folder, b'"k": "ready"', "recorder"), "the recorder listens", 60)
    for name in stage.names():
        if name != "recorder":
            stage.start(name)
    workers = len(stage.names("worker"))
    wait_until(lambda: _lines(folder, b'"k": "ready"') >= workers, "workers are ready", 90)


def _chaos(told: Round, injector: Injector, topology: Topology, history: HistoryFile, log: Log) -> None:
    began = time.monotonic()
    next_sample, next_line = began + 2.0, began + LOG_EVERY
    _clock(history)
    while (now := time.monotonic()) < began + told.seconds:
        injector.step()
        if now > next_sample:
            next_sample = now + SAMPLE
            _clock(history)
            if topology.HAS_WIRES:  # otherwise a queue may be moving from one server to another
                sample(topology.nodes(), history)
        if now > next_line:
            next_line += LOG_EVERY
            log(_progress(told, now - began, injector))
        time.sleep(STEP)
    _clock(history)


def _peace(told: Round, injector: Injector, stage: Stage, topology: Topology, history: HistoryFile, log: Log) -> None:
    injector.heal()
    late = stage.end("producer", "operator", within=GO_WITHIN)
    asyncio.run(_undo(topology.url, history))
    began = time.monotonic()
    drained = asyncio.run(_drain(topology.url, told.drain, injector, history, log))
    history.note("drained", answer=drained, took=time.monotonic() - began, within=told.drain)
    late += stage.end("duty", within=GO_WITHIN)
    _idle(stage, topology, history)
    late += stage.end("worker", within=GO_WITHIN)
    history.note("all left", late=late)
    late = stage.end("recorder", within=60)
    with topology.client() as client:
        nodes = topology.nodes()
        asyncio.run(last_look(client, nodes, topology.url, history))
    _clock(history)
    history.note("over", late=late)


async def _undo(url: str, history: HistoryFile) -> None:
    operator = Operator(history, {"seed": 0, "life": 0, "url": url})
    await operator.undo()
    await operator.close()


async def _drain(url: str, within: float, injector: Injector, history: HistoryFile, log: Log) -> bool:
    """Whether all queues become empty, however slowly. Only processes that a poisonous job killed are started again,
    and every job that blocks its group is skipped."""
    operator = Operator(history, {"seed": 0, "life": 1, "url": url, "ops": DRAINING})
    queues = [open_queue(role.name, url) for role in QUEUES]
    least, left, deadline, next_line = math.inf, 1, time.monotonic() + within, time.monotonic() + LOG_EVERY
    while left and time.monotonic() < deadline:
        injector.step()
        with contextlib.suppress(GroupMQError):
            await operator.skip_all()
            left = sum([(await queue.get_job_counts()).total for queue in queues])
        if left < least:
            least, deadline = left, time.monotonic() + within
        if time.monotonic() > next_line:
            next_line += LOG_EVERY
            log(f"    draining: {left} jobs left")
        await asyncio.sleep(0.1)
    for queue in queues:
        await queue.close()
    await operator.close()
    return not left


def _idle(stage: Stage, topology: Topology, history: HistoryFile) -> None:
    """Count the calls of the workers while no job is left."""
    workers = sum(parts_of(work["queue"]) for work in stage.works())
    nodes = topology.nodes()
    before, began = calls_of(nodes), time.monotonic()
    time.sleep(IDLE)
    after, seconds = calls_of(nodes), time.monotonic() - began
    beat = min(LEASE / 3, IDLE)
    history.note("idle", workers=workers, seconds=seconds, block=BLOCK, beat=beat, calls=dict(after - before))


def _watch_calls(topology: Topology, history: HistoryFile, over: threading.Event) -> None:
    """Record slow calls, with the time for which the server had no processor around them."""
    looks = [(time.monotonic(), topology.waited() + stolen())]
    while not over.wait(SERVED):
        waited, slow = topology.waited() + stolen(), list[tuple[str, int]]()
        with contextlib.suppress(redis.RedisError):
            slow = slow_calls(topology.nodes())
        if slow:
            # A call that ended since the last sample began before that by up to its own duration.
            began = looks[-1][0] - max(micros for _, micros in slow) / 1e6
            since, before = max((look for look in looks if look[0] <= began), default=looks[0])
            # A server that was restarted meanwhile counts from 0: then it may have waited all the time.
            without = waited - before if waited >= before else time.monotonic() - since
            history.note("served", since=since, waited=without, slow=slow)
        looks.append((time.monotonic(), waited))


def _watch_server(topology: Topology, history: HistoryFile, over: threading.Event) -> None:
    """Record when the server was slow to answer or did not answer, for whatever reason."""
    while not over.wait(PULSE):
        began = time.monotonic()
        with contextlib.suppress(redis.RedisError), topology.client() as client:
            client.ping()
        if time.monotonic() - began > SLOW:
            history.note("starved", since=began, actor="server")


def _clock(history: HistoryFile) -> None:
    history.note("clock", wall=true_time() * 1000)


def _lines(folder: Path, mark: bytes, actor: str = "") -> int:
    return sum(path.read_bytes().count(mark) for path in folder.glob(f"{actor}*.jsonl"))


def _progress(told: Round, passed: float, injector: Injector) -> str:
    started = _lines(told.folder, b'"k": "start"')
    faults = ", ".join(f"{kind} {n}" for kind, n in sorted(injector.counted.items()))
    return f"  {passed:5.0f} s  {started} runs, {injector.counted.total()} faults ({faults})"
