"""Classic defects of job queues as patches of the Lua files. The state machine must catch each of them.

A patch that no longer applies fails its test. Rewrite it for the new text, so that the defect is still caught.
"""

from __future__ import annotations

from tests.model.mutant import Mutant
from tests.model.mutants_of_answers import ANSWERS
from tests.model.mutants_of_batches import BATCHES
from tests.model.mutants_of_blocking import BLOCKING
from tests.model.mutants_of_bodies import BODIES
from tests.model.mutants_of_breaking import BREAKING
from tests.model.mutants_of_browsing import BROWSING
from tests.model.mutants_of_calls import CALLS
from tests.model.mutants_of_entries import ENTRIES
from tests.model.mutants_of_grants import GRANTS
from tests.model.mutants_of_members import MEMBERS
from tests.model.mutants_of_partitions import PARTITIONS
from tests.model.mutants_of_reporting import REPORTING
from tests.model.mutants_of_reserves import RESERVES
from tests.model.mutants_of_rows import ROWS
from tests.model.mutants_of_settings import SETTINGS
from tests.model.mutants_of_waits import WAITS

MUTANTS = [
    # Fencing
    Mutant("completion without a look at the fence", "if fence and fence == fences[i] then", "if fence then"),
    Mutant("retry and failure without a look at the fence", "if not (l and l.fence == o[FENCE]) then", "if not l then"),
    Mutant("heartbeat without a look at the fence", " and l.fence == A.held[2 * i]", ""),
    Mutant(
        "two reports of one run count",
        "not lease.is_over(id) and (call.begun and call.begun[id] or l)",
        "call.begun and call.begun[id] or l",
    ),
    Mutant(
        "two completions of one run count",
        "if value and not over[id] then fence",
        "if value then fence",
        "rows: steady",
    ),
    Mutant("completion that was refused ends the lease", "ids, raw = lease.without(ids, refused),", "raw ="),
    Mutant("others refused in place of the completed", "= before + i\n", "= i\n"),
    Mutant(
        "result of a refused completion goes to the next",
        "results = results and lease.without",
        "local _ = lease.without",
    ),
    Mutant("completed job that was tried before leaves its state", "do state_changes.forget(ids[i]) end", "do end"),
    Mutant("a late report is stalled in the same call", "untouched and l or lease.current(ids[i], l)", "l"),
    Mutant("fences follow a clock that steps back", "meta.stamp < now_us and now_us or meta.stamp + 1", "now_us"),
    Mutant("a resent request takes again", "if last then\n  local jobs", "if false then\n  local jobs"),
    Mutant(
        "a request that was given up takes again",
        "struct.unpack('>I7', raw) < request",
        "struct.unpack('>I7', raw) ~= request",
    ),
    # Groups
    Mutant(
        "group not re-armed after a run",
        "running > 0 and running or 0\n  group.touch(g)",
        "running > 0 and running or 0",
    ),
    Mutant("limit ignored", "if g.running >= g.concurrency or", "if"),
    Mutant(
        "limit raised and nobody told",
        "group.touch(g)\nlocal was",
        "local was",
    ),
    Mutant("pause of a group ignored", "elseif g.paused then", "elseif false then"),
    Mutant("pause of the queue ignored", "if meta.paused then n = 0 end", ""),
    Mutant(
        "burst goes on in a paused queue",
        "if meta.paused or rate.is_limited() then return 0",
        "if false then return 0",
    ),
    Mutant("burst ends though jobs are ready", "ZCARD', K.ready) > 0 and 1 or 0", "ZCARD', K.ready) > 1 and 1 or 0"),
    Mutant(
        "slot never freed when a running job is removed",
        "stopping.add(job.id, job.lease)",
        "lease_changes.revoke(job.id)",
    ),
    Mutant("head not looked up after it was taken", "if member == g.head then g.head = heads.find(g) end", ""),
    Mutant("work left and nobody woken", "if left then wake.up() end", ""),
    Mutant("back-off begins and nobody told", "group_changes.note() or horizon.moved()", "group_changes.note()"),
    # Holds
    Mutant("hold ignored", "g.holds and g.holds[record.id_of(g.head)] or 0", "0"),
    Mutant(
        "hold one millisecond too long", "if time > now then return 'parked'", "if time >= now then return 'parked'"
    ),
    Mutant("hold outlives its job", "if g.holds then group.release(g, record.id_of(member)) end", ""),
    Mutant("group of a held job goes on", "(how.yield or gid == '')", "true"),
    Mutant("yielding retry holds its group", "(how.yield or gid == '')", "gid == ''"),
    # Order
    Mutant("arrivals not counted", "meta.seq = meta.seq + 1", ""),
    Mutant(
        "retry goes to the tail",
        "measure.count('retried', 1)\n",
        "measure.count('retried', 1)\n"
        "rec = string.sub(rec, 1, 10) .. struct.pack('>I6', meta.next_seq()) .. string.sub(rec, 17)\n"
        "W.hset(K.jobs, id, rec)\n",
    ),
    Mutant("order kept in a double", "string.sub(source, at, at + 7)", "string.sub(source, at, at + 6) .. '\\0'"),
    Mutant("default order follows a clock that steps back", "if now > meta.order then", "if true then"),
    Mutant(
        "priority ignored across groups",
        "return (MOST_2 - priority) * PRIORITY_UNIT + (ticket or MOST_6 - seq)",
        "return ticket or MOST_6 - seq",
    ),
    Mutant("head at the wrong end", "waiting.starts_before(member, g.head)", "waiting.starts_before(g.head, member)"),
    Mutant(
        "head among the new ones at the wrong end",
        "waiting.starts_before(best, first)",
        "waiting.starts_before(first, best)",
    ),
    Mutant("next head read from the wrong end", "waiting.first(g, 2)", "redis.call('ZRANGE', key, 0, 1)"),
    Mutant("new due time, old place", "record.moved_to(job.rec, time)", "job.rec"),
    # Time
    Mutant("delay truncated to seconds", "K.delayed, whole(time)", "K.delayed, whole(time - time % 1000)"),
    Mutant(
        "due job left in delayed",
        "  undelay_job(id, rec)\n",
        "  local g = group.get(record.group_of(rec))\n  g.delayed = g.delayed - 1\n  group.touch(g)\n",
    ),
    Mutant("due one millisecond late", "if time > now or #ripe == batch", "if time >= now or #ripe == batch"),
    Mutant("next due time not told", "horizon.found(tonumber(first[2]))", ""),
    Mutant("group starts before all that is due has joined", "more_due and may_lack(g)", "false", "backlog: steady"),
    Mutant("more is due and the caller is told to wait", "      horizon.found(time)\n", "", "backlog: steady"),
    Mutant(
        "jobs without a group wait for due ones", "g.delayed > 0 and g.id ~= ''", "g.delayed > 0", "backlog: steady"
    ),
    Mutant(
        "nobody woken for groups that were passed over", "passed_over or changed[1]", "changed[1]", "backlog: steady"
    ),
    # Attempts
    Mutant("stall uses no attempt", "s[STALLS] = l.stalls + 1", "s[STALLS], s[ATTEMPTS] = l.stalls + 1, l.attempts"),
    Mutant("stalls may be one too many", "s[STALLS] > policy.max_stalled", "s[STALLS] > policy.max_stalled + 1"),
    Mutant(
        "attempt forgotten when the job is taken again at once",
        "if saved and saved[ids[i]] then raw[i] = cmsgpack.pack(saved[ids[i]]) end",
        "",
    ),
    Mutant(
        "hand-back uses an attempt",
        "    release_asked(id, rec)\n  else\n",
        "    release_asked(id, rec)\n  else\n    state_changes.save(id, s)\n",
    ),
    Mutant("retry by hand keeps the attempts", "W.hdel(K.state, job.id)\n", ""),
    # Keeping
    Mutant("one finished job too many", "stored + #mine - keep", "stored + #mine - keep - 1"),
    Mutant(
        "the newest finished job goes first",
        "return redis.call('ZRANGE', unpack(page)) end",
        "return redis.call('ZREVRANGE', K[kind], 0, n - 1) end",
    ),
    Mutant(
        "a worker that keeps nothing deletes what others keep",
        "  if keep == 0 then\n    skip",
        "  if false then\n    skip",
    ),
    Mutant("clean spares what finished this millisecond", "math.max(now_us, meta.stamp) - A.age", "now_us - A.age"),
    Mutant("result outlives its job", "  W.hdel(K.results, id)\n", ""),
    Mutant("same id twice in one batch", "not (existing[i] or (already and already[id]))", "not existing[i]"),
    Mutant(
        "delayed job removed and still counted",
        "  elseif job.state == 'delayed' then\n    undelay_job(job.id, job.rec)\n",
        "  elseif job.state == 'delayed' then\n    W.zrem(K.delayed, job.id)\n",
    ),
    # Windows and rests
    Mutant("rest ignored", "elseif g.rest > time then time = g.rest end", "end", "steady"),
    Mutant(
        "coming too often uses an attempt",
        "release_rate_limited(id, rec, o[RESTED.DELAY])",
        "state_changes.save(id, s) release_rate_limited(id, rec, o[RESTED.DELAY])",
    ),
    Mutant("event window ignored", "if passed > time then time = passed end", "", "event time"),
    Mutant("window not extended", "g.till = math.min(g.since + rules.max_wait, now + window)", "", "arrival"),
    Mutant(
        "window without end",
        "g.till = math.min(g.since + rules.max_wait, now + window)",
        "g.till = now + window",
        "arrival",
    ),
    Mutant(
        "late arrival opens a window anew",
        "if not g.head then\n    g.since",
        "if not g.head or not g.till then\n    g.since",
        "arrival",
    ),
    Mutant(
        "promotion by a person opens a window",
        "if not by_person then gate.arrive(group.get(record.group_of(rec))) end",
        "gate.arrive(group.get(record.group_of(rec)))",
        "arrival",
    ),
    Mutant(
        "job that comes back opens a window",
        "function put_back(id, rec)\n",
        "function put_back(id, rec)\n  gate.arrive(group.get(record.group_of(rec)))\n",
        "arrival",
    ),
    # Rates
    Mutant(
        "group rate one millisecond short",
        "return last + per + 1\nend",
        "return last + per\nend",
        "group rate",
    ),
    Mutant("starts of the same call not counted", "g.rate[2], g.started or 0", "g.rate[2], 0", "group rate"),
    Mutant("starts swept that still count", "'-inf', whole(now - 1)", "'-inf', '+inf'", "group rate"),
    Mutant("own rate of a group ignored", "if c.rate then g.rate, g.gated = c.rate, true end", "", "steady"),
    Mutant(
        "queue rate one millisecond short",
        "if not rate.is_over(last, per) then return allowed, last + per + 1 end",
        "if now - last < per then return allowed, last + per end",
        "queue rate",
    ),
    Mutant("queue over its rate and nobody told when it may", "starts.limit_until(limited_until)", "", "queue rate"),
    # Fairness
    Mutant(
        "group keeps its ticket though it was served",
        "g.ticket, g.started = nil, (g.started or 0) + 1",
        "g.ticket = nil",
        "round robin",
    ),
    Mutant(
        "group loses its ticket when something of it changes",
        "g.ticket = ticket and ticket > 0 and ticket <= meta.seq and ticket or",
        "g.ticket =",
        "round robin",
    ),
    Mutant("priority does not age in its group", "low = low - (MOST_2 - priority) * rules.ageing", "", "ageing"),
    Mutant("priority does not age across groups", " + record.priority_of(rec) * rules.ageing", "", "ageing"),
    # Turns
    Mutant(
        "turn of another worker ignored",
        "horizon.call_again(math.max(held[DEADLINE], now))\n  return 0",
        "return wanted",
        "exclusive",
    ),
    Mutant(
        "old holder begins again at once",
        "if (epoch or 0) == 0 then return math",
        "if true then return math",
        "exclusive",
    ),
    Mutant("batch not counted", "math.min(wanted, batch - held[TAKEN])", "wanted", "exclusive"),
    Mutant("turn outlives its last lease", "if rules.exclusive then turn.end_if_idle() end\n", "", "exclusive"),
    Mutant("heartbeat without the turn", "if turn.renew(A.worker, A.lease) then", "if false then", "exclusive"),
    Mutant(
        "turn renewed by the heartbeat that ends its last lease",
        "function turn.renew(worker, lease_ms)\n  turn.end_if_idle()",
        "function turn.renew(worker, lease_ms)\n",
        "exclusive",
    ),
    Mutant("late heartbeat and its worker not told", "A.lease) then wake.up() end", "A.lease) then end", "exclusive"),
    # Dedupe
    Mutant("dedupe without end", "if not e or e.ends <= now then", "if not e then", "default"),
    Mutant("debounce changes a job that is under way", " and redis.call('ZSCORE', K.delayed, e.id)\n", "\n", "default"),
    Mutant("debounce does not start its delay anew", "  W.zadd(K.delayed, whole(due), id)\n", "", "steady"),
    # Repeats
    Mutant("tick not compared", "if definition.next == t[2] and (size", "if (size", "default"),
    Mutant("changed definition overwritten", "~= A.seen then", "== false then", "default"),
    Mutant("tick not remembered", "      definition.next = t[3]\n", "", "default"),
    # Bounds
    Mutant(
        "one job too many in a group",
        "if g.size >= rules.max_group then",
        "if g.size > rules.max_group then",
        "max group",
    ),
    Mutant("refused batch added in part", "if A.whole and #full > 0 then", "if false then", "max group"),
    Mutant(
        "overdue job starts",
        "local expired, _, more_overdue = due.overdue()",
        "local expired, more_overdue = { list = {}, n = 0 }, false",
        "default",
    ),
    Mutant("ttl outlives the start", "if meta.ttls and has_ttl then", "if false then", "default"),
    Mutant(
        "ttl does not move with its job",
        "if ends then\n    ends = ends + time",
        "if false then\n    ends = time",
        "default",
    ),
    *CALLS,
    *ROWS,
    *RESERVES,
    *GRANTS,
    *SETTINGS,
    *PARTITIONS,
    *REPORTING,
    *WAITS,
    *ANSWERS,
    *BROWSING,
    *BLOCKING,
    *BREAKING,
    *ENTRIES,
    *BATCHES,
    *BODIES,
    *MEMBERS,
]
