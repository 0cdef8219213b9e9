"""One round: processes at work while faults strike, then peace, a drain, and a last look. The history tells it all."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import redis

from groupmq import GroupMQError
from tests.chaos.actor import PULSE, watch_ourselves
from tests.chaos.cast import QUEUES, actors, parts_of, targets
from tests.chaos.diary import Diary
from tests.chaos.injecting import Injector
from tests.chaos.looking import calls_of, last_look, plant_canaries, sample, slow_calls
from tests.chaos.network import Network
from tests.chaos.operating import Operator
from tests.chaos.schedule import LEASE, plan
from tests.chaos.skew import true_time
from tests.chaos.stage import Stage
from tests.chaos.topology import Topology
from tests.chaos.working import BLOCK, open_queue
from tests.support.waiting import wait_until

STEP, SAMPLE, TELL = 0.02, 5.0, 10.0
SLOW, SERVED = 0.25, 1.0
IDLE = 4.0
GO_WITHIN = 20.0
DRAINING = 1_000_000
"""Number of the first action while the queues are drained: this process has acted before."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Round:
    """What one round is to be."""

    number: int
    seed: int
    seconds: float
    kinds: Collection[str]
    folder: Path
    drain: float
    """Seconds after the last fault in which something of the rest must get done: with none of it, it is stuck."""
    mutant: str | None = None


def play(told: Round, topology: Topology, tell: Tell) -> dict[str, int]:
    """Play a round; how many faults of each kind there were. Everything else is in the history."""
    diary = Diary(str(told.folder), "stage")
    over = threading.Event()
    watch = threading.Thread(target=_watch_server, args=(topology, diary, over), daemon=True)
    threading.Thread(target=watch_ourselves, args=(diary, over), daemon=True).start()
    watch.start()
    calls = threading.Thread(target=_watch_calls, args=(topology, diary, over), daemon=True)
    calls.start()
    cast = actors(told.kinds, mutant=told.mutant)
    faults = plan(told.seed, told.seconds, told.kinds, targets(cast))
    diary.note("round", seed=told.seed, seconds=told.seconds, kinds=list(told.kinds), faults=len(faults))
    plant_canaries(topology.client())
    shared = {"history": str(told.folder), "round": told.number, "epoch": float(int(true_time()) + 1)}

    def tried(name: str) -> None:
        diary.note("try", actor=name)

    with Network(topology.port, [actor.name for actor in cast if actor.line], tried) as network:
        lines = {actor.name for actor in cast if actor.line and topology.HAS_LINES}
        urls = {actor.name: network.url(actor.name) if actor.name in lines else topology.url for actor in cast}
        stage = Stage(cast, diary, shared, urls)
        try:
            _begin(stage, told.folder)
            injector = Injector(faults, stage, network, topology, diary)
            _chaos(told, injector, topology, diary, tell)
            _peace(told, injector, stage, topology, diary, tell)
        finally:
            over.set()
            stage.close()
            watch.join(60)
            calls.join(60)
    return dict(injector.counted)


def _begin(stage: Stage, folder: Path) -> None:
    """The witness first: it must hear everything."""
    stage.start("recorder")
    wait_until(lambda: _lines(folder, b'"k": "ready"', "recorder"), "the recorder listens", 60)
    for name in stage.names():
        if name != "recorder":
            stage.start(name)
    workers = len(stage.names("worker"))
    wait_until(lambda: _lines(folder, b'"k": "ready"') >= workers, "workers are ready", 90)


def _chaos(told: Round, injector: Injector, topology: Topology, diary: Diary, tell: Tell) -> None:
    began = time.monotonic()
    next_sample, next_tell = began + 2.0, began + TELL
    _clock(diary)
    while (now := time.monotonic()) < began + told.seconds:
        injector.step()
        if now > next_sample:
            next_sample = now + SAMPLE
            _clock(diary)
            if topology.HAS_LINES:  # else a queue may be on its way from one server to another
                sample(topology.nodes(), diary)
        if now > next_tell:
            next_tell += TELL
            tell(_progress(told, now - began, injector))
        time.sleep(STEP)
    _clock(diary)


