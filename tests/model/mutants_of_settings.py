"""Defects of the settings that are stored with a queue."""

from __future__ import annotations

from tests.model.mutant import Mutant

SETTINGS = [
    Mutant(
        "a call by old settings is carried out", "if known and known ~= '' and known ~= stored[7] then", "if false then"
    ),
    Mutant(
        "nobody can tell that settings have changed",
        "local revision = A.revision or next_revision(stored[4])",
        "local revision = A.revision or stored[4] or '1'",
    ),
    Mutant(
        "a change overwrites what another has stored",
        "(stored[2] ~= A.was[1] or (stored[3] or '') ~= A.was[2])",
        "stored[2] ~= A.was[1]",
    ),
    Mutant("opening a queue changes its settings", "if stored[3] and not replaces then return stored end", ""),
]
