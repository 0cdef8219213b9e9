"""The blocking client: the same methods as `groupmq.Queue`, for Django, Flask and scripts.

A real blocking client over the same command layer, not an event loop in hiding. Safe in threads and after a fork.
"""

from groupmq.sync.job import Job
from groupmq.sync.queue import Queue

__all__ = ["Job", "Queue"]
