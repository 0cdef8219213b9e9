"""A defect as a patch of our scripts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from groupmq import scripts
from groupmq.scripts import Script


class Mutant(NamedTuple):
    defect: str
    text: str
    instead: str
    kind: str = "plain"
    """Of queue, in which it shows."""


def loader(mutant: Mutant, load: Callable[[str], Script] = scripts.load) -> Callable[[str], Script]:
    """Loads every script with the defect in it. Raises LookupError if no script has the text."""
    if not any(mutant.text in load(name).text for name in scripts.names()):
        raise LookupError(f"no script contains {mutant.text!r}: the mutant {mutant.defect!r} needs a new patch")

    @cache
    def mutated(name: str) -> Script:
        text = load(name).text.replace(mutant.text, mutant.instead)
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return Script(name, text, sha, load(name).origins)

    return mutated
