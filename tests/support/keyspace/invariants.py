"""The invariants between the keys of a queue."""

from __future__ import annotations

from collections import Counter

from tests.support.keyspace.contents import Keyspace, StoredGroup

PRIORITY_UNIT = 2**43
LARGE_DATA = 8 * 1024


def violations(k: Keyspace) -> list[str]:
    """A sentence for every broken invariant. Empty for a healthy queue."""
    parts = (
        _jobs,
        _groups,
        _indexes,
        _due,
        _limits,
        _repeats,
        _turn,
        _grants,
        _progress,
        _log,
        _measures,
        _blocks,
        _bodies,
    )
    return [line for part in parts for line in part(k)]


def _due(k: Keyspace) -> list[str]:
    """Nothing is due before the time at which calls look for due work, and no interrupt is missed."""
    found = []
    times = [*k.delayed.values(), *k.parked.values(), *k.active.values(), *k.expiring.values()]
    first = min([*times, *(end for end, _, _ in k.stopping.values())], default=None)
    looks = int(k.meta.get("due", "0"))
    if first is not None and looks > first:
        found.append(f"something is due at {first:.0f}, but no call looks for due work before {looks}")
    if (k.cancels or k.recalls) and k.meta.get("interrupts") != "1":
        found.append("there are interrupts, but the flag of the queue says that there are none")
    return found


def _jobs(k: Keyspace) -> list[str]:
    found = []
    in_groups = Counter(member[16:].decode() for members in k.waiting.values() for member in members)
    places = {group: set(members) for group, members in k.waiting.items()}
    for job_id, stored in k.jobs.items():
        group = stored.group_id or ""
        spots = [name for name in ("leases", "delayed", "completed", "failed") if job_id in getattr(k, name)]
        spots += ["waiting"] * in_groups[job_id]
        if len(spots) != 1:
            found.append(f"job {job_id!r} is in {spots or 'no place'}, not in exactly one")
        if in_groups[job_id] and k.places[job_id] not in places.get(group, ()):
            found.append(f"job {job_id!r} waits with a wrong sort key or in a wrong group")
    for job_id in in_groups:
        if job_id not in k.jobs:
            found.append(f"member {job_id!r} of a group is not a job")
    return found


def _groups(k: Keyspace) -> list[str]:
    found = []
    running = Counter(group for _, group in k.leases.values()) + Counter(group for _, group, _ in k.stopping.values())
    delayed = Counter(k.jobs[i].group_id or "" for i in k.delayed if i in k.jobs)
    alive = {g for g, members in k.waiting.items() if members} | set(running) | set(delayed)
    if alive != set(k.groups):
        found.append(f"groups with live jobs {sorted(alive)} are not the listed ones {sorted(k.groups)}")
    for name, g in k.groups.items():
        if (g.running, g.delayed) != (running[name], delayed[name]):
            found.append(
                f"group {name!r} says {g.running} running, {g.delayed} delayed; "
                f"there are {running[name]} and {delayed[name]}"
            )
        if g.head != (k.waiting.get(name) or [b""])[0]:
            found.append(f"group {name!r} says its head is {g.head!r}, its zset says otherwise")
        if g.alone and (not name or len(k.waiting.get(name, ())) > 1):
            found.append(f"group {name!r} says that its head is alone, but it has more members")
        if not g.snoozed <= set(g.holds):
            found.append(f"group {name!r} says that {set(g.snoozed)} are snoozed, but it holds {set(g.holds)}")
        for held in g.holds:
            if held not in k.waiting_ids(name):
                found.append(f"group {name!r} holds {held!r}, which does not wait in it")
        found += _place(k, name, g)
    for name in [*k.ready, *k.parked]:
        if name not in k.groups:
            found.append(f"{name!r} is in ready or parked but has no live job")
    return found


def _entry(k: Keyspace, name: str) -> tuple[str, float | None]:
    """The sorted set that a group is in, and its score; the score is None if it is in neither."""
    return ("ready", k.ready[name]) if name in k.ready else ("parked", k.parked.get(name))


def _place(k: Keyspace, name: str, g: StoredGroup) -> list[str]:
    """A group is in the one sorted set that follows from its contents, or in none."""
    members = k.waiting.get(name, [])
    actual = _entry(k, name)
    if name in k.ready and name in k.parked:
        return [f"group {name!r} is both ready and parked"]
    stopped = k.conf.get(name, {}).get("paused") or name in k.blocked
    probed = k.opened(name) and g.running > 0
    free = not members or stopped or probed or g.running >= k.limit(name)
    if free:
        return [] if actual[1] is None else [f"group {name!r} is {actual} but has nothing it may start"]
    opens = _opens(k, name, g, members[0])
    if opens > k.now:
        return [] if actual == ("parked", opens) else [f"group {name!r} is {actual}, its head must wait until {opens}"]
    due_but_parked = actual[0] == "parked" and actual[1] is not None and actual[1] <= k.now
    if due_but_parked or (
        actual[0] == "ready" and actual[1] is not None and _right_score(k, name, members[0], actual[1])
    ):
        return []
    return [f"group {name!r} is {actual}, though its head may start"]


