"""Drive the scenarios: rounds outside, libraries inside, so that drift of the machine hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.metrics import OURS, Samples
from bench.peers.library import Library, PeerFailed
from bench.scenarios import concurrency, depth, lifecycle, short_groups
from bench.scenarios.context import Context, Scenario, calibrate
from bench.server import Server
from bench.settings import Settings

SCENARIOS = (lifecycle.SCENARIO, concurrency.SCENARIO, short_groups.SCENARIO, depth.SCENARIO)

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
                _run_all(scenario, _rotated(contexts, number), contexts, samples, say)
    for scenario in scenarios:
        if not scenario.peers and OURS in contexts:
            say(scenario.title)
            _run_all(scenario, [OURS], contexts, samples, say)
    return samples


def _rotated(contexts: dict[str, Context], by: int) -> list[str]:
    """Nobody always goes first: each round begins with another library."""
    keys = list(contexts)
    shift = by % len(keys) if keys else 0
    return keys[shift:] + keys[:shift]


def _run_all(scenario: Scenario, keys: Sequence[str], contexts: dict[str, Context], samples: Samples, say: Say) -> None:
    for key in keys:
        try:
            for metric, value in scenario.run(contexts[key]):
                samples.add(metric, key, value)
        except PeerFailed as error:
            say(f"left out from here on: {error}")
            del contexts[key]
