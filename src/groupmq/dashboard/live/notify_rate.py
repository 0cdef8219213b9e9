"""How often tabs are notified that their page may have changed: less often if it costs much to read the page.

Every notified tab reads its page again. With ten thousand groups, reading the lanes keeps the server busy for tens of
milliseconds. Once a second, that would slow down the workers.
"""

from __future__ import annotations

import time

SHARE = 0.03
"""Share of the time that may be spent on reading pages."""
LONGEST = 10.0


class NotifyRate:
    """The notifications of one queue. The time of a read is counted once, not for each tab that shares it."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._notified_at = -LONGEST

    def spent(self, seconds: float) -> None:
        self._spent += seconds

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last notification, compared with the time that the reads took."""
        return time.monotonic() - self._notified_at >= min(LONGEST, self._spent / SHARE)

    def notified(self) -> None:
        self._spent, self._notified_at = 0.0, time.monotonic()