def _opens(k: Keyspace, name: str, g: StoredGroup, head: bytes) -> float:
    """When the head of a group may start."""
    times = [g.holds.get(head[16:].decode(), 0), g.rest, g.till, k.opened(name)]
    if name and "event_window" in k.rules:
        times.append(min(2**63 - 1 - int.from_bytes(head[2:10], "big") + k.rules["event_window"], 2**53))
    rate, starts = k.rate(name), k.group_starts.get(name, [])
    if rate and len(starts) >= rate[0] and 0 <= k.now - starts[rate[0] - 1] <= rate[1]:
        times.append(starts[rate[0] - 1] + rate[1] + 1)
    return float(max(times))


def _right_score(k: Keyspace, name: str, head: bytes, score: float) -> bool:
    """Whether a ready group has the score that follows from its head and the queue's fairness."""
    priority, arrival = 65535 - int.from_bytes(head[:2], "big"), 2**48 - 1 - int.from_bytes(head[10:16], "big")
    if "ageing" in k.rules:
        job = k.jobs[head[16:].decode()]
        since = job.created_ms if job.order_given else job.order_ms
        aged = since - 1_577_836_800_000 + job.priority * k.rules["ageing"]
        return bool(score == aged * 4096 + arrival % 4096)
    if "round_robin" in k.rules and name:
        return score // PRIORITY_UNIT == priority and 0 < score % PRIORITY_UNIT <= int(k.meta["seq"])
    return score == priority * PRIORITY_UNIT + arrival


def _indexes(k: Keyspace) -> list[str]:
    found = [f"unknown key {name!r}" for name in k.strangers]
    if set(k.active) != set(k.leases):
        found.append(f"deadlines of {sorted(k.active)} but leases of {sorted(k.leases)}")
    for name in ("state", "history", "leases", "delayed", "completed", "failed"):
        gone = set(getattr(k, name)) - set(k.jobs)
        if gone:
            found.append(f"{name} has entries of jobs that do not exist: {sorted(gone)}")
    if not set(k.results) <= set(k.completed):
        found.append(f"results of jobs that are not completed: {sorted(set(k.results) - set(k.completed))}")
    if (k.meta.get("overrides") == "1") != bool(k.conf):
        found.append(f"overrides is {k.meta.get('overrides')!r} with {len(k.conf)} groups configured")
    if k.holders and k.meta.get("held") != "1":
        found.append(f"{sorted(k.holders)} have taken a reserve, but the flag for that is not set")
    fences = [fence for fence, _ in k.leases.values()]
    if len(set(fences)) != len(fences) or any(t > int(k.meta.get("stamp", "0")) for t in fences):
        found.append("fences are not unique, or are larger than the last one granted")
    return found


def _limits(k: Keyspace) -> list[str]:
    found = []
    waiting = {member[16:].decode() for members in k.waiting.values() for member in members}
    for job_id in k.expiring:
        if job_id not in waiting and job_id not in k.delayed:
            found.append(f"the ttl of job {job_id!r} is still tracked, though it is not waiting to start")
    if k.expiring and k.meta.get("ttls") != "1":
        found.append("jobs have a ttl, but the flag for that is not set")
    if set(k.group_starts) != set(k.rated):
        found.append(f"starts of groups {sorted(k.group_starts)} are kept, but {sorted(k.rated)} are listed")
    if set(k.breakers) != set(k.breaking):
        found.append(f"failures of groups {sorted(k.breakers)} are counted, but only those of {sorted(k.breaking)} end")
    if set(k.opened_since) != {group for group, (_, till) in k.breakers.items() if till}:
        found.append(f"the breakers are {k.breakers}, but {sorted(k.opened_since)} are listed as open")
    if k.breakers and k.meta.get("breakers") != "1":
        found.append("failures of groups are counted, but the flag for that is not set")
    if any(k.breaking.get(group, 0) < till for group, (_, till) in k.breakers.items()):
        found.append("failures of a group are forgotten while it rests")
    for job_id, (_, ends, _) in k.unique.items():
        lives = job_id in k.jobs and job_id not in k.completed and job_id not in k.failed
        if lives != (ends == 0):
            found.append(f"id {job_id!r} is taken until {ends}; its job is live: {lives}")
    ended = {job_id: ends for job_id, (_, ends, _) in k.unique.items() if ends}
    kept = {
        job_id for job_id, ends in ended.items() if job_id in k.failed and ends <= k.now and job_id not in k.uniques
    }
    if k.uniques != {job_id: ends for job_id, ends in ended.items() if job_id not in kept}:
        found.append(f"ids {k.unique} are taken, but the index of their times has {k.uniques}")
    if k.unique and k.meta.get("uniques") != "1":
        found.append("ids stay taken, but the flag for that is not set")
    if set(k.dedupe) != set(k.deduped):
        found.append("the keys of dedupe differ from those of the index of their times")
    size = k.rules.get("rate", [0])[0]
    if len(k.starts) > size:
        found.append(f"{len(k.starts)} starts are kept, but only {size} are needed")
    return found


