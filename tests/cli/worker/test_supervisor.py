"""A supervisor that is stopped at the worst time: while it starts processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from groupmq.cli.worker.plan import WorkerPlan
from groupmq.cli.worker.supervisor import SupervisedProcess, Supervisor
from tests.cli.programs import ROOT, Programs
from tests.support.workers import one_kind

pytestmark = one_kind
PATIENCE = 25.0
"""Seconds: less than the drain timeout, after which a process that got no signal would be killed."""


@pytest.fixture
def plan(programs: Programs, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPlan]:
    """The plan of workers that would wait for jobs for ever."""
    monkeypatch.chdir(programs.folder)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{programs.folder}")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield WorkerPlan("tasks:handle", url, ("orders",))
    for number, handler in before.items():
        signal.signal(number, handler)


async def ends(supervisor: Supervisor) -> int:
    try:
        return await asyncio.wait_for(supervisor.run(), PATIENCE)
    finally:
        supervisor._kill()


@pytest.mark.parametrize("number", [0, 1])
async def test_a_process_that_is_being_started_is_stopped_too(
    plan: WorkerPlan, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor(plan, 2, None)
    spawn = SupervisedProcess._spawn

    async def stopped_meanwhile(one: SupervisedProcess, link: int) -> Any:
        process = await spawn(one, link)
        if one.number == number:
            supervisor._stop()
        return process

    monkeypatch.setattr(SupervisedProcess, "_spawn", stopped_meanwhile)
    assert await ends(supervisor) == 0
    assert [one.starts for one in supervisor.supervised] == [1, number]


async def test_who_is_to_stop_starts_no_more_processes(plan: WorkerPlan) -> None:
    supervisor = Supervisor(plan, 2, None)

    class Up(asyncio.Event):
        def set(self) -> None:
            super().set()
            supervisor._stop()

    supervisor.supervised[0].up = Up()
    assert await ends(supervisor) == 0
    assert [one.starts for one in supervisor.supervised] == [1, 0]
