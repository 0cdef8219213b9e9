"""Receiving the events of queues, whichever process caused them.

A waiter registers with a channel first and looks at the job after that, so that no event is missed in between.
"""

from groupmq.client.events.channel import Channel, Wait
from groupmq.client.events.job_listeners import JobListeners
from groupmq.client.events.merged_subscription import subscription_of
from groupmq.client.events.subscription import Subscription

__all__ = ["Channel", "JobListeners", "Subscription", "Wait", "subscription_of"]
