"""Defects of the answers that are kept for calls that are resent."""

from __future__ import annotations

from tests.model.mutant import Mutant

FOUND = "if raw and string.sub(raw, 1, #known) == known then return"

ANSWERS = [
    Mutant("a call that is sent again runs again", FOUND, "if false then return"),
    Mutant("a call is given the answer of another", FOUND, "if raw then return"),
    Mutant("a sending that was overtaken runs as well", "again or math.abs(now - meta.resent) < KEEP", "again"),
    Mutant("nobody told that a call was sent again", "if call.again then meta.resent = now end", ""),
    Mutant("a call does not wait for the one that it follows", "if not reply and before and", "if false and"),
    Mutant("answers forgotten", "if call.requester then kept_replies.note(reply) end\n", ""),
]
