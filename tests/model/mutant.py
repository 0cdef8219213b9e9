"""A defect as a patch of the Lua files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from groupmq.protocol import functions
from groupmq.protocol.functions import Library, Script


class Mutant(NamedTuple):
    defect: str
    text: str
    instead: str
    kind: str = "plain"
    """The kind of queue in which it shows."""


def loader(mutant: Mutant, load: Callable[[str], Script] = functions.load) -> Callable[[str], Script]:
    """Load every function with the defect, however it is called. Raises LookupError if no function has the text."""
    sound = load("add").library
    if mutant.text not in sound.text:
        raise LookupError(f"no function contains {mutant.text!r}: the mutant {mutant.defect!r} needs a new patch")
    library = _patched(sound, mutant)

    @cache
    def mutated(name: str) -> Script:
        base = load(name)
        return _Mutated(name, library, library.function(name), base.reads, base.remembers, base, mutant)

    return mutated


@dataclass(frozen=True)
class _Mutated(Script):
    """A function with a defect, also if it is sent as a script."""

    base: Script
    mutant: Mutant

    @property
    def text(self) -> str:
        return self.base.text.replace(self.mutant.text, self.mutant.instead)

    @property
    def origins(self) -> tuple[functions.Origin, ...]:
        return self.base.origins


def _patched(sound: Library, mutant: Mutant) -> Library:
    """The library with the defect, under another name."""
    text = sound.text.replace(mutant.text, mutant.instead)
    name = functions.LIBRARIES + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]
    return Library(name, text.replace(sound.name, name), sound.origins)
