"""The names of the duties."""

from typing import Literal

DutyName = Literal["scheduler", "recovery", "cleanup"]
"""scheduler: repeats, delayed jobs, groups whose wait is over. recovery: leases that ran out, jobs past their ttl.
cleanup: retention by age, workers that stopped without deregistering."""
