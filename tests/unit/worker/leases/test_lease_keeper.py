"""Outcomes that the heartbeat reports in place of a blocked event loop."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from groupmq.worker.leases.lease_keeper import LeaseKeeper


class Parts:
    """A keeper whose other parts only record their calls."""

    def __init__(self) -> None:
        self.accepted: list[str] = []
        self.refused: list[str] = []
        self.unsent: list[Any] = []
        executor: Any = SimpleNamespace(withdraw_all=list)
        fetcher: Any = SimpleNamespace(take_unsent=self._take, poke=lambda: None)
        dispatcher: Any = SimpleNamespace(
            accepted=lambda reports, now: self.accepted.extend(report.name for report in reports),
            refused=lambda report: self.refused.append(report.name),
        )
        nothing: Any = SimpleNamespace(blocked_for=1.0)
        self.keeper = LeaseKeeper(
            options=nothing,
            live=nothing,
            executor=executor,
            fetcher=fetcher,
            dispatcher=dispatcher,
            grants=nothing,
            unseen=nothing,
            policy=nothing,
            loop_watch=nothing,
            on_tick=nothing,
        )

    def _take(self) -> list[Any]:
        taken, self.unsent = self.unsent, []
        return taken

    def ends(self, *names: str, kind: str = "completed") -> None:
        self.unsent += [SimpleNamespace(name=name, kind=kind) for name in names]


async def let_it_run() -> None:
    await asyncio.sleep(0)


def parts() -> Parts:
    made = Parts()
    made.keeper.start(asyncio.get_running_loop())
    return made


async def test_a_refused_outcome_is_handled_as_if_the_loop_had_reported_it() -> None:
    """Found under load: a worker that was frozen at the end of a handler never learned that its lease was lost."""
    kept = parts()
    kept.ends("mine", "lost")
    kept.keeper.delivered(kept.keeper.outcomes(), [1, 0])
    await let_it_run()
    assert (kept.accepted, kept.refused) == (["mine"], ["lost"])


async def test_one_whose_first_answer_was_lost_may_have_been_recorded_and_nothing_is_said() -> None:
    kept = parts()
    kept.ends("first")
    kept.keeper.outcomes()  # this heartbeat gets no answer
    kept.ends("second")
    kept.keeper.delivered(kept.keeper.outcomes(), [0, 0])
    await let_it_run()
    assert kept.refused == ["second"]
    kept.ends("third")
    kept.keeper.delivered(kept.keeper.outcomes(), [0])
    await let_it_run()
    assert kept.refused == ["second", "third"]


async def test_a_prefetched_job_that_is_gone_already_is_no_lost_run() -> None:
    kept = parts()
    kept.ends("prefetched", kind="released")
    kept.keeper.delivered(kept.keeper.outcomes(), [0])
    await let_it_run()
    assert kept.refused == []
