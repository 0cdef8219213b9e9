"""Injects the faults of a schedule into processes, network wires and the server, and records each with its time."""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

import redis

from tests.chaos.history import HistoryFile
from tests.chaos.network import Network, Wire
from tests.chaos.schedule import Fault
from tests.chaos.stage import Stage
from tests.chaos.topology import Topology


class Injector:
    """Injects each fault when it is due. `step` must be called often, in one thread.

    Server faults run one by one in a separate thread, since a server that is stopped would block the others.
    """

    def __init__(
        self, faults: list[Fault], stage: Stage, network: Network, topology: Topology, history: HistoryFile
    ) -> None:
        self._stage, self._network, self._topology, self._history = stage, network, topology, history
        self._random = Random(len(faults))
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._began = time.monotonic()
        self.counted: Counter[str] = Counter()
        self._server_faults: queue.Queue[Fault | None] = queue.Queue()
        self._healing = threading.Event()
        self._server_thread = threading.Thread(target=self._serve, name="server-faults", daemon=True)
        self._server_thread.start()
        for fault in faults:
            self._later(fault.at, partial(self._strike, fault))

    def _later(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at, next(self._numbers), action))

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def step(self) -> None:
        while self._due and self._due[0][0] <= self.now:
            heapq.heappop(self._due)[2]()
        for name in self._stage.fallen():
            self.start_again(name)

    def start_again(self, name: str) -> None:
        self._later(self.now + self._random.uniform(0.1, 0.6), lambda: self._stage.start(name))

    def heal(self) -> None:
        """End every fault under way, and let none begin."""
        self._healing.set()
        self._server_faults.put(None)
        self._server_thread.join(60)
        self._stage.thaw_all()
        self._topology.heal()
        for wire in self._network.wires.values():
            self._network.call(partial(_mend, wire))
        self._due.clear()
        for name in self._stage.names():
            if name not in self._stage.processes:
                self._stage.start(name)
        self._history.note("healed")

    def _strike(self, fault: Fault) -> None:
        if fault.kind in self._topology.NAMES:
            self._server_faults.put(fault)
        elif fault.kind in ("kill", "freeze", "leave"):
            self._strike_process(fault)
        else:
            self._strike_wire(fault)

    def _strike_process(self, fault: Fault) -> None:
        name = fault.target
        match fault.kind:
            case "kill":
                pid = self._stage.kill(name)
            case "leave":
                pid = self._stage.leave(name)
            case _:
                pid = self._stage.freeze(name)
        if pid is None:
            return
        self._begun(fault, pid)
        if fault.kind == "freeze":

            def thaw() -> None:
                self._stage.thaw(name, pid)
                self._ended(fault, pid)

            self._later(self.now + fault.length, thaw)

    def _strike_wire(self, fault: Fault) -> None:
        wire, process = self._network.wires[fault.target], self._stage.processes.get(fault.target)
        pid = None if process is None else process.pid

        def begin() -> None:
            match fault.kind:
                case "cut":
                    wire.broken = True
                    wire.abort()
                case "drop":
                    wire.drop_next = True
                case "truncate":
                    wire.truncate_next = True
                case "delay":
                    wire.delay = 0.005 + 0.12 * fault.amount
                case "hang":
                    wire.hang()

        def end() -> None:
            if fault.kind == "cut":
                wire.broken = False
            elif fault.kind == "delay":
                wire.delay = 0.0
            elif fault.kind == "hang":
                wire.flow()

        self._begun(fault, pid)
        self._network.call(begin)
        if fault.length:

            def later() -> None:
                self._network.call(end)
                self._ended(fault, pid)

            self._later(self.now + fault.length, later)

    def _serve(self) -> None:
        while (fault := self._server_faults.get()) is not None:
            if self._healing.is_set():  # too late: earlier faults took longer than planned
                continue
            self._begun(fault, None)
            try:
                undo = self._topology.strike(fault)
            except (AssertionError, redis.RedisError) as error:
                # On a busy machine a fault may not take effect in time. It is then not counted, and the next follows.
                self.counted[fault.kind] -= 1
                self._history.note(
                    "no fault", kind=fault.kind, planned=fault.at, error=f"{type(error).__name__}: {error}"
                )
                undo = None
            if undo is not None:
                time.sleep(fault.length)
                undo()
            self._ended(fault, None)

    def _begun(self, fault: Fault, pid: int | None) -> None:
        self.counted[fault.kind] += 1
        self._history.note("fault", kind=fault.kind, target=fault.target, of=pid, length=fault.length, planned=fault.at)

    def _ended(self, fault: Fault, pid: int | None) -> None:
        self._history.note("fault over", kind=fault.kind, target=fault.target, of=pid, planned=fault.at)


def _mend(wire: Wire) -> None:
    wire.broken = wire.drop_next = wire.truncate_next = False
    wire.delay = 0.0
    wire.flow()
