"""How safe a job must be before `add` returns. Pure decisions; the connections send and wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from groupmq.core.checks import flag, whole
from groupmq.core.durations import Duration, millis
from groupmq.core.errors import ConfigurationError, NotDurable
from groupmq.core.wording import number

DurabilityName = Literal["server", "replicated", "fsync"]
ADDING = frozenset({"add", "define"})
"""Functions that add jobs or define repeats. The producer waits after a call of one of them."""
REPORTING = frozenset({"advance"})
"""Functions with the outcomes of a worker. The worker waits after them if `durability` asks for it."""
_KEY_MS = 10_000
Confirmation = tuple[tuple[Any, ...], ...]
"""Commands that are sent behind a call and wait for it to be durable; empty if the caller does not wait."""


@dataclass(frozen=True, slots=True)
class Durability:
    """An added job is safe once `replicas` replicas have it, and with `fsync` once it is on disk.

    With both, it is on the disk of the primary and of that many replicas. `add` raises NotDurable if that takes longer
    than `timeout`. With `outcomes` workers wait for it too before they go on, so that a failover makes fewer jobs run
    again; if that takes too long, the worker logs a warning.

    >>> Durability(replicas=2, timeout=1)
    Durability(replicas=2, fsync=False, outcomes=False, timeout=1)
    """

    replicas: int = 0
    fsync: bool = False
    outcomes: bool = False
    timeout: Duration = 5

    def __post_init__(self) -> None:
        whole(self.replicas, "Durability.replicas", 0, 100)
        flag(self.fsync, "Durability.fsync")
        flag(self.outcomes, "Durability.outcomes")
        millis(self.timeout, "Durability.timeout", minimum=0.001)
        if not (self.replicas or self.fsync):
            raise ConfigurationError(
                "Durability: expected replicas or fsync, got neither; to wait for neither, use durability='server'"
            )

    def applies_to(self, function: str) -> bool:
        """Whether the caller waits after a call of this function."""
        return function in ADDING or (self.outcomes and function in REPORTING)

    @property
    def timeout_ms(self) -> int:
        return millis(self.timeout, "Durability.timeout")

    def commands(self, key: str) -> Confirmation:
        """The commands that are sent behind a call, in the same write on the same connection.

        The server waits for the last write of that connection. A call that was sent again, or adds a job that exists,
        writes nothing, and the wait for it would end at once. So a write of our own precedes the wait: it comes after
        everything that the server has written by then. `key` is its key, which expires.
        """
        counted = ("WAITAOF", 1, self.replicas) if self.fsync else ("WAIT", self.replicas)
        return ("SET", key, "1", "PX", _KEY_MS), (*counted, self.timeout_ms)

    def missing(self, reply: Any) -> str | None:
        """The guarantee that the server's reply does not give, in words; None if the job is safe."""
        local, replicas = (int(reply[0]), int(reply[1])) if self.fsync else (1, int(reply))
        lacking = []
        if local < 1:
            lacking.append("it is not on the server's disk")
        if replicas < self.replicas:
            on_disk = " on disk" if self.fsync else ""
            lacking.append(f"{replicas} of {number(self.replicas, 'replica')} had it{on_disk}")
        return " and ".join(lacking) or None

    def require(self, reply: Any) -> None:
        lacking = self.missing(reply)
        if lacking is not None:
            raise NotDurable(lacking, self.timeout_ms / 1000)


def durability(given: object) -> Durability | None:
    """The option `durability` of a queue; None = as the server has it."""
    if given == "server":
        return None
    if given == "replicated":
        return Durability(replicas=1)
    if given == "fsync":
        return Durability(fsync=True)
    if isinstance(given, Durability):
        return given
    raise ConfigurationError.expected("durability", "'server', 'replicated', 'fsync' or a Durability", given)
