"""Jobs that arrive one by one, each in another group, while a worker in another process waits for them.

At each rate there are two runs. The first measures when jobs start and their server cost, without waiting for results.
The second waits for the results of some jobs.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.metrics import RATES
from bench.peers.running import Figures
from bench.scenarios.context import Context, Sample, Scenario
from bench.servertime import CallShare, Cost, watch_calls
from bench.spread import spread

NOTED = {200: 1, 1_000: 3, 5_000: 13, 10_000: 27}
"""Every n-th job is recorded, by rate. The n are odd, so that it is not always the first of jobs sent together."""
GROUPS = 10_000_000
"""More than there are jobs."""
WITHOUT_RESULTS = frozenset({"groupmq_node"})


def run(context: Context) -> Iterator[Sample]:
    share = _learned(context)
    for rate in RATES:
        yield from _starts(context, rate, share)
        if context.library.key not in WITHOUT_RESULTS:
            yield from _results(context, rate)


def _learned(context: Context) -> CallShare:
    """The share of commands that come directly from clients when jobs arrive one by one; determined once."""
    if SCENARIO.name not in context.shares:
        with watch_calls(context.server) as context.shares[SCENARIO.name]:
            trickled(context, RATES[0], seconds=1)
    return context.shares[SCENARIO.name]


def _starts(context: Context, rate: int, share: CallShare) -> Iterator[Sample]:
    settings = context.settings
    seconds = settings.trickle_slow_seconds if rate == RATES[0] else settings.trickle_seconds
    added, waits, cost = trickled(context, rate, seconds=seconds, share=share)
    jobs = added["jobs"][0]
    context.keep(f"trickle_{rate}_start_ms", waits)
    found = spread(waits)
    yield f"trickle_{rate}_server", cost.command_us / jobs
    yield f"trickle_{rate}_start_p50", found["p50"]
    yield f"trickle_{rate}_start_p99", found["p99"]
    yield f"trickle_{rate}_reached", (jobs - added["left"][0]) / added["seconds"][0]


def _results(context: Context, rate: int) -> Iterator[Sample]:
    settings = context.settings
    seconds = settings.trickle_slow_waited_seconds if rate == RATES[0] else settings.trickle_waited_seconds
    added, _, _ = trickled(context, rate, seconds=seconds, keep=settings.roundtrip_kept)
    context.keep(f"trickle_{rate}_result_ms", added["result_ms"])
    found = spread(added["result_ms"])
    yield f"trickle_{rate}_result_p50", found["p50"]
    yield f"trickle_{rate}_result_p99", found["p99"]


def trickled(
    context: Context,
    rate: int,
    *,
    seconds: int,
    share: CallShare | None = None,
    keep: int = 0,
    concurrency: int = 100,
) -> tuple[Figures, list[float], Cost]:
    """The figures of the producer, milliseconds from add to start, and the server cost. With `keep` the producer waits
    for results, and that many finished jobs are kept, since BullMQ raises an error for a job that is gone.
    """
    context.server.reset()
    how = {"each": NOTED[rate], "waited": int(keep > 0), "keep": keep}
    with context.start("stamp", concurrency=concurrency, **how) as worker:
        worker.said("ready")
        with context.start(
            "trickle", rate=rate, seconds=seconds, groups=GROUPS, warmup=context.settings.trickle_warmup, **how
        ) as producer:
            producer.said("ready")
            with context.metered(share).measure() as cost:
                added = producer.end("jobs", "seconds", "left", "id", "sent_us", "result_ms")
        started = worker.end("jobs", "id", "at_us")
    at_us = dict(zip(started["id"], started["at_us"], strict=True))
    sent = zip(added["id"], added["sent_us"], strict=True)
    return added, [(at_us[i] - sent_us) / 1000 for i, sent_us in sent if i in at_us], cost[0]


SCENARIO = Scenario("trickle", "jobs that come one by one", run)
