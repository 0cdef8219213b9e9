"""Defects of ids that stay taken after their job has ended, and of skipped ticks."""

from __future__ import annotations

from tests.model.mutant import Mutant

KIND = "unique ids"

ENTRIES = [
    Mutant("id that stays taken not stored", "if stays then unique.enter(id, stays) end", "", KIND),
    Mutant("id free at once", "if ends and ends > now then return made end", "", KIND),
    Mutant("id taken for ever", "if ends and ends > now then return made end", "if ends then return made end", KIND),
    Mutant("id free one millisecond late", "if ends and ends > now then", "if ends and ends >= now then", KIND),
    Mutant("id of a completed job never ends", "  if meta.uniques then unique.ended(ids) end\n", "", KIND),
    Mutant("id of a failed job never ends", "  if meta.uniques then unique.ended({ id }) end\n", "", KIND),
    Mutant("removed job keeps its id", "  if meta.uniques then unique.free(job.id) end\n", "", KIND),
    Mutant("redriven job loses its id", "  if meta.uniques then unique.lives(job.id) end\n", "", KIND),
    Mutant("old entry outlives a new job", "  if raw then unique.free(id) end\n", "", KIND),
    Mutant(
        "a failed job forgets how long its id stays taken",
        "    if failed[i] then W.zrem",
        "    if false then W.zrem",
        KIND,
    ),
    Mutant(
        "the id of a failed job that is gone is kept for ever",
        "  if kind == 'failed' and meta.uniques and ids[1] then unique.dropped(ids) end\n",
        "",
        KIND,
    ),
    Mutant("ids never swept", "= unique.sweep(BATCH),", "= 0,", KIND),
    Mutant("more expired than there is", "breakers_swept) >= BATCH", "breakers_swept) >= 1", KIND),
    Mutant(
        "ids swept that are taken",
        "redis.call('ZRANGE', K.uniques, '-inf', whole(now),",
        "redis.call('ZRANGE', K.uniques, '-inf', '+inf',",
        KIND,
    ),
    # Retention
    Mutant(
        "failed jobs that retention drops are not counted",
        "    if kind == 'failed' then call.dropped = dropped + skip end\n",
        "",
        "default",
    ),
    # Ids
    Mutant("nobody says that ids stay taken", "  meta.uniques = true\nend", "end", KIND),
    Mutant(
        "wrong job told for a taken id",
        "struct.pack(LAYOUT, ms, now + ms, made)",
        "struct.pack(LAYOUT, ms, now + ms, now)",
        KIND,
    ),
    # Ticks
    Mutant("occurrences overlap", "definition.overlap == 'skip' and lives(rid, definition.last)", "false", KIND),
    Mutant(
        "ticks skipped though nothing lives",
        "redis.call('HEXISTS', K.jobs, id) == 0 then return false",
        "false then return false",
        KIND,
    ),
    Mutant(
        "ended occurrence stops the schedule",
        "return not (redis.call('ZSCORE', K.completed, id)",
        "return not (false",
        KIND,
    ),
    Mutant("occurrences of one call overlap", "if call.entered and call.entered[id] then return true end", "", KIND),
    Mutant("skipped tick not counted", "definition.skipped = (definition.skipped or 0) + 1", "", KIND),
    Mutant(
        "an earlier tick wakes no idle worker",
        "  wake.up() -- an idle worker need not have",
        "  -- an idle worker need not have",
        KIND,
    ),
    Mutant(
        "skipped tick told as added",
        "if repeats.enter(t[1], definition, body, t[k]) then added",
        "repeats.enter(t[1], definition, body, t[k]) do added",
        KIND,
    ),
]
