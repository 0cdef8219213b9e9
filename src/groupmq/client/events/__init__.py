"""Listening to what happens, in all processes.

Whoever waits for a job registers with a channel first and looks at the job after that, so nothing can fall in between.
"""

from groupmq.client.events.channel import Channel, Wait
from groupmq.client.events.following import Following
from groupmq.client.events.watching import JobListeners

__all__ = ["Channel", "Following", "JobListeners", "Wait"]
