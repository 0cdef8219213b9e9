"""Defects of the waiting members of a group: a single head, the sorted set, and their order."""

from __future__ import annotations

from tests.model.mutant import Mutant

MEMBERS = [
    Mutant("head alone not joined by the second job", "    all[#all + 1], all[#all + 2] = '0', g.was_head\n", ""),
    Mutant("head alone though two wait", "g.alone = #all == 2 and g.id ~= ''", "g.alone = #all >= 2 and g.id ~= ''"),
    Mutant("head that is no longer alone stored as alone", "if g.alone ~= was_alone then g.stale = true end", ""),
    Mutant(
        "head alone stays when it is taken",
        "if g.alone and not (g.removed and g.removed[g.was_head]) then",
        "if g.alone then",
    ),
    Mutant("head alone not counted", "if g.unset then return g.alone and 1 or 0 end", "if g.unset then return 0 end"),
    Mutant("head alone not listed", "return g.alone and { g.was_head } or {}", "return {}"),
    Mutant(
        "members compared by the locale",
        "  if a ~= d then return a > d end\n",
        "  if a ~= d then return one > other end\n",
    ),
]
