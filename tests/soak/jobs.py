"""Random jobs of a soak run. New groups appear all the time, are used for about ten seconds and never again."""

from __future__ import annotations

from random import Random
from typing import Any

from groupmq import Throttle

JOBS_OF_A_GROUP = 10
FAILURES, GIVEN_UP = 1300, 40
"""More than the number of failed attempts and of failed jobs that a queue keeps (queues.py)."""


def filling(parts: int) -> list[dict[str, Any]]:
    """Jobs, each in its own group, enough to fill all partitions of a queue."""
    failing = [{"data": {"do": "fail", "s": 0}, "group_id": f"fill-{n}"} for n in range(FAILURES * parts)]
    given_up = [{"data": {"do": "give up", "s": 0}, "group_id": f"fill-up-{n}"} for n in range(GIVEN_UP * parts)]
    return failing + given_up


class JobMaker:
    def __init__(self, seed: int, rate: float) -> None:
        self._random = Random(seed)
        self._births = rate / JOBS_OF_A_GROUP
        self._n = 0

    def group(self, now: float) -> str:
        """One of the groups in use now: as many as appear in about ten seconds."""
        newest = now * self._births
        return f"g{int(newest + self._random.random() * self._births * 10)}"

    def item(self, queue: str, now: float) -> dict[str, Any]:
        """Arguments of `add`."""
        random, self._n = self._random, self._n + 1
        item: dict[str, Any] = {"data": self._work(queue)}
        if random.random() < 0.93:
            item["group_id"] = self.group(now)
        chance = random.random()
        if chance < 0.10:
            item["delay"] = round(random.uniform(0.2, 5.0), 3)
        elif chance < 0.12:
            item["ttl"] = round(random.uniform(2.0, 10.0), 3)
        elif chance < 0.15:
            item |= {"job_id": f"mine-{self._n}", "unique_for": 5}
        elif chance < 0.16:
            item["dedupe"] = Throttle(f"key-{random.randrange(50)}", ttl=1)
        elif chance < 0.18:
            item["priority"] = random.choice((1, 2, 9))
        elif chance < 0.20:
            item["on_retry"] = "yield"
        if item["data"]["do"] == "slow":
            item["timeout"] = 0.2
        return item

    def _work(self, queue: str) -> dict[str, Any]:
        random, chance = self._random, self._random.random()
        if chance < 0.05:
            return {"do": "fail", "s": 0}
        if chance < 0.053:
            return {"do": "give up", "s": 0}
        if chance < 0.06:
            return {"do": "snooze", "s": round(random.uniform(0.05, 0.5), 3)}
        if chance < 0.065:
            return {"do": "limited" if queue != "flow" else "snooze", "s": 0.1}
        if chance < 0.08:
            return {"do": "talk", "s": 0}
        if chance < 0.082:
            return {"do": "slow", "s": 0}
        return {"do": "work", "s": 0 if chance < 0.7 else round(random.uniform(0.002, 0.05), 4)}
