"""Defects of queues with partitions: their settings, and the data that repartitioning carries over."""

from __future__ import annotations

from tests.model.mutant import Mutant

PARTITIONS = [
    Mutant(
        "older settings replace those that a partition has got since",
        "if A.instead and (not stored[1] or (stored[4] or '') ~= A.instead) then return stored end",
        "if A.instead and not stored[1] then return stored end",
    ),
    Mutant(
        "a partition that was moved away is made again",
        "if A.instead and (not stored[1] or (stored[4] or '')",
        "if A.instead and ((stored[4] or '')",
    ),
    Mutant(
        "a partition has a revision of its own",
        "local revision = A.revision or next_revision(stored[4])",
        "local revision = next_revision(stored[4])",
    ),
    Mutant(
        "a moved partition gives numbers that others have given",
        "math.max(found[HIGHEST[i]], other[HIGHEST[i]])",
        "math.min(found[HIGHEST[i]], other[HIGHEST[i]])",
    ),
    Mutant(
        "a moved partition knows only what was copied last",
        "found[FLAGS[i]] = found[FLAGS[i]] or other[FLAGS[i]]",
        "found[FLAGS[i]] = other[FLAGS[i]]",
    ),
    Mutant("a moved queue is not paused any more", "local FLAGS = { 'paused', 'ttls'", "local FLAGS = { 'ttls'"),
    Mutant(
        "a moved partition does not look for what is due",
        "found.due = math.min(found.due, other.due)",
        "found.due = math.max(found.due, other.due)",
    ),
    Mutant(
        "repeats of a moved partition sleep",
        "if tick then found.repeat_at =",
        "if tick and false then found.repeat_at =",
        "default",
    ),
    Mutant(
        "settings of moved groups are overlooked",
        "local EXACT = { overrides = 'conf', blocks = 'blocked',",
        "local EXACT = { blocks = 'blocked',",
    ),
    Mutant(
        "moved groups that are blocked run",
        "local EXACT = { overrides = 'conf', blocks = 'blocked',",
        "local EXACT = { overrides = 'conf',",
        "hold",
    ),
    Mutant(
        "an entry that was written again is forgotten",
        "if stored[i] == A.entries[i] then gone",
        "if stored[i] then gone",
    ),
]
