"""Random jobs, as arguments of `add`, and their description for the checker."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.chaos.cast import HOSTILE, QueueRole, groups_of
from tests.chaos.history import digest
from tests.chaos.schedule import LEASE
from tests.chaos.skew import true_time

Item = dict[str, Any]
WORDS = ("", "plain", "löß ✓ \U0001f600", 'quote " \\ back', "line\nbreak\0nul")
SAME_IDS = 12
"""Number of ids of each queue that are used over and over."""
UNIQUE_FOR = 60.0
"""Seconds for which every second one of these ids stays taken after its job has ended."""
LINGERS = 4
"""One job in this many takes as long as a lease when it runs again. A frozen process wakes up after its lease is
over and reports what it ran before. The next run must still be going on then, or no fence is put to the test."""


class JobMaker:
    """Makes the jobs of one producer. `name` makes their uids unique."""

    def __init__(self, name: str, random: Random, *, poison: bool) -> None:
        self._name = name
        self._random = random
        self._poison = poison
        self._n = 0

    def items(self, role: QueueRole, n: int) -> list[Item]:
        return [self.item(role) for _ in range(n)]

    def item(self, role: QueueRole) -> Item:
        """Arguments of `add`."""
        random, self._n = self._random, self._n + 1
        uid = f"{self._name}.{self._n}"
        item: Item = dict(self._order(role))
        groups = groups_of(role)
        if groups and random.random() < 0.92:
            # A few groups get most jobs.
            item["group_id"] = groups[min(int(random.expovariate(4 / len(groups))), len(groups) - 1)]
        chance = random.random()
        if chance < 0.35:
            item["job_id"] = f"{random.choice(HOSTILE)}|{uid}" if chance < 0.05 else f"job-{uid}"
        elif chance < 0.42:
            item |= self._same(role, random.randrange(SAME_IDS), groups)
        item |= self._work(role)
        if item["data"]["do"] == "snooze":
            # With "yield" the job would wait outside its group, and no event shows that.
            item.pop("on_retry", None)
        item["data"] |= {"uid": uid, "q": role.name, "list": [], "map": {}, "big": 2**53 + self._n}
        item["data"]["text"] = random.choice(WORDS)
        return item

    def _same(self, role: QueueRole, n: int, groups: list[str]) -> Item:
        """An id that is used again. In a queue with partitions each such id always has the same group, since concurrent
        adds of one id to groups of different partitions may both succeed."""
        same: Item = {"job_id": f"same-{n}"} | ({"unique_for": UNIQUE_FOR} if n % 2 else {})
        return same | ({"group_id": groups[n % len(groups)]} if "partitions" in role.options else {})

    def _order(self, role: QueueRole) -> Iterator[tuple[str, Any]]:
        """Priority, order, delay and limits."""
        random = self._random
        if random.random() < 0.2:
            yield "priority", random.choice((1, 2, 2, 7, 1023))
        now_ms = round(true_time() * 1000)
        if role.name == "window":
            yield "order_ms", now_ms - random.randrange(300)
        elif role.name == "late" or random.random() < 0.15:
            yield (
                "order_ms",
                random.choice((now_ms - random.randrange(500), random.randrange(-50, 50), -(2**63), 2**62)),
            )
        elif random.random() < 0.12:
            if random.random() < 0.5:
                yield "delay", round(random.uniform(0.05, 2.0), 3)
            else:
                yield "run_at", round(true_time() + random.uniform(-1.0, 1.5), 3)
        if random.random() < 0.06:
            yield "ttl", round(random.uniform(0.1, 3.0), 3)
        if random.random() < 0.06:
            yield "on_retry", "yield"
        if random.random() < 0.03:
            yield "max_attempts", random.choice((1, 2, 30))

    def _work(self, role: QueueRole) -> Item:
        """What the handler does."""
        random = self._random
        chance = random.random()
        if role.name == "bulk":
            seconds = 0.0 if chance < 0.6 else round(random.expovariate(1 / 0.01), 4)
            do = "work" if chance < 0.9 else "fail" if chance < 0.975 else "snooze" if chance < 0.985 else "give up"
            return {"data": {"do": do, "s": seconds, "times": random.choice((1, 1, 2))}}
        if role.name == "strict" and random.random() < 0.05:
            return {"data": {"do": "give up", "s": 0}}
        if role.name == "shaky" and random.random() < 0.12:  # as often in a row as opens its group's breaker
            return {"data": {"do": "fail", "s": 0.002, "times": 3}}
        linger = {} if self._n % LINGERS else {"linger": LEASE}
        if chance < 0.55:
            return {"data": {"do": "work", "s": 0, **linger}}
        if chance < 0.80:
            return {"data": {"do": "work", "s": round(random.expovariate(1 / 0.02), 4), **linger}}
        if chance < 0.82:
            return {"data": {"do": "work", "s": round(random.uniform(0.2, 1.0), 3)}}
        if chance < 0.89:
            return {"data": {"do": "fail", "s": 0.002, "times": random.choice((1, 1, 2, 3))}}
        if chance < 0.92:
            return {"data": {"do": "again", "s": round(random.uniform(0, 0.3), 3), "times": 1}}
        if chance < 0.935:
            return {"data": {"do": "give up", "s": 0}}
        if chance < 0.95 and role.groups:
            return {"data": {"do": "limited", "s": round(random.uniform(0.02, 0.2), 3)}}
        if chance < 0.96:
            return {"data": {"do": "snooze", "s": round(random.uniform(0.01, 0.3), 3)}}
        if chance < 0.975:
            return {"data": {"do": "talk", "s": 0}}
        if chance < 0.99:
            return {"data": {"do": "block", "s": round(random.uniform(0.01, 0.06), 3)}}
        if chance < 0.999 or not self._poison:
            return {"data": {"do": "slow", "s": 0, "times": 1}, "timeout": 0.2}
        # It has two attempts. With times=1 only the first one kills its process, with times=2 both do.
        return {"data": {"do": "poison", "s": 0, "times": random.choice((1, 2))}, "max_attempts": 2}


def described(item: Item) -> dict[str, Any]:
    """The item as it is written to the history."""
    data = item["data"]
    kept = {name: value for name, value in item.items() if name not in ("data", "timeout", "run_at")}
    if "run_at" in item:
        kept["run_at"] = round(item["run_at"] * 1000)
    if data["do"] == "snooze":
        kept["snooze"] = data["s"]
    return kept | {"uid": data["uid"], "do": data["do"], "digest": digest(data)}
