"""Runs the scenarios: rounds outside, libraries inside, so that drift of the machine affects all libraries alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bench.metrics import OURS, Samples
from bench.peers.library import Library
from bench.peers.running import PeerFailed
from bench.rounds import rotated
from bench.scenarios import (
    batches,
    bulk,
    concurrency,
    depth,
    events,
    exclusive,
    fairness,
    handlers,
    lifecycle,
    one_by_one,
    operations,
    python,
    rate,
    repeats,
    roundtrip,
    short_groups,
    single,
    timing,
    trickle,
    windows,
)
from bench.scenarios.context import Context, Scenario, calibrate
from bench.server import Server
from bench.servertime import CallShare
from bench.settings import Settings

SCENARIOS = (
    lifecycle.SCENARIO,
    concurrency.SCENARIO,
    short_groups.SCENARIO,
    one_by_one.SCENARIO,
    handlers.SCENARIO,
    bulk.SCENARIO,
    single.ADDS,
    trickle.SCENARIO,
    roundtrip.SCENARIO,
    python.SCENARIO,
    single.FIXED_COST,
    handlers.KINDS,
    depth.SCENARIO,
    operations.SCENARIO,
    timing.SCENARIO,
    repeats.SCENARIO,
    windows.SCENARIO,
    rate.SCENARIO,
    events.SCENARIO,
    exclusive.SCENARIO,
    batches.SCENARIO,
    fairness.SCENARIO,
)

Say = Callable[[str], None]


def measure(
    server: Server,
    settings: Settings,
    libraries: Sequence[Library],
    scenarios: Sequence[Scenario],
    say: Say,
) -> Samples:
    """Run all scenarios. A library that fails is reported and left out of the rest; the others continue."""
    samples = Samples()
    contexts: dict[str, Context] = {}
    for library in libraries:
        try:
            # Server time of the Python libraries is not reported.
            share = CallShare() if library.kind == "python" else calibrate(server, settings, library)
        except PeerFailed as error:
            _leave_out(library.key, error, contexts, samples, say)
        else:
            contexts[library.key] = Context(server, settings, library, share, samples.raw)
    for number in range(settings.rounds):
        for scenario in scenarios:
            if scenario.peers and number < _rounds(scenario, settings):
                say(f"round {number + 1} of {_rounds(scenario, settings)}: {scenario.title}")
                able = [key for key, context in contexts.items() if _takes_part(scenario, context.library)]
                _run_all(scenario, rotated(able, number), contexts, samples, say)
    for scenario in scenarios:
        if not scenario.peers and OURS in contexts:
            say(scenario.title)
            _run_all(scenario, [OURS], contexts, samples, say)
    return samples


def _rounds(scenario: Scenario, settings: Settings) -> int:
    return min(settings.rounds, settings.python_rounds) if "python" in scenario.kinds else settings.rounds


def _takes_part(scenario: Scenario, library: Library) -> bool:
    return library.kind in ("ours", *scenario.kinds) and library.key not in scenario.unable


def _run_all(scenario: Scenario, keys: Sequence[str], contexts: dict[str, Context], samples: Samples, say: Say) -> None:
    began = time.monotonic()
    for key in keys:
        try:
            for metric, value in scenario.run(contexts[key]):
                samples.add(metric, key, value)
        except PeerFailed as error:
            _leave_out(key, error, contexts, samples, say)
    samples.seconds[scenario.name] += time.monotonic() - began


def _leave_out(key: str, error: PeerFailed, contexts: dict[str, Context], samples: Samples, say: Say) -> None:
    say(f"left out from here on: {error}")
    samples.left_out[key] = str(error)
    contexts.pop(key, None)
