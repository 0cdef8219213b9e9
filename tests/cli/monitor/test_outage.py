"""`groupmq monitor` while its server is down: from the beginning, or for a while."""

from __future__ import annotations

import json

from groupmq.sync import Queue
from tests.cli.monitor.streams import Stream
from tests.cli.operating import Command
from tests.support.servers import Server


def test_a_server_that_goes_is_one_line_and_one_that_comes_back_is_found(streams: list[Stream]) -> None:
    server = Server.start("valkey", aof=True)
    try:
        with Queue("orders", server.url) as queue:
            queue.add(1)
        command = Command(server.url)
        streams.append(stream := Stream(command))
        stream.until(r"^  (\d+ +)?0 +1 ")
        server.kill()
        assert stream.until("cannot reach") == f"cannot reach {command.env['GROUPMQ_URL']}, trying again\n"
        server.restart()
        stream.until(r"^  (\d+ +)?0 +1 ")
        assert stream.end() == (0, "")
        streams.append(told := Stream(command, "--json"))
        told.until("waiting")
        server.kill()
        assert "trying again" in json.loads(told.until("trouble"))["trouble"]
    finally:
        server.stop()


def test_a_missing_server_and_a_missing_queue_are_refused() -> None:
    nowhere = Command("redis://127.0.0.1:1", queue="")
    assert "cannot be reached" in nowhere("monitor", "orders", "--once").line(3)
    assert "which queue?" in nowhere("monitor").line(2)
    assert "--interval" in nowhere("monitor", "orders", "--interval", "0").line(2)
