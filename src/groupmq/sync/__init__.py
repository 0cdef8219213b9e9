"""The blocking client: the same methods as `groupmq.Queue`, for Django, Flask and scripts.

Generated from the asynchronous client, with sockets that block; events and results come from one event loop in a
background thread. Safe in threads and after a fork.
"""

from groupmq.sync.job import Job
from groupmq.sync.queue.queue import Queue

__all__ = ["Job", "Queue"]
