"""Receiving the events of queues, whichever process caused them.

A waiter registers with a channel first and looks at the job after that, so that no event is missed in between.
"""

from groupmq.client.events.channel import Channel, Wait
from groupmq.client.events.following import Follower
from groupmq.client.events.following_all import follower_of
from groupmq.client.events.watching import JobListeners

__all__ = ["Channel", "Follower", "JobListeners", "Wait", "follower_of"]
