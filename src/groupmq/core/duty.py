"""The names of the duties."""

from typing import Literal

DutyName = Literal["scheduler", "recovery", "cleanup"]
"""scheduler: repeats and promotion (delayed jobs, groups whose wait is over). recovery: leases that ran out, jobs past
their ttl. cleanup: retention by age and presence (workers that stopped without deregistering)."""
