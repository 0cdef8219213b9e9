"""How often tabs are notified that their page may have changed: often while a look is cheap, less often when it is not.

Every tab that is notified looks again. With ten thousand groups one look at the lanes keeps the server busy for tens of
milliseconds; once a second that would be felt by the workers.
"""

from __future__ import annotations

import time

SHARE = 0.03
"""Share of the time that may go into looking."""
LONGEST = 10.0


class NotifyRate:
    """The notifications of one queue. Looks are counted when they are made, not for each tab that shares them."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._notified_at = -LONGEST

    def spent(self, seconds: float) -> None:
        self._spent += seconds

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last notification, compared with the time that the looks took."""
        return time.monotonic() - self._notified_at >= min(LONGEST, self._spent / SHARE)

    def notified(self) -> None:
        self._spent, self._notified_at = 0.0, time.monotonic()
