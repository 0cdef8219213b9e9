"""The findings of `Queue.check` and `groupmq check`: pure decisions about the answers of server and queue."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from groupmq.core.server_views import Finding
from groupmq.core.setting_words import spelled
from groupmq.core.settings import QueueSettings
from groupmq.core.views import GroupInfo, HeldGroup, JobCounts
from groupmq.core.wording import number, span

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
OLDEST = {"Valkey": (7, 2), "Redis": (7, 0)}
MOST_SKEW = 1.0
NEARLY_FULL, FULL = 0.8, 0.95

Info = Mapping[str, str]


def kind(info: Info) -> str:
    return "Valkey" if "valkey_version" in info else "Redis"


def version_number(info: Info) -> str:
    return info.get("valkey_version") or info.get("redis_version", "unknown")


def version(info: Info) -> Finding:
    server, found = kind(info), version_number(info)
    oldest = OLDEST[server]
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if numbers < oldest:
        return Finding("version", FAIL, f"{server} {found}", f"groupmq needs {server} {oldest[0]}.{oldest[1]} or newer")
    return Finding("version", OK, f"{server} {found}")


def role(info: Info) -> Finding:
    if info.get("role") == "slave":
        return Finding("role", FAIL, "a replica, read-only", "give the URL of its primary")
    return Finding("role", OK, "primary")


def persistence(info: Info, save: str | None) -> Finding:
    """Whether the jobs survive a restart of the server."""
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


def coverage(required: str) -> Finding:
    """For a queue on several primaries. `required`: the server's value of `cluster-require-full-coverage`."""
    if required == "no":
        return Finding("coverage", OK, "a primary that is down does not stop the others")
    hint = "set cluster-require-full-coverage no: while a primary is down, the others refuse calls too"
    return Finding("coverage", WARN, "a primary that is down stops the whole cluster", hint)


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
        hint = "synchronise the clocks: run_at is set by this machine's clock, but jobs start by the server's"
        return Finding("clock", WARN, f"{span(abs(skew))} {side} this machine", hint)
    return Finding("clock", OK, f"within {span(MOST_SKEW)} of this machine")


def no_queue(name: str) -> Finding:
    return Finding("queue", FAIL, f"{name!r} does not exist", "adding a job or starting a worker creates it")


def queue(name: str, counts: JobCounts) -> Finding:
    live = ", ".join(f"{getattr(counts, state):,} {state}" for state in ("active", "waiting", "delayed", "failed"))
    return Finding("queue", OK, f"{name}: {live}")


def settings(stored: QueueSettings) -> Finding:
    """The stored settings that are not at their defaults."""
    own = [f"{name} {spelled(name, value)}" for name, value in stored.options().items()]
    if stored.unknown:
        hint = "a newer release has stored them: update groupmq here"
        return Finding("settings", WARN, f"unknown to this release: {', '.join(sorted(stored.unknown))}", hint)
    return Finding("settings", OK, ", ".join(own) or "all at their defaults")


def workers(alive: int, counts: JobCounts, *, paused: bool) -> Finding:
    undone = counts.waiting + counts.active + counts.delayed
    if alive:
        return Finding("workers", OK, f"{number(alive, 'worker')} alive")
    if counts.waiting and not paused:
        hint = "start one: groupmq worker MODULE:HANDLER --queue NAME"
        return Finding("workers", FAIL, f"none alive, {number(counts.waiting, 'job')} waiting", hint)
    if undone:
        return Finding("workers", WARN, f"none alive, {number(undone, 'unfinished job')}")
    return Finding("workers", WARN, "none alive, nothing to do")


def paused_queue(*, paused: bool) -> Finding:
    if paused:
        return Finding("paused", WARN, "yes, nothing starts", "groupmq queue resume")
    return Finding("paused", OK, "no")


def oldest(age: float | None, most: float) -> Finding:
    """The longest wait of a job that could start now."""
    name = "oldest waiting"
    if age is None:
        return Finding(name, OK, "no job that could start is waiting")
    if age > most:
        return Finding(
            name, FAIL, f"{span(age)}, more than {span(most)}", "add workers: the job only needs a free slot"
        )
    return Finding(name, OK, span(age))


def held(queue: str, group: HeldGroup | None, most: float) -> Finding:
    """The group whose first job has waited longest, among those held but not paused."""
    name = "longest held"
    if group is None:
        return Finding(name, OK, "no group with waiting jobs is held")
    detail = _described(group)
    if group.wait <= most:
        return Finding(name, OK, detail)
    if group.reason == "blocked":
        return Finding(name, FAIL, detail, _decide(queue, group.job_id or ""))
    hint = (
        "if it hangs: groupmq job fail ID, or job remove ID" if group.job_id else "see groupmq queue groups --group ID"
    )
    return Finding(name, FAIL, f"{detail} (more than {span(most)})", hint)


def paused_group(queue: str, group: HeldGroup, most: float) -> Finding:
    """The paused group whose first job has waited longer than that of any group that is held by something else."""
    resume = shlex.join(["groupmq", "queue", "resume", "--queue", queue, "--group", group.group_id])
    if group.wait <= most:
        return Finding("longest paused", OK, _described(group))
    return Finding("longest paused", WARN, _described(group), resume)


def _described(group: HeldGroup) -> str:
    found = f"group {group.group_id!r}, {number(group.waiting, 'job')} waiting, the first for {span(group.wait)}"
    return f"{found}: {group.explanation}"


def blocked(queue: str, groups: int, first: GroupInfo | None, longest: float | None, most: float) -> Finding:
    """Groups that wait for a person to decide about a failed job; `first`: the one that was blocked first."""
    name = "blocked groups"
    if not groups or first is None:
        return Finding(name, OK, "no group is blocked by a failed job")
    since, job_id = longest or 0.0, first.blocked_by
    detail = f"{number(groups, 'group')}; {first.id!r} for {span(since)}, by job {job_id!r}"
    return Finding(name, FAIL if since > most else WARN, detail, _decide(queue, job_id or ""))


def breakers(groups: int, first: GroupInfo | None, longest: float | None) -> Finding:
    """Groups that rest because their attempts fail in a row; `first`: the one whose breaker opened first."""
    name = "open breakers"
    if not groups or first is None:
        return Finding(name, OK, "none")
    failed = number(first.failures, "failed attempt")
    detail = f"{number(groups, 'group')}; {first.id!r} for {span(longest or 0.0)}, {failed} in a row"
    return Finding(name, WARN, detail, "groupmq queue groups --breakers lists them; queue failures says why they fail")


def _decide(queue: str, job_id: str) -> str:
    """The commands that end a block, as they can be typed."""
    named = shlex.join(["--queue", queue, job_id])
    return f"groupmq job retry {named}, or give it up: groupmq job skip {named}"


def retention(dropped: int) -> Finding:
    """Whether failed jobs were removed before a person could look at them or retry them."""
    if dropped:
        hint = "raise keep_failed (groupmq queue settings --set keep_failed=...): a dropped job cannot be retried"
        return Finding("retention", WARN, f"{number(dropped, 'failed job')} dropped in the last hour", hint)
    return Finding("retention", OK, "no failed job dropped in the last hour")
