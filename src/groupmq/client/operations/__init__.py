"""What a queue can do, without I/O: each operation is a generator that yields Calls and is sent their answers.

The asynchronous and the blocking Queue drive the same generators, so there is one meaning of everything.
"""

from __future__ import annotations

from groupmq.client.operations.adding import Adding
from groupmq.client.operations.browsing import Browsing
from groupmq.client.operations.changing import NOTHING, Changing
from groupmq.client.operations.overseeing import Overseeing
from groupmq.client.operations.steps import STATES, J, Steps, clipped, one
from groupmq.client.operations.tending import Tending

__all__ = ["NOTHING", "STATES", "Operations", "Steps", "clipped", "one"]


class Operations(Adding[J], Overseeing[J], Changing[J], Tending[J], Browsing[J]):
    """The operations of one queue."""
