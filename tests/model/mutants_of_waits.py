"""Defects of the two longest waits: that of jobs that could start now, and that of groups that are held."""

from __future__ import annotations

from tests.model.mutant import Mutant

WAITS = [
    Mutant(
        "a group behind a running job is not held",
        "return holder and (holder.stopping and 'stopping' or 'running') or nil",
        "return nil",
    ),
    Mutant("a group in its back-off is not held", "if g.state ~= 'parked' then return nil end", "do return nil end"),
    Mutant("a paused group is not held", "if g.paused then return 'paused' end", "if g.paused then return nil end"),
    Mutant(
        "a paused group hides the others that are held",
        "g.why == 'paused' and call.paused or call.unable",
        "call.unable",
    ),
    Mutant(
        "waiting counted from the order that a job brings",
        "record.waits_since(rec)\n        head",
        "head.order\n        head",
    ),
    Mutant(
        "job that was taken ahead counts as running",
        "if not l.prefetched then call.running",
        "if true then call.running",
        "rows: steady",
    ),
]
