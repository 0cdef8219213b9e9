"""What `groupmq check` looks at: pure judgements over what the server and the queue say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groupmq.cli.tables import number, span
from groupmq.views import JobCounts

OK, WARN, FAIL = "ok", "warn", "fail"
OLDEST = {"Valkey": (7, 2), "Redis": (7, 0)}
MOST_SKEW = 1.0
NEARLY_FULL, FULL = 0.8, 0.95

Info = Mapping[str, str]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    status: str
    detail: str
    hint: str = ""


def version(info: Info) -> Finding:
    kind = "Valkey" if "valkey_version" in info else "Redis"
    found = info.get("valkey_version") or info.get("redis_version", "unknown")
    oldest = OLDEST[kind]
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if numbers < oldest:
        return Finding("version", FAIL, f"{kind} {found}", f"groupmq needs {kind} {oldest[0]}.{oldest[1]} or newer")
    return Finding("version", OK, f"{kind} {found}")


def role(info: Info) -> Finding:
    if info.get("role") == "slave":
        return Finding("role", FAIL, "a replica, read-only", "give the URL of its primary")
    return Finding("role", OK, "primary")


def persistence(info: Info, save: str | None) -> Finding:
    """What a restart of the server would leave."""
    if info.get("aof_last_write_status", "ok") != "ok" or info.get("rdb_last_bgsave_status", "ok") != "ok":
        return Finding("persistence", FAIL, "the last write to disk failed", "see the server's log; is the disk full?")
    if info.get("aof_enabled") == "1":
        return Finding("persistence", OK, "append-only file")
    if save:
        hint = "set appendonly yes: a crash loses everything since the last snapshot"
        return Finding("persistence", WARN, f"snapshots only (save {save})", hint)
    if save is None:
        return Finding("persistence", WARN, "no append-only file", "set appendonly yes, unless jobs may be lost")
    return Finding("persistence", WARN, "none", "set appendonly yes: a restart of the server loses every job")


def eviction(info: Info) -> Finding:
    policy = info.get("maxmemory_policy", "unknown")
    if policy != "noeviction":
        hint = "set maxmemory-policy noeviction: the server may delete parts of a queue when memory is short"
        return Finding("eviction", WARN, policy, hint)
    return Finding("eviction", OK, policy)


def memory(info: Info) -> Finding:
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    of = "maxmemory"
    if limit == 0:
        limit, of = int(info.get("total_system_memory", 0)), "the machine's memory"
    if limit == 0:
        return Finding("memory", OK, f"{_bytes(used)} used")
    share = used / limit
    detail = f"{_bytes(used)} used, {share:.0%} of {of} ({_bytes(limit)})"
    if share >= NEARLY_FULL:
        hint = "adds will be refused when it is full: raise maxmemory, keep fewer jobs, or add workers"
        return Finding("memory", FAIL if share >= FULL else WARN, detail, hint)
    return Finding("memory", OK, detail)


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def clock(skew: float) -> Finding:
    """How far the server's clock is from ours; all of a queue's times are the server's."""
    if abs(skew) > MOST_SKEW:
        side = "ahead of" if skew > 0 else "behind"
        hint = "synchronise the clocks: a run_at is a time of this machine, the server starts the job by its own"
        return Finding("clock", WARN, f"{span(abs(skew))} {side} this machine", hint)
    return Finding("clock", OK, f"within {span(MOST_SKEW)} of this machine")


def workers(alive: int, counts: JobCounts, *, paused: bool) -> Finding:
    undone = counts.waiting + counts.active + counts.delayed
    if alive:
        return Finding("workers", OK, f"{number(alive, 'worker')} alive")
    if counts.waiting and not paused:
        hint = "start one: groupmq worker MODULE:HANDLER --queue NAME"
        return Finding("workers", FAIL, f"none alive, {number(counts.waiting, 'job')} waiting", hint)
    if undone:
        return Finding("workers", WARN, f"none alive, {number(undone, 'job')} to come")
    return Finding("workers", WARN, "none alive, nothing to do")


def paused_queue(*, paused: bool) -> Finding:
    if paused:
        return Finding("paused", WARN, "yes, nothing starts", "groupmq queue resume")
    return Finding("paused", OK, "no")


def oldest(age: float | None, most: float, *, sampled: bool) -> Finding:
    """`sampled`: more jobs wait than were looked at."""
    name = "oldest waiting"
    if age is None:
        return Finding(name, OK, "nothing waits")
    detail = span(age) + (" (of those looked at)" if sampled else "")
    if age > most:
        return Finding(name, FAIL, f"{detail}, more than {span(most)}", "add workers, or look what holds its group")
    return Finding(name, OK, detail)
