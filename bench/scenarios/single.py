"""Single calls: the time of an awaited add compared with a bare EVALSHA, and the server cost of any call."""

from __future__ import annotations

from collections.abc import Iterator

from bench.metrics import OURS
from bench.scenarios.context import Context, Sample, Scenario
from bench.spread import spread

FIXED = ("reference", "defined", "read", "write", "read_scripts", "write_scripts")


def run_adds(context: Context) -> Iterator[Sample]:
    settings = context.settings
    context.server.reset()
    found = context.asked("adds", "us", jobs=settings.adds, warmup=settings.adds_warmup, groups=settings.jobs)
    context.keep("add_us", found["us"])
    took = spread(found["us"])
    for figure in ("p50", "p99"):
        yield f"add_{figure}", took[figure]
    if context.library.key == OURS:
        context.keep("bare_us", found["bare_us"])
        bare = spread(found["bare_us"])
        for figure in ("p50", "p99"):
            yield f"single_add_{figure}", took[figure]
            yield f"single_bare_{figure}", bare[figure]


def run_fixed(context: Context) -> Iterator[Sample]:
    """The lowest of many alternating blocks, since any disturbance only makes a block slower."""
    context.server.reset()
    figures = (*FIXED, "functions", "add", "add_commands")
    found = context.asked("fixed", *figures, slices=context.settings.fixed_blocks)
    for figure in figures:
        context.keep(f"fixed_{figure}", found[figure])
        yield f"fixed_{figure}", min(found[figure])


ADDS = Scenario("adds", "awaited adds, one after the other", run_adds)
FIXED_COST = Scenario("fixed", "fixed cost of a call at the server", run_fixed, peers=False)