def _peace(told: Round, injector: Injector, stage: Stage, topology: Topology, diary: Diary, tell: Tell) -> None:
    injector.heal()
    late = stage.end("producer", "operator", within=GO_WITHIN)
    asyncio.run(_settle(topology.url, diary))
    began = time.monotonic()
    drained = asyncio.run(_drain(topology.url, told.drain, injector, diary, tell))
    diary.note("drained", answer=drained, took=time.monotonic() - began, within=told.drain)
    late += stage.end("duty", within=GO_WITHIN)
    _idle(stage, topology, diary)
    late += stage.end("worker", within=GO_WITHIN)
    diary.note("all left", late=late)
    late = stage.end("recorder", within=60)
    with topology.client() as client:
        nodes = topology.nodes()
        asyncio.run(last_look(client, nodes, topology.url, diary))
    _clock(diary)
    diary.note("over", late=late)


async def _settle(url: str, diary: Diary) -> None:
    operator = Operator(diary, {"seed": 0, "life": 0, "url": url})
    await operator.settle()
    await operator.close()


async def _drain(url: str, within: float, injector: Injector, diary: Diary, tell: Tell) -> bool:
    """Whether all queues become empty, however slowly, with nothing started again but what a poisonous job killed, and
    with every job given up that blocks its group."""
    operator = Operator(diary, {"seed": 0, "life": 1, "url": url, "ops": DRAINING})
    queues = [open_queue(role.name, url) for role in QUEUES]
    least, left, deadline, next_tell = math.inf, 1, time.monotonic() + within, time.monotonic() + TELL
    while left and time.monotonic() < deadline:
        injector.step()
        with contextlib.suppress(GroupMQError):
            await operator.skip_all()
            left = sum([(await queue.get_job_counts()).total for queue in queues])
        if left < least:
            least, deadline = left, time.monotonic() + within
        if time.monotonic() > next_tell:
            next_tell += TELL
            tell(f"    draining: {left} jobs left")
        await asyncio.sleep(0.1)
    for queue in queues:
        await queue.close()
    await operator.close()
    return not left


def _idle(stage: Stage, topology: Topology, diary: Diary) -> None:
    """Nothing is left to do: see what workers do then."""
    workers = sum(parts_of(work["queue"]) for work in stage.works())
    nodes = topology.nodes()
    before, began = calls_of(nodes), time.monotonic()
    time.sleep(IDLE)
    after, seconds = calls_of(nodes), time.monotonic() - began
    beat = min(LEASE / 3, IDLE)
    diary.note("idle", workers=workers, seconds=seconds, block=BLOCK, beat=beat, calls=dict(after - before))


def _watch_calls(topology: Topology, diary: Diary, over: threading.Event) -> None:
    """Note calls that took the server long, with how long it waited for a processor around them."""
    last, since = topology.waited(), time.monotonic()
    while not over.wait(SERVED):
        waited, slow = topology.waited(), list[tuple[str, int]]()
        with contextlib.suppress(redis.RedisError):
            slow = slow_calls(topology.nodes())
        if slow:
            diary.note("served", since=since, waited=max(0.0, waited - last), slow=slow)
        last, since = waited, time.monotonic()


def _watch_server(topology: Topology, diary: Diary, over: threading.Event) -> None:
    """Note when the server took long to answer, or did not, for whatever reason."""
    while not over.wait(PULSE):
        began = time.monotonic()
        with contextlib.suppress(redis.RedisError), topology.client() as client:
            client.ping()
        if time.monotonic() - began > SLOW:
            diary.note("starved", since=began, actor="server")


def _clock(diary: Diary) -> None:
    diary.note("clock", wall=true_time() * 1000)


def _lines(folder: Path, mark: bytes, actor: str = "") -> int:
    return sum(path.read_bytes().count(mark) for path in folder.glob(f"{actor}*.jsonl"))


def _progress(told: Round, passed: float, injector: Injector) -> str:
    started = _lines(told.folder, b'"k": "start"')
    faults = ", ".join(f"{kind} {n}" for kind, n in sorted(injector.counted.items()))
    return f"  {passed:5.0f} s  {started} runs, {injector.counted.total()} faults ({faults})"
