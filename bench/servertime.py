"""The server cost of a run.

`INFO commandstats` counts a command called by a script, or inside MULTI, twice: in its own row and in the row of the
EVALSHA or EXEC around it. Summing all rows would penalise libraries that do more in scripts. So a short run under
MONITOR first determines, for each library and command, which share of the calls came directly from a client; only that
share of a row's time is counted (on Valkey it agrees with `eventloop_duration_cmd_sum`). The sum of all rows and the
CPU time of the server, which includes parsing and sockets, are reported as well.
"""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.server import Server

SENTINEL = "groupmq-bench-monitor-end"
OWN_COMMANDS = frozenset({"config", "echo", "flushall", "info", "monitor"})
LINE = re.compile(rb'^\+?[\d.]+ \[\d+ ([^\]]+)\] "([^"]+)"')


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds that the server spent in commands of clients and in all rows, and CPU time of its main thread."""

    command_us: float
    rows_us: float
    cpu_us: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.command_us + other.command_us, self.rows_us + other.rows_us, self.cpu_us + other.cpu_us)


@dataclass(slots=True)
class CallShare:
    """For each command, the share of its calls that a client sent itself (see the module's docstring)."""

    direct: Counter[str] = field(default_factory=Counter)
    nested: Counter[str] = field(default_factory=Counter)

    def of(self, command: str) -> float:
        """The share of a command. One never seen under MONITOR counts in full, so that no cost is underestimated."""
        total = self.direct[command] + self.nested[command]
        return self.direct[command] / total if total else 1.0


EVERY_CALL = CallShare()
"""Counts every row in full, nested calls twice."""


class Meter:
    """Reads the server's statistics before and after a piece of work."""

    def __init__(self, server: Server, share: CallShare) -> None:
        self._server = server
        self._share = share

    @contextmanager
    def measure(self) -> Iterator[list[Cost]]:
        """Yield a list that contains the `Cost` of the block once the block has ended."""
        result: list[Cost] = []
        self._server.client.config_resetstat()
        cpu = self._cpu_us()
        yield result
        spent = self._cpu_us() - cpu
        rows = self._server.client.info("commandstats")
        result.append(Cost(command_time(rows, self._share), command_time(rows, EVERY_CALL), spent))

    def _cpu_us(self) -> float:
        info = self._server.client.info("cpu")
        return 1e6 * sum(float(info[f"used_cpu_{kind}_main_thread"]) for kind in ("user", "sys"))


def command_time(commandstats: Mapping[str, Mapping[str, float]], share: CallShare) -> float:
    """Microseconds in commands that clients sent, without the benchmark's own commands."""
    total = 0.0
    for row, numbers in commandstats.items():
        command = row.removeprefix("cmdstat_").partition("|")[0]
        if command not in OWN_COMMANDS:
            total += numbers["usec"] * share.of(command)
    return total


@contextmanager
def watch_calls(server: Server) -> Iterator[CallShare]:
    """Count direct and nested calls while the block runs. MONITOR slows the server down, so the block is not timed."""
    share = CallShare()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"MONITOR\r\n")
        stream = connection.makefile("rb")
        if not stream.readline().startswith(b"+OK"):
            raise RuntimeError("the server refused MONITOR")
        reader = threading.Thread(target=_count, args=(stream, share), daemon=True)
        reader.start()
        yield share
        server.client.echo(SENTINEL)
        reader.join(timeout=60)


def _count(stream: Iterator[bytes], share: CallShare) -> None:
    """MONITOR names `lua` as the source of a script's calls; those of a transaction are between MULTI and EXEC."""
    in_transaction: set[bytes] = set()
    end = SENTINEL.encode()
    for line in stream:
        found = LINE.match(line)
        if found is None:
            continue
        source, command = found[1], found[2].decode("ascii", "replace").lower()
        if command == "echo" and end in line:
            return
        if command in ("exec", "discard"):
            in_transaction.discard(source)
        nested = source.endswith(b"lua") or source in in_transaction
        (share.nested if nested else share.direct)[command] += 1
        if command == "multi":
            in_transaction.add(source)
