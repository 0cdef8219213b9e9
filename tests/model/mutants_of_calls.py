"""Defects of the beginning and the end of a call: no state of one call may leak into the next."""

from __future__ import annotations

from tests.model.mutant import Mutant

KINDS_OF_QUEUE = ("plain", "default", "steady", "exclusive", "ageing", "rows: steady")


CALLS = [
    *(
        Mutant(
            f"a call goes on with what the one before has left ({kind})",
            "  call = { seen",
            "  call = call or { seen",
            kind,
        )
        for kind in KINDS_OF_QUEUE
    ),
    # The next time at which something is due
    Mutant(
        "due time of a delayed job not noted",
        "  if not call.put_at or time < call.put_at then call.put_at = time end\n",
        "",
    ),
    Mutant(
        "next due time put off though not all was looked at",
        "  if call.first_at and time < call.first_at then call.first_at = time end\n",
        "",
    ),
    Mutant("nobody looks at what is due", "return meta.due <= now end", "return false end"),
    Mutant("next due time not stored", "  meta.due = horizon.due()\n", ""),
]