def _repeats(k: Keyspace) -> list[str]:
    found = []
    if {name: float(d["next"]) for name, d in k.repeats.items()} != k.ticks:
        found.append(f"the next ticks of repeating jobs {sorted(k.repeats)} differ from the index: {k.ticks}")
    first = min(k.ticks.values(), default=None)
    if (None if first is None else str(int(first))) != k.meta.get("repeat_at"):
        found.append(f"the next tick is {first}, but meta says {k.meta.get('repeat_at')}")
    return found


def _turn(k: Keyspace) -> list[str]:
    """In an exclusive queue the worker with the turn has all leases, and no other worker has any."""
    found = []
    holders = set(k.lease_workers.values()) | {worker for _, _, worker in k.stopping.values()}
    if "exclusive" in k.rules and holders != ({k.turn[0]} if k.turn else set()):
        found.append(f"leases of {sorted(holders)} in a turn of {k.turn}")
    if "exclusive" not in k.rules and k.turn:
        found.append(f"a turn of {k.turn} in a queue that is not exclusive")
    if k.turn and any(deadline > k.turn[2] for deadline in k.active.values()):
        found.append("a lease outlives the turn it was granted in")
    if set(k.turn_markers) - ({k.turn[0]} if k.turn else set()):
        found.append(f"markers of {k.turn_markers}, which do not have the turn")
    if set(k.mails) - set(k.workers):
        found.append(f"mail for {k.mails}, but the registered workers are {k.workers}")
    return found


def _grants(k: Keyspace) -> list[str]:
    """A granted job has a lease of its worker, and no other job is on its way to a worker."""
    found = []
    if k.grant is not None:
        worker, job_id, fence = k.grant
        if k.leases.get(job_id, (0, ""))[0] != fence or k.lease_workers.get(job_id) != worker:
            found.append(f"job {job_id!r} is granted to {worker} under fence {fence}, without such a lease")
    for worker, fences in k.grants.items():
        if k.grant is None or (k.grant[0], [k.grant[2]]) != (worker, fences):
            found.append(f"jobs under fences {fences} wait for {worker}, but {k.grant} is granted")
    return found


def _progress(k: Keyspace) -> list[str]:
    """Progress and logs exist only as long as their jobs, and only leased jobs are cancelled or recalled."""
    found = []
    for name in ("progress", "logs"):
        gone = set(getattr(k, name)) - set(k.jobs)
        if gone:
            found.append(f"{name} of jobs that do not exist: {sorted(gone)}")
    if (k.progress or k.logs) and k.meta.get("progress") != "1":
        found.append("there is progress or a log, but the flag for that is not set")
    found += [f"job {i!r} has {len(lines)} lines of log" for i, lines in k.logs.items() if not 1 <= len(lines) <= 100]
    for job_id, fence in (k.cancels | k.recalls).items():
        if k.leases.get(job_id, (0, ""))[0] != fence:
            found.append(f"job {job_id!r} has an interrupt under fence {fence}; its lease is {k.leases.get(job_id)}")
        if job_id in k.recalls and job_id not in k.ahead | k.granted:
            found.append(f"job {job_id!r} is recalled, but is known to have begun")
        if job_id in k.cancels and job_id in k.ahead:
            found.append(f"job {job_id!r} is cancelled, but may not have begun")
    if any(end < 0 or not worker for end, _, worker in k.stopping.values()):
        found.append(f"entries of runs that are being stopped are incomplete: {k.stopping}")
    first = min((end for end, _, _ in k.stopping.values()), default=None)
    if (None if first is None else str(int(first))) != k.meta.get("stopping"):
        found.append(f"the first run being stopped ends at {first}, but meta says {k.meta.get('stopping')}")
    return found


