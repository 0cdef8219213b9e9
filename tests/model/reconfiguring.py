"""Another process that changes the settings of the queue, and calls with the old settings."""

from __future__ import annotations

from typing import Any

import redis

from groupmq.client.connection.endpoint import Endpoint
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol import commands, functions
from groupmq.sync.connection.connections import BlockingConnection


def other_process(client: redis.Redis, options: QueueOptions) -> BlockingConnection:
    """A connection to the same queue that accepts its stored settings."""
    connection = BlockingConnection(Endpoint(client), options)
    connection.session.accept_stored_settings()
    return connection


def refuses_old_settings(client: Any, connection: BlockingConnection) -> bool:
    """Whether calls with the revision that this connection knows are refused. They would pause and resume the queue."""
    script, session = functions.load("switch"), connection.session
    before = client.execute_command("HGET", session.keys.meta, "numbers")
    for paused in (True, False):
        call = commands.switch(paused=paused)
        command = ("EVAL", script.text, 1, session.keys.meta, call.args, b"", session.known.revision)
        try:
            client.execute_command(*command)
        except redis.exceptions.ResponseError as error:
            if "GROUPMQ_SETTINGS" not in str(error):
                raise
        else:
            return False
    return bool(client.execute_command("HGET", session.keys.meta, "numbers") == before)
