"""All rules at once: after any operations in any order, all indexes agree, and in the end every job has run."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from groupmq.core.drafts import draft
from groupmq.core.errors import ConfigurationError
from groupmq.core.limits import Debounce, RateLimit, Throttle
from groupmq.core.ordering import Ordering
from groupmq.core.schedule import Every
from groupmq.protocol import commands
from groupmq.protocol.commands import Outcome, Taken
from groupmq.protocol.keys import registry_key
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, Engine

GROUPS = ["a", "b", "c"]
LEASES = {"w1": 300, "w2": 5000}


def options(pick: random.Random) -> dict[str, Any]:
    """Any combination of rules that makes sense."""
    found: dict[str, Any] = {"kept": pick.choice([0, 3, 100]), "group_concurrency": pick.choice([1, 2, 3])}
    window = pick.choice([None, None, Ordering.event_time(0.5), Ordering.arrival(0.5, 4)])
    found["ordering"] = window
    order = pick.choice(["oldest", "round-robin", "ageing"])
    if order == "round-robin":
        found["fairness"] = order
    elif order == "ageing" and (window is None or window.kind == "arrival"):
        found["priority_ageing_ms"] = pick.choice([100, 5000])
    rules: dict[str, Any] = {
        "rate_limit": RateLimit(pick.choice([1, 3]), 0.5),
        "group_rate_limit": RateLimit(pick.choice([1, 2]), 0.5),
        "exclusive": True,
        "max_group_size": 4,
    }
    return found | {name: value for name, value in rules.items() if pick.random() < 0.35}


class Mixture:
    """A queue, two workers, an operator and a scheduler, which act at random."""

    def __init__(self, engine: Engine, pick: random.Random) -> None:
        self.engine, self.pick = engine, pick
        self.names = 0
        self.held: dict[str, list[Taken]] = {"w1": [], "w2": []}
        self.epochs = {"w1": 0, "w2": 0}
        self.acts: list[Callable[[], Any]] = [
            *[self.add] * 5,
            *[self.work] * 7,
            *[self.wait] * 4,
            *[self.change] * 4,
            *[self.switch] * 3,
            self.repeat,
            self.tick,
            self.beat,
            engine.due,
            engine.resume,
        ]

    def step(self) -> None:
        self.pick.choice(self.acts)()

    def add(self) -> None:
        pick, drafts = self.pick, []
        for _ in range(pick.randint(1, 4)):
            self.names += 1
            how: dict[str, Any] = pick.choice(
                [
                    {},
                    {"delay": pick.choice([0.2, 4])},
                    {"dedupe": Throttle(pick.choice("xy"), pick.choice([0.3, 3]))},
                    {"dedupe": Debounce(pick.choice("xy"), pick.choice([0.3, 3]))},
                ]
            )
            assert self.engine.now is not None
            if pick.random() < 0.3:
                how["order_ms"] = pick.choice([-(2**63), 0, self.engine.now - SECOND, self.engine.now + SECOND])
            if pick.random() < 0.3:
                how["ttl"] = pick.choice([0.2, 5])
            job_id = f"j{self.names if pick.random() < 0.9 else pick.randint(1, self.names)}"
            group = pick.choice([*GROUPS, None])
            priority = pick.choice([0, 0, 1, 5])
            drafts.append(draft(self.engine.options, None, group_id=group, job_id=job_id, priority=priority, **how))
        self.engine.call(commands.add(drafts, self.engine.now, whole=pick.random() < 0.3))

    def outcome(self, job: Taken) -> Outcome:
        wait = self.pick.choice([0, 700])
        return self.pick.choice(
            [
                commands.completed(job.id, job.fence, b"1"),
                commands.completed(job.id, job.fence, None),
                commands.retried(job.id, job.fence, wait, self.pick.random() < 0.4, "x", ""),
                commands.failed(job.id, job.fence, "x", ""),
                commands.released(job.id, job.fence),
                commands.rate_limited(job.id, job.fence, wait),
            ]
        )

    def work(self) -> None:
        worker = self.pick.choice(list(self.held))
        ended = [job for job in self.held[worker] if self.pick.random() < 0.6]
        outcomes = [self.outcome(job) for job in ended]
        self.advance(worker, ended, outcomes, self.pick.choice([0, 1, 2, 5]), 2)

    def advance(self, worker: str, ended: list[Taken], outcomes: list[Outcome], take: int, turn_size: int) -> None:
        answer = self.engine.advance(
            *outcomes,
            take=take,
            worker=worker,
            requester=f"{worker}:0",
            lease_ms=LEASES[worker],
            turn_size=turn_size,
            epoch=self.epochs[worker],
        )
        self.epochs[worker] = answer.epoch
        self.held[worker] = [job for job in self.held[worker] if job not in ended] + answer.jobs

    def wait(self) -> None:
        self.engine.pass_time(self.pick.choice([0, 1, 50, 300, 301, 501, 1000, 10_000]))

    def beat(self) -> None:
        worker = self.pick.choice(list(self.held))
        self.engine.beat(*self.held[worker], worker=worker, lease_ms=LEASES[worker])

    def change(self) -> None:
        engine, jobs = self.engine, sorted(self.engine.look().jobs)
        if jobs:
            job_id, delay = self.pick.choice(jobs), self.pick.choice([0, 500, 3000])
            kinds: list[Callable[[str], Any]] = [engine.remove, engine.fail, engine.promote, engine.retry]
            kinds.append(lambda job_id: engine.change_delay(job_id, delay))
            self.pick.choice(kinds)(job_id)

    def switch(self) -> None:
        engine, group = self.engine, self.pick.choice(GROUPS)
        kinds: list[Callable[[], Any]] = [
            lambda: engine.pause(group),
            lambda: engine.resume(group),
            lambda: engine.limit(group, self.pick.choice([0, 1, 2])),
            lambda: engine.rate(group, self.pick.choice([None, RateLimit(1, 1), RateLimit(2, 0.3)])),
            engine.pause,
        ]
        self.pick.choice(kinds)()

    def repeat(self) -> None:
        pick, group = self.pick, self.pick.choice([*GROUPS, None])
        if pick.random() < 0.3:
            self.engine.run_now(self.engine.operations.remove_repeating_job(group, pick.choice("kl")))
            return
        catch_up: Any = pick.choice(["one", "all", "none"])
        every = Every(
            pick.choice([0.5, 3]),
            key=pick.choice("kl"),
            limit=pick.choice([None, 3]),
            immediately=pick.random() < 0.5,
            catch_up=catch_up,
        )
        try:
            self.engine.repeat(every, group, ttl=pick.choice([None, 1]))
        except ConfigurationError as error:
            if "still ticks" not in str(error):  # the limit may already be reached
                raise

    def tick(self) -> None:
        self.engine.tick(self.pick.choice([None, self.engine.now]))

    def drain(self) -> None:
        """Undo everything that keeps jobs waiting, and let the workers run them all."""
        engine = self.engine
        engine.resume()
        for group in GROUPS:
            engine.resume(group)
            engine.rate(group, None)
        for key in "kl":
            for owner in [*GROUPS, None]:
                engine.run_now(engine.operations.remove_repeating_job(owner, key))
        for _ in range(500):
            counts = engine.counts()
            if not counts["active"] + counts["waiting"] + counts["delayed"]:
                return
            engine.pass_time(600)
            for worker, jobs in self.held.items():
                self.advance(worker, jobs, [commands.completed(job.id, job.fence, None) for job in jobs], 10, 50)
        raise AssertionError(f"jobs that never ran: {engine.counts()}, {engine.look().groups}")


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture_of_rules_and_events_keeps_every_invariant_and_drains(make_engine: MakeEngine, seed: int) -> None:
    pick = random.Random(seed)
    chosen = options(pick)
    mixture = Mixture(make_engine(**chosen), pick)
    for step in range(60):
        mixture.step()
        found = mixture.engine.violations()
        assert not found, f"{chosen}, step {step}: {found}"
        if step % 20 == 0:
            assert mixture.engine.run_now(mixture.engine.operations.repair()).clean
    mixture.drain()


@pytest.mark.parametrize("seed", range(100, 105))
def test_nothing_of_an_obliterated_queue_is_left_whatever_its_rules_were(make_engine: MakeEngine, seed: int) -> None:
    pick = random.Random(seed)
    engine = make_engine(**options(pick))
    mixture = Mixture(engine, pick)
    for _ in range(60):
        mixture.step()
    engine.run_now(engine.operations.obliterate())
    assert list(engine.client.scan_iter()) == [registry_key("groupmq").encode()], "scripts do not touch the list"
