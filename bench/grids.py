"""Figures that are measured for groupmq alone: small tables that compare the same figure for several cases.

Titles, labels and columns are templates over the settings, so that they show which counts were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DISTRIBUTION = ("mean", "p50", "p99", "max")
"""The figures reported for a distribution of values."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure for each column of its grid; `keys` are its metrics. A row that is `drawn` is a panel of the chart."""

    label: str
    unit: str
    keys: tuple[str, ...]
    more_is_better: bool = False
    drawn: bool = True
    lowest: bool = False
    """The lowest of the rounds is reported instead of the median."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows under common columns. With `ratios` the other columns are compared with the first."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    ratios: bool = False


def _keys(before: str, cases: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{before}_{case}" for case in cases)


def _each(what: str, figure: str, cases: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{what}_{case}_{figure}" for case in cases)


def _cost(what: str, title: str, columns: dict[str, str], *, adding: bool = False) -> Grid:
    """The grid of a scenario that compares variants of the queue; `columns` has their names."""
    added = Row("add in bulk", "jobs/s", _keys(f"{what}_add", list(columns)), more_is_better=True)
    add_time = Row("- of it, add", "us", _keys(f"{what}_server_add", list(columns)), drawn=False)
    rows = (
        *((added,) if adding else ()),
        Row("process, concurrency 100", "jobs/s", _keys(what, list(columns)), more_is_better=True),
        Row("server time per job, add + process", "us", _keys(f"{what}_server", list(columns))),
        *((add_time,) if adding else ()),
    )
    return Grid(title, tuple(columns.values()), rows, ratios=True)


OPERATIONS = {
    "add": "add_many",
    "large_add": "add_many of 1 MiB payloads",
    "process": "process",
    "large_process": "process 1 MiB payloads",
    "large_due": "1 MiB payloads: delayed, all due at once",
    "large_fail": "1 MiB payloads: fail, take back, retry",
    "large_look": "1 MiB payloads: list, search, count",
    "large_change": "1 MiB payloads: new data, results, a repeat",
    "large_repair": "1 MiB payloads: repair",
    "large_remove": "1 MiB payloads: cancel, remove, clean, purge",
    "large_hset": "a plain HSET of 1 MiB, for comparison",
    "fail": "process jobs that fail",
    "due": "delayed jobs become due",
    "take_back": "take expired leases back",
    "expire": "ttl and dedupe keys end",
    "repeat": "ticks of repeats",
    "look": "counts, metrics, lists, monitor",
    "retry": "retry",
    "cancel_group": "cancel_group",
    "clean": "clean",
    "purge": "purge",
    "repair": "repair",
    "obliterate": "obliterate",
    "noise": "a loop of about 2 ms that touches no key",
}
"""Operations after which the slow log is read. The last one shows how much the machine adds to the time of a call."""
_BACKLOGS = ("shallow", "deep")
_TURNS = ("single", "batch")
_FAIRNESS = ("oldest", "rounds")
_REPEATS = {
    "one": "1 repeat, 20 ticks/s",
    "many": "{0.repeats_many:,} repeats, {0.ticks_many:,} ticks/s",
    "most": "{0.repeats_most:,} repeats, {0.ticks_most:,} ticks/s",
}

HANDLERS = {
    "none_1": "no-op, concurrency 1",
    "none_10": "no-op, concurrency 10",
    "none_100": "no-op, concurrency 100",
    "1ms_10": "1 ms, concurrency 10",
    "10ms_100": "10 ms, concurrency 100",
}
"""What handlers do, and how many at once; each as `async def` and as `def`."""
_KINDS = ("async", "def")
_CALLS = ("reference", "defined", "read", "write", "read_scripts", "write_scripts")

GRIDS = (
    Grid(
        "single calls",
        ("bare EVALSHA of redis-py", "awaited add"),
        tuple(Row(f"round trip, {name}", "us", _each("single", name, ("bare", "add"))) for name in ("p50", "p99")),
        ratios=True,
    ),
    Grid(
        "server time of an empty call",
        ("return 1, EVALSHA", "returns at once", "reads", "writes", "reads, no functions", "writes, no functions"),
        (Row("outside of its commands", "us", _keys("fixed", _CALLS)),),
        ratios=True,
    ),
    Grid(
        "server time of a lone add",
        ("whole call", "commands it makes", "functions in use"),
        (Row("add", "us, calls, 1 = yes", ("fixed_add", "fixed_add_commands", "fixed_functions"), drawn=False),),
    ),
    Grid(
        "handlers",
        ("async def", "def"),
        tuple(
            Row(label, "jobs/s", _keys(f"kinds_{case}", _KINDS), more_is_better=True)
            for case, label in HANDLERS.items()
        ),
        ratios=True,
    ),
    Grid(
        "backlog",
        ("{0.shallow:,} waiting", "{0.deep:,} waiting"),
        (
            Row("server time per job", "us", _keys("depth_server", _BACKLOGS)),
            Row("elapsed time per job", "us", _keys("depth_wall", _BACKLOGS)),
        ),
        ratios=True,
    ),
    Grid(
        "{0.operations_jobs:,} jobs in {0.operations_groups:,} groups",
        ("slowest call, quietest round", "calls of 5 ms or more"),
        tuple(
            Row(
                label,
                "ms, calls",
                _keys(f"operations_{operation}", ("slowest", "slow")),
                drawn=False,
                lowest=operation != "noise",
            )
            for operation, label in OPERATIONS.items()
        ),
    ),
    Grid(
        "start after the due time",
        DISTRIBUTION,
        (
            Row("{0.delays:,} delays in {0.delays_seconds} s", "ms", _keys("timing", DISTRIBUTION)),
            *(Row(label, "ms", _keys(f"repeats_{case}", DISTRIBUTION)) for case, label in _REPEATS.items()),
        ),
    ),
    Grid(
        "repeats in {0.repeats_seconds} s",
        ("expected", "run"),
        tuple(
            Row(label, "ticks", _keys(f"repeats_{case}", ("expected", "run")), more_is_better=True, drawn=False)
            for case, label in _REPEATS.items()
        ),
        ratios=True,
    ),
    _cost("windows", "ordering window", {"none": "none", "arrival": "arrival", "event_time": "event time"}),
    _cost(
        "rate",
        "rate limit above the load",
        {"none": "none", "rate": "of the queue", "rate_full": "same, list full", "group_rate": "of each group"},
    ),
    _cost("events", "events", {"silent": "off", "events": "on"}, adding=True),
    Grid(
        "one hot group, 1 ms a call",
        ("one by one", "batches of {0.hot_group_batch}"),
        (Row("process", "jobs/s", _keys("hot_group", ("single", "batch")), more_is_better=True),),
        ratios=True,
    ),
    Grid(
        "exclusive queue, two workers",
        ("turns of 1 job", "turns of {0.turn_batch} jobs"),
        (
            Row("process", "jobs/s", _each("exclusive", "rate", _TURNS), more_is_better=True),
            Row("hand-overs", "turns", _each("exclusive", "hand_overs", _TURNS), more_is_better=True, drawn=False),
            *(
                Row(
                    f"hand-over to the other worker, {name}",
                    "ms",
                    _each("exclusive", name, _TURNS),
                    drawn=name == "mean",
                )
                for name in DISTRIBUTION
            ),
        ),
    ),
    Grid(
        "{0.groups:,} large groups, a small one last",
        ("oldest", "round-robin"),
        (
            Row("started before the first of the small group", "jobs", _each("fairness", "before", _FAIRNESS)),
            *(
                Row(f"jobs of a large group so far, {name}", "jobs", _each("fairness", name, _FAIRNESS), drawn=False)
                for name in ("min", "median", "max")
            ),
        ),
    ),
)
