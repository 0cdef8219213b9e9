"""Defects of reports and answers: cancelled runs, progress, events, measures."""

from __future__ import annotations

from tests.model.mutant import Mutant

REPORTING = [
    # Cancelling
    Mutant("cancelled run is tried again", "elseif cancelled then", "elseif false then", "steady"),
    Mutant(
        "stalled run is tried again though it was cancelled",
        "if cancelled then\n    why",
        "if false then\n    why",
        "steady",
    ),
    Mutant("cancel outlives the run", "do W.hdel(K.interrupts, id) end", "do local _ = id end", "steady"),
    Mutant(
        "cancel ends the lease at once",
        "interrupts.cancel(job.id, job.lease)",
        "detach_job(job) interrupts.cancel(job.id, job.lease)",
        "steady",
    ),
    Mutant(
        "cancelled job stays in its group",
        "not gone[job.id] then\n    gone[job.id] = true\n    remove_job(job)\n",
        "not gone[job.id] then\n    gone[job.id] = true\n    retention.forget(job.id)\n",
        "steady",
    ),
    Mutant("delayed job cannot be cancelled", "or found_in == 'delayed') and not gone", ") and not gone", "steady"),
    Mutant(
        "worker of a cancelled run not told",
        "meta.interrupts = true\n  mail.send(worker)",
        "meta.interrupts = true",
        "steady",
    ),
    Mutant(
        "all workers told of a cancelled run",
        "if not ended and string.sub(all[i], after) == worker then",
        "if true then",
        "steady",
    ),
    Mutant(
        "more of a group cancelled than asked for",
        "waiting.first(group.get(A.group), A.limit)",
        "waiting.first(group.get(A.group), 0)",
        "steady",
    ),
    # Runs whose job an operator has ended
    Mutant(
        "slot freed before the handler of a removed job has ended",
        "    stopping.add(job.id, job.lease)\n",
        "    end_run(job.id, job.lease)\n",
        "steady",
    ),
    Mutant(
        "slot of a stopping run never freed by its lease",
        "  stopping.expire((due_entries.take(K.stopping, ENDS, COST_OF_END)))\n",
        "",
        "steady",
    ),
    Mutant(
        "late outcome does not free the slot of a stopping run",
        "        measure.count('lease_lost', 1)\n        stopping.finish(o[FENCE])\n",
        "        measure.count('lease_lost', 1)\n",
        "steady",
    ),
    Mutant(
        "late completion does not free the slot of a stopping run",
        "    for i = 1, #refused do stopping.finish(completed[2][refused[i]]) end\n",
        "",
        "steady",
    ),
    Mutant(
        "end of a handler does not free its slot",
        "if o[KIND] == ENDED then\n      stopping.finish(o[FENCE])",
        "if o[KIND] == ENDED then\n",
        "steady",
    ),
    Mutant(
        "abandoned run frees its slot", "if kind == ABANDON then stopping.add(id, l) else", "if true then", "steady"
    ),
    Mutant("worker of a stopping run not told", "  mail.send(worker)\n  if deadline", "  if deadline", "steady"),
    Mutant("end of the next stopping run not kept", "  meta.stopping = first\n", "", "steady"),
    Mutant("exclusive queue beside a stopping run", " + stopping.count()\n", "\n", "exclusive"),
    # Progress and log lines
    Mutant(
        "progress without a look at the fence",
        "not (l and l.fence == A.fence) then return commit(0) end\nW.hset(K.progress",
        "not l then return commit(0) end\nW.hset(K.progress",
        "steady",
    ),
    Mutant(
        "log line without a look at the fence",
        "not (l and l.fence == A.fence) then return commit(0) end\nseen.add(K.logs",
        "not l then return commit(0) end\nseen.add(K.logs",
        "steady",
    ),
    Mutant("log without a bound", "if #log > MOST_LINES then", "if false then", "steady"),
    Mutant("full log stays as it is", "table.remove(log, 1)", "table.remove(log)", "steady"),
    Mutant("log outlives its job", "    W.hdel(K.logs, id)\n", "", "steady"),
    Mutant("log outlives its completed job", "    W.hdel_all(K.logs, ids)\n", "", "steady"),
    Mutant("no call looks for progress", "meta.progress = true", "", "steady"),
    # Events
    Mutant(
        "events not counted",
        "meta.logged, meta.log_bytes = meta.logged + 1,",
        "meta.logged, meta.log_bytes = meta.logged,",
    ),
    Mutant("only the last event of a kind told", "if not columns then", "if true then"),
    Mutant("events of a silent queue", "not rules.silent", "true", "silent"),
    Mutant("retry not told", "events.publish('retrying', id, gid, s[ATTEMPTS], how.delay, how.reason)", ""),
    Mutant("removal not told", "events.publish('removed', job.id, record.group_of(job.rec))", ""),
    Mutant("told which attempt was before", "s and s[ATTEMPTS] + 1 or 1", "s and s[ATTEMPTS] or 1"),
    Mutant("last stall told as any other", "s[ATTEMPTS], why ~= nil)", "s[ATTEMPTS], false)"),
    Mutant("results of two jobs told as one", "results[#results + 1] = result", "results[1] = result"),
    Mutant("completed job told to have run once", "column(#ids, attempts, 1)", "1"),
    Mutant("attempts of one told for all", "all[i] = values[i] or usual", "all[i] = values[#values] or usual"),
    Mutant("results of completed jobs not told", "column(#ids, sizes, -1)", "-1"),
    Mutant(
        "completed jobs told to be of one group",
        "  events.completed(ids, gids, attempts, sizes, any_prefetched",
        "  for i = 2, n do gids[i] = gids[1] end\n  events.completed(ids, gids, attempts, sizes, any_prefetched",
    ),
    Mutant("drained though another group lives", " and redis.call('HLEN', K.groups) == gone", ""),
    Mutant("pause told again", "A.paused ~= nil and A.paused ~= (conf.paused or false)", "A.paused ~= nil"),
    # Jobs that time has ended
    Mutant("expired job not named", "list[n + 1], list[n + 2], list[n + 3] = job.id,", "local _ = job.id,", "default"),
    Mutant(
        "expired job said to block nothing",
        "record.group_of(job.rec), blocks and 1 or 0",
        "record.group_of(job.rec), 0",
        "hold",
    ),
    Mutant("stalled job said to block nothing", "blocks and FAILED_AND_BLOCKS or FAILED", "FAILED", "hold"),
    Mutant("cancelled job said to have failed", "return cancelled and CANCELLED or", "return", "steady"),
    Mutant(
        "stalled jobs named once only",
        "reply[STALLED], reply[EXPIRED] = stalled, expired",
        "reply[STALLED], reply[EXPIRED] = {}, expired",
        "steady",
    ),
    Mutant(
        "expired jobs named once only",
        "reply[STALLED], reply[EXPIRED] = stalled, expired",
        "reply[STALLED], reply[EXPIRED] = stalled, {}",
        "default",
    ),
    # Measures
    Mutant("waiting measured at every start", "if not s then could_start", "if true then could_start"),
    Mutant("runs that are tried again not measured", "if kind == FAIL or kind == RETRY or", "if kind == FAIL or"),
    Mutant(
        "delay measured as waiting",
        "flags % 2 == 1 and created or (2147483647 - high) * UNIT_4 + (MOST_4 - low)",
        "created",
    ),
    Mutant("lost lease not counted", "measure.count('lease_lost', #refused)", ""),
    Mutant(
        "a minute that is over keeps no histograms",
        "return numbers .. pack_pairs(counts)",
        "return numbers",
    ),
    Mutant("runs of a minute counted as waits", "spread_with(spread, BUCKETS, runs)", "spread_with(spread, 0, runs)"),
    Mutant("a minute begins with the histograms of the one before", "rep(9 * 6) .. NOTHING", "rep(54) .. raw:sub(101)"),
    Mutant("counters begin anew with every minute", "string.sub(raw, 5, 46)", "('\\0'):rep(42)"),
    Mutant(
        "a power of two in the bucket below",
        "return (exponent < BUCKETS",
        "return (ms == 2 ^ (exponent - 1) and exponent - 1 or exponent < BUCKETS",
    ),
]
