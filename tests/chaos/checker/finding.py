"""The result of a check: which promise is broken, and how."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

RULES = {
    "S1": "nothing acknowledged is lost",
    "S2": "no phantom jobs, and every payload is as it was added",
    "S3": "no second run without a reason",
    "S4": "never more running jobs of a group than its limit; one worker at a time in an exclusive queue",
    "S5": "fences only grow",
    "S6": "no stale outcome is accepted, one outcome for each attempt",
    "S7": "jobs of a group start in order",
    "S8": "a job that comes back keeps its sort key",
    "S9": "no start is early, after the ttl, above the rate, or while a breaker is open",
    "S10": "attempts count 1, 2, 3, and never beyond the limit",
    "S11": "the same id is the same job",
    "S12": "one job for each tick, on its grid",
    "S13": "nothing starts after a removal or while paused",
    "S14": "retention holds at all times",
    "S15": "counts add up, each job is in exactly one structure",
    "S16": "every group with a job has a wake-up",
    "S17": "no leaked key",
    "S18": "nothing outside the queue's keys changes",
    "S19": 'with on_failed="hold", a job that failed for good blocks its group until a person resolves it',
    "L1": "a dead worker's job is taken back in time",
    "L2": "the backlog drains when the faults are over",
    "L3": "workers work again when the server is back",
    "L4": "no group that may start a job is passed over again and again",
    "L5": "close returns in time",
    "L6": "idle workers block and do not poll; in outages they pause, and do not reconnect all at once",
    "L7": "no call takes the server longer than 5 ms",
    "H": "the history is complete",
}


class Finding(NamedTuple):
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule} ({RULES[self.rule]}): {self.text}"


@dataclass
class Notes:
    """Figures that the checks collect in passing, and that are not violations."""

    duplicates: Counter[str] = field(default_factory=Counter)
    """Second runs of a job that had not failed, by what caused them."""
    zombies: int = 0
    """Handlers that ran on beside their successor after their lease was lost."""
    compared: int = 0
    """Starts whose order was checked against all waiting jobs."""
    recoveries: list[float] = field(default_factory=list)
    """Seconds from the death of a worker until its job was taken back or was started again."""
    returns: list[float] = field(default_factory=list)
    """Seconds from the return of the server to the first start of a worker."""
    longest_ready: float = 0.0
    """The longest time, in seconds, that the head of a group waited with nothing in its way."""
    slow_calls: int = 0
    """Calls of more than 5 ms, including the time spent waiting for a processor."""
    ticks: int = 0
    blocks: int = 0
    """Times that a failed job blocked its group."""
    rests: int = 0
    """Times that a breaker opened, or stayed open after a probe."""
    refused: int = 0
    """Outcomes that were refused, with a lost lease reported to the worker."""
    misinformed: int = 0
    """Outcomes that were accepted, though their worker, after a long silence, learned that the lease was lost."""
