"""Selects the function library that a process uses: that of this release, of another one, or one with a defect.

The other release is this one with an additional comment: its library has another hash, and so other names on the
server, while both work on the same keys at once.
"""

from __future__ import annotations

from groupmq.protocol import functions
from tests.model.mutant import Mutant, loader
from tests.model.mutants import MUTANTS

OTHER = Mutant("another release", "local function stall_job(", "--[[ another release ]] local function stall_job(")


def use(release: str | None) -> None:
    """Make this process use a release: None for its own, "other", or the name of a defect."""
    if release is None:
        return
    chosen = OTHER if release == "other" else next(m for m in MUTANTS if m.defect == release)
    vars(functions)["load"] = loader(chosen)
