"""Drive the scenarios: rounds outside, libraries inside, so that drift of the machine hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.metrics import OURS, Samples
from bench.peers.library import Library
from bench.peers.running import PeerFailed
from bench.rounds import rotated
from bench.scenarios import (
    concurrency,
    depth,
    events,
    exclusive,
    fairness,
    lifecycle,
    rate,
    repeats,
    roundtrip,
    short_groups,
    timing,
    windows,
)
from bench.scenarios.context import Context, Scenario, calibrate
from bench.server import Server
from bench.settings import Settings

SCENARIOS = tuple(
    module.SCENARIO
    for module in (
        lifecycle,
        concurrency,
        short_groups,
        roundtrip,
        depth,
        timing,
        repeats,
        windows,
        rate,
        events,
        exclusive,
        fairness,
    )
)

Say = Callable[[str], None]


def measure(
    server: Server,
    settings: Settings,
    libraries: Sequence[Library],
    scenarios: Sequence[Scenario],
    say: Say,
) -> Samples:
    """Run everything. A library that fails is named and left out of the rest; the others go on."""
    samples = Samples()
    contexts: dict[str, Context] = {}
    for library in libraries:
        try:
            share = calibrate(server, settings, library)
        except PeerFailed as error:
            say(f"left out: {error}")
        else:
            contexts[library.key] = Context(server, settings, library, share)
    for number in range(settings.rounds):
        for scenario in scenarios:
            if scenario.peers:
                say(f"round {number + 1} of {settings.rounds}: {scenario.title}")
                able = [key for key in contexts if key not in scenario.unable]
                _run_all(scenario, rotated(able, number), contexts, samples, say)
    for scenario in scenarios:
        if not scenario.peers and OURS in contexts:
            say(scenario.title)
            _run_all(scenario, [OURS], contexts, samples, say)
    return samples


def _run_all(scenario: Scenario, keys: Sequence[str], contexts: dict[str, Context], samples: Samples, say: Say) -> None:
    for key in keys:
        try:
            for metric, value in scenario.run(contexts[key]):
                samples.add(metric, key, value)
        except PeerFailed as error:
            say(f"left out from here on: {error}")
            del contexts[key]
