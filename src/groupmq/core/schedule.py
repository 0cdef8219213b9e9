"""When a repeating job ticks: `Every` on a fixed grid, `Cron` in a time zone. Pure: it reads no clock."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from groupmq.core.checks import flag, one_of, text, whole
from groupmq.core.durations import Duration, Instant, epoch_millis, seconds
from groupmq.core.errors import ConfigurationError

CatchUp = Literal["one", "all", "none"]
Overlap = Literal["allow", "skip"]
GRACE_MS = 2000
"""A tick that a running scheduler sees up to this late is late, not missed."""
MOST_TICKS = 1000
"""The most occurrences of one repeat that a single call adds."""
_LONGEST_CHANGE = timedelta(hours=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeat(ABC):
    key: str | None = None
    """Its name within the group; by default the schedule in words. A repeat of the same name updates it."""
    start: Instant | None = None
    end: Instant | None = None
    limit: int | None = None
    immediately: bool = False
    """Add an occurrence when the repeat is defined, before the first tick."""
    catch_up: CatchUp = "one"
    """What to do about missed ticks: add one job for all of them, one for each, or none."""

    overlap: Overlap = "allow"
    """With "skip", no new occurrence is added while the one before it is live. Its tick is counted as skipped, and
    counts against `limit`."""

    def __post_init__(self) -> None:
        if self.key is not None:
            text(self.key, "repeat.key")
        start, end = self._millis("start"), self._millis("end")
        if start is not None and end is not None and end < start:
            raise ConfigurationError.expected("repeat.end", "an instant after start", self.end)
        if self.limit is not None:
            whole(self.limit, "repeat.limit", 1, 2**53)
        flag(self.immediately, "repeat.immediately")
        one_of(self.catch_up, "repeat.catch_up", "one", "all", "none")
        one_of(self.overlap, "repeat.overlap", "allow", "skip")

    def _millis(self, name: str) -> int | None:
        value = getattr(self, name)
        return None if value is None else epoch_millis(value, f"repeat.{name}")

    @property
    def name(self) -> str:
        """The name that distinguishes it from the other repeats of its group."""
        return self.key if self.key is not None else self.describe()

    @abstractmethod
    def describe(self) -> str:
        """The schedule in words, the same for the same schedule."""

    @abstractmethod
    def timing(self) -> dict[str, Any]:
        """The fields that decide when it ticks. While they stay the same, a new definition keeps its grid."""

    def plan(self, now: int, before: dict[str, Any] | None) -> dict[str, Any]:
        """The repeat as it is stored. With the same timing as before it stays on the same grid."""
        timing = self._timing()
        rest = {"end": self._millis("end"), "limit": self.limit, "catch_up": self.catch_up, "says": self.describe()}
        if before is not None and self.keeps_grid(before):
            anchor = before["anchor"]
        else:
            anchor = now if timing["start"] is None else timing["start"]
        return timing | rest | {"anchor": anchor}

    def next_runs(self, after: Instant, n: int = 3) -> list[datetime]:
        """The next `n` ticks after an instant; fewer if it ends before. `Every` without a start counts from `after`."""
        instant = epoch_millis(after, "after")
        plan = self.plan(instant, None)
        found: list[datetime] = []
        while len(found) < n and (tick := tick_after(plan, instant)) is not None:
            found.append(datetime.fromtimestamp(tick / 1000, UTC))
            instant = tick
        return found

    def keeps_grid(self, before: dict[str, Any]) -> bool:
        """Whether it ticks at the same times as a plan that was stored before."""
        timing = self._timing()
        return all(before.get(name) == value for name, value in timing.items())

    def _timing(self) -> dict[str, Any]:
        return self.timing() | {"start": self._millis("start")}


@dataclass(frozen=True, slots=True)
class Every(_Repeat):
    """Tick every `interval` seconds on a fixed grid, from `start` or from the definition on. It does not drift.

    >>> Every(5).describe()
    'every 5 s'
    """

    interval: Duration = field(kw_only=False)

    def __post_init__(self) -> None:
        # No zero-argument super() in a slotted dataclass: it would look in the class from before its slots.
        _Repeat.__post_init__(self)
        seconds(self.interval, "Every.interval", minimum=0.001)

    @property
    def micros(self) -> int:
        return round(seconds(self.interval, "Every.interval") * 1_000_000)

    def describe(self) -> str:
        return f"every {self.micros / 1_000_000:.15g} s"

    def timing(self) -> dict[str, Any]:
        return {"every": self.micros}


@dataclass(frozen=True, slots=True)
class Cron(_Repeat):
    """Tick when a cron pattern matches, in a time zone (UTC by default): 5 fields, or 6 with seconds in front.

    A tick that falls into the gap of a clock change comes at the gap's end; one in the hour that happens twice comes
    once, the first time. Patterns with a `*` for the minute or hour follow real time: they tick in both hours.

    >>> Cron("0 9 * * 1-5", tz="Europe/Stockholm").describe()
    'cron 0 9 * * 1-5 (Europe/Stockholm)'
    """

    pattern: str = field(kw_only=False)
    tz: str = "UTC"

    def __post_init__(self) -> None:
        _Repeat.__post_init__(self)
        text(self.pattern, "Cron.pattern")
        zone(self.tz)
        if next(_cron_ticks(self.pattern, self.tz, 0), None) is None:
            raise ConfigurationError.expected("Cron.pattern", "a pattern that matches some future time", self.pattern)

    def describe(self) -> str:
        return f"cron {' '.join(self.pattern.split())} ({self.tz})"

    def timing(self) -> dict[str, Any]:
        return {"cron": " ".join(self.pattern.split()), "tz": self.tz}


Repeat = Every | Cron


def checked(value: object, argument: str = "repeat") -> Repeat:
    if isinstance(value, Every | Cron):
        return value
    raise ConfigurationError.expected(argument, "Every(seconds) or Cron(pattern, tz=...)", value)


def zone(name: object) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(str(name) if isinstance(name, str) and name else "?")
    except (LookupError, ValueError, OSError):
        expected = "a time zone of the tz database, such as 'Europe/Stockholm'"
        raise ConfigurationError.expected("Cron.tz", expected, name) from None


# Ticks, in epoch milliseconds. A plan is a result of `Repeat.plan`, read back from the server.


def tick_after(plan: dict[str, Any], instant: int) -> int | None:
    """The first tick after `instant`; None if the repeat has ended."""
    start = plan["start"]
    if start is not None and instant < start:
        instant = start - 1
    tick: int | None
    if "every" in plan:
        tick = _grid(plan, (instant - plan["anchor"]) * 1000 // plan["every"], 1, lambda tick: tick > instant)
    else:
        tick = next(_cron_ticks(plan["cron"], plan["tz"], instant), None)
    return None if tick is None or (plan["end"] is not None and tick > plan["end"]) else tick


def last_tick(plan: dict[str, Any], instant: int) -> int:
    """The last tick at or before `instant`, which must not be before the first tick."""
    if plan["end"] is not None:
        instant = min(instant, plan["end"])
    if "every" in plan:
        k = math.ceil((instant + 1 - plan["anchor"]) * 1000 / plan["every"]) + 1
        return _grid(plan, k, -1, lambda tick: tick <= instant)
    return next(_cron_ticks(plan["cron"], plan["tz"], instant, back=True))


def _grid(plan: dict[str, Any], k: int, step: int, fits: Any) -> int:
    while True:
        tick: int = plan["anchor"] + k * plan["every"] // 1000
        if k >= 0 and fits(tick):
            return tick
        k += step if k >= 0 else 1


def _between(plan: dict[str, Any], after: int, until: int) -> Iterator[int]:
    tick = tick_after(plan, after)
    while tick is not None and tick <= until:
        yield tick
        tick = tick_after(plan, tick)


def _cron_ticks(pattern: str, tz: str, instant: int, *, back: bool = False) -> Iterator[int]:
    """Ticks after `instant`; with `back` those at or before it, the last one first."""
    timezone = zone(tz)
    fields = pattern.split()
    at_times = len(fields) in (5, 6) and not any(one.startswith("*") for one in fields[-5:-3])
    # Floor division, so that an instant before 1970 rounds down as well.
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant // 1000)
    if back:
        # On a wall clock that was put back, a tick that has passed may lie ahead.
        moment += _LONGEST_CHANGE if at_times else timedelta(seconds=1)
    local = moment.astimezone(timezone)
    try:
        # Fixed times are counted on the wall clock, and placed in the zone after that; others in real time.
        walk = CronSim(pattern, local.replace(tzinfo=None) if at_times else local, reverse=back)
    except CronSimError as error:
        raise ConfigurationError.expected("Cron.pattern", f"a cron pattern ({error})", pattern) from None
    last = instant
    for found in walk:
        tick = int((_placed(found, timezone) if at_times else found).timestamp()) * 1000
        if tick <= instant if back else tick > last:
            yield tick
            last = tick


def _placed(wall: datetime, timezone: tzinfo) -> datetime:
    """A wall-clock time in its zone: the first of two, and the end of the gap for one that does not exist."""
    while True:
        tick = wall.replace(tzinfo=timezone, fold=0)
        if tick.astimezone(UTC).astimezone(timezone).replace(tzinfo=None) == wall:
            return tick
        wall = wall.replace(second=0) + timedelta(minutes=1)


class Ticks(NamedTuple):
    """The decision about a repeat that is due."""

    run: list[int]
    next: int
    """The tick that is expected next; 0 = there is none."""


def due_ticks(plan: dict[str, Any], expected: int, count: int, now: int, *, watched: bool) -> Ticks:
    """The occurrences to add at `now`. `expected` is the stored next tick; `count` occurrences were added before.

    `watched`: a scheduler was running before the tick. Each tick that it sees at most GRACE_MS late is run. Without a
    scheduler, or later than that, ticks count as missed and `catch_up` decides.
    """
    if plan["catch_up"] == "all" or (watched and now - expected <= GRACE_MS):
        run = list(islice(_between(plan, expected - 1, now), MOST_TICKS))
        done = run[-1]
    else:
        done = last_tick(plan, now)
        run = [done] if plan["catch_up"] == "one" else []
    left = None if plan["limit"] is None else plan["limit"] - count
    if left is not None and len(run) >= left:
        return Ticks(run[:left], 0)
    return Ticks(run, tick_after(plan, done) or 0)
