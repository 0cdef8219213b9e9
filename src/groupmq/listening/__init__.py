"""Listening to what happens, in all processes.

Whoever waits for a job registers with a channel first and looks at the job after that, so nothing can fall in between.
"""

from groupmq.listening.channel import Channel, Wait
from groupmq.listening.following import Following
from groupmq.listening.watching import JobListeners

__all__ = ["Channel", "Following", "JobListeners", "Wait"]