def _blocks(k: Keyspace) -> list[str]:
    """A group is blocked as long as one of its failed jobs blocks it, and all indexes agree on these jobs."""
    found = []
    for job_id, (group, since) in k.blockers.items():
        if job_id not in k.failed or job_id not in k.jobs or k.jobs[job_id].group_id != group or not group:
            found.append(f"job {job_id!r} blocks group {group!r}, but is not a failed job of it")
        if k.blocked.get(group, since + 1) > since:
            found.append(f"job {job_id!r} blocks group {group!r} since {since}; the group has {k.blocked.get(group)}")
    if sorted((group, job_id, since) for job_id, (group, since) in k.blockers.items()) != sorted(k.blocking):
        found.append(f"the blocking jobs {k.blockers} differ from the index by group: {k.blocking}")
    if set(k.blocked) != {group for group, _ in k.blockers.values()}:
        found.append(f"groups {sorted(k.blocked)} are blocked, but the blocking jobs are {k.blockers}")
    if bool(k.blocked) != (k.meta.get("blocks") == "1"):
        found.append(f"groups {sorted(k.blocked)} are blocked, but the flag for that is {k.meta.get('blocks')!r}")
    spared = float(k.meta.get("spared", "0"))
    free = [job_id for job_id, stamp in k.failed.items() if stamp <= spared and job_id not in k.blockers]
    if free:
        found.append(f"failed jobs {free} block nothing, but retention never deletes them")
    return found


def _log(k: Keyspace) -> list[str]:
    """The entries of the event log are numbered without a gap, and the marks are the beginnings of its segments."""
    found = []
    if "silent" in k.rules and (k.entries or k.marks):
        found.append(f"{len(k.entries)} events of a queue that publishes none")
    numbers, logged = list(k.entries.values()), int(k.meta.get("logged", "0"))
    if numbers != list(range(logged - len(numbers) + 1, logged + 1)):
        found.append(f"the log has entries {numbers[:3]} ... {numbers[-3:]}, but {logged} were written")
    if k.marks != [mark for mark in k.entries if mark in set(k.marks)] or len(k.marks) > 8:
        found.append(f"marks {k.marks} are not ids of entries in ascending order")
    if not 0 <= int(k.meta.get("log_bytes", "0")) < 524_288:
        found.append(f"the log has a segment of {k.meta['log_bytes']} bytes")
    return found


def _measures(k: Keyspace) -> list[str]:
    """Until the first minute is dropped, the minutes add up to the counters and to the histograms."""
    if len(k.minutes) > 20_160 + 840:
        return [f"{len(k.minutes)} minutes are kept"]
    if k.minutes and max(k.minutes) - min(k.minutes) >= 20_160:
        return []
    sums = [sum(column) for column in zip(*k.minutes.values(), strict=True)] or [0] * 8
    counters = [int(k.meta.get(name, "0")) for name in ("completed", "failed", "retried", "stalled", "rate_limited")]
    found = []
    if sums[:5] != counters:
        found.append(f"minutes add up to {sums[:5]}, but the counters are {counters}")
    if sums[5:7] != [sum(k.wait[1:]), sum(k.wait[:1])]:
        found.append(f"minutes have {sums[5:7]} jobs and ms of waiting, but the histogram is {k.wait}")
    if sums[7:] != [sum(k.run[:1])]:
        found.append(f"minutes have {sums[7]} ms of running, but the histogram is {k.run}")
    return found + _spreads(k)


def _spreads(k: Keyspace) -> list[str]:
    """Each minute has the distribution of the waits and runs of its jobs; together they are the histograms."""
    found, noted, so_far = [], [0] * 50, [*k.wait[1:], *k.run[1:]]
    for minute, spread in k.spreads.items():
        waited = sum(n for place, n in spread.items() if place < 25)
        if waited != k.minutes[minute][5]:
            found.append(f"minute {minute}: {k.minutes[minute][5]} jobs started, but {waited} waits were counted")
        for place, n in spread.items():
            if place < 50:
                noted[place] += n
    if noted != so_far:
        found.append(f"minutes add up to {noted}, but the histograms are {so_far}")
    return found


def _bodies(k: Keyspace) -> list[str]:
    """Data is stored beside its record if it is large, and only then."""
    found = []
    if k.beside != set(k.bodies):
        found.append(f"records of {sorted(k.beside)} have their data elsewhere; there is data of {sorted(k.bodies)}")
    for job_id, stored in k.jobs.items():
        if (len(stored.data) > LARGE_DATA) != (job_id in k.bodies):
            found.append(f"{len(stored.data)} bytes of data of job {job_id!r} are stored in the wrong key")
    if k.repeat_bodies != {name for name, definition in k.repeats.items() if "data" in definition}:
        found.append(f"there is data of repeating jobs {sorted(k.repeat_bodies)}, but their definitions differ")
    if (k.bodies or k.repeat_bodies) and k.meta.get("large") != "1":
        found.append("there is data of large jobs, but the flag for that is not set")
    return found
