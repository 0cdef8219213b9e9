"""The dialogue of one call, driven by hand."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import redis
from redis import exceptions as r

from groupmq import commands, scripts
from groupmq.dialogue import Dialogue, Steps
from groupmq.errors import ConfigurationError, ConnectionLost, ScriptError, ServerRefused
from groupmq.options import QueueOptions

OPTIONS = QueueOptions(name="orders", group_concurrency=2)
OPENED = [b"1", json.dumps({"group_concurrency": 2}).encode()]
COUNTS = [0] * 10


class Server:
    """Answers the steps of a dialogue one by one and remembers them."""

    def __init__(self, steps: Steps[Any]) -> None:
        self.steps = steps
        self.said: list[Any] = [next(steps)]
        self.result: Any = None

    @property
    def last(self) -> Any:
        return self.said[-1]

    def answer(self, reply: Any) -> Server:
        try:
            if isinstance(reply, BaseException):
                self.said.append(self.steps.throw(reply))
            else:
                self.said.append(self.steps.send(reply))
        except StopIteration as stop:
            self.result = stop.value
        return self


def conversation(patience: float = 0.0, *, opened: bool = True, options: QueueOptions = OPTIONS) -> Server:
    talk = Dialogue(options, "redis://example")
    talk._opened = opened
    return Server(talk.ask(commands.counts(), patience))


def test_a_first_call_opens_the_queue_and_then_asks() -> None:
    server = conversation(opened=False)
    assert server.last[:4] == ("EVALSHA", scripts.load("open").sha, 1, "groupmq:{orders}:meta")
    server.answer(OPENED)
    assert server.last[:4] == ("EVALSHA", scripts.load("counts").sha, 1, "groupmq:{orders}:meta")
    assert server.answer(COUNTS).result == COUNTS


def test_a_queue_is_opened_once() -> None:
    talk = Dialogue(OPTIONS, "x")
    Server(talk.ask(commands.counts(), 0)).answer(OPENED).answer(COUNTS)
    assert len(Server(talk.ask(commands.counts(), 0)).answer(COUNTS).said) == 1


def test_opened_after_settings_are_known_to_agree_only() -> None:
    talk = Dialogue(OPTIONS, "x")
    with pytest.raises(ConfigurationError):
        Server(talk.ask(commands.counts(), 0)).answer([b"1", b"{}"])
    assert not talk._opened


def test_an_unknown_script_is_sent_in_full_at_once() -> None:
    server = conversation().answer(r.NoScriptError("No matching script."))
    script = scripts.load("counts")
    assert [step[:2] for step in server.said] == [("EVALSHA", script.sha), ("EVAL", script.text)]
    assert server.said[0][2:] == server.said[1][2:]
    assert server.answer(COUNTS).result == COUNTS


def test_a_blob_is_sent_only_if_there_is_one() -> None:
    talk = Dialogue(OPTIONS, "x")
    talk._opened = True
    assert len(Server(talk.ask(commands.counts(), 0)).last) == 5
    assert Server(talk.ask(commands.update("x", b"data"), 0)).last[5] == b"data"


def test_a_queue_that_is_gone_is_opened_again_and_the_call_repeated() -> None:
    server = conversation()
    server.answer(r.ResponseError("GROUPMQ_SCHEMA none stored, this script needs 1"))
    assert server.last[1] == scripts.load("open").sha
    server.answer(OPENED)
    assert server.last == server.said[0]
    assert server.answer(COUNTS).result == COUNTS


def test_a_queue_that_vanishes_again_and_again_is_an_error_in_the_end() -> None:
    server, gone = conversation(), r.ResponseError("GROUPMQ_SCHEMA none stored")
    server.answer(gone).answer(OPENED).answer(gone).answer(OPENED).answer(gone)
    with pytest.raises(ScriptError, match="'orders' disappears as fast as it is opened"):
        server.answer(OPENED)


def test_a_process_that_disagrees_is_told_how_and_what_to_do() -> None:
    server = conversation(opened=False)
    with pytest.raises(ConfigurationError) as caught:
        server.answer([b"1", b'{"group_concurrency": 5, "exclusive": true}'])
    assert str(caught.value) == (
        "queue 'orders' exists with other settings: exclusive is True there and False here; "
        "group_concurrency is 5 there and 2 here. "
        "Every process must use the same; call reconfigure() once to change what is stored"
    )


def test_a_queue_of_another_format_is_refused_with_both_formats() -> None:
    server = conversation(opened=False)
    with pytest.raises(
        ConfigurationError, match="'orders' is stored in format 9, this release of groupmq reads format 1"
    ):
        server.answer([b"9", b"{}"])


def test_an_error_of_a_script_names_lua_file_and_line_and_is_not_repeated() -> None:
    script = scripts.load("counts")
    line = (
        script.text.splitlines().index(
            "local active, delayed = redis.call('ZCARD', K.active), redis.call('ZCARD', K.delayed)"
        )
        + 1
    )
    server = conversation(patience=60)
    with pytest.raises(ScriptError, match=r"^counts: WRONGTYPE Operation .* on @counts\.lua:7\.$"):
        server.answer(r.ResponseError(f"WRONGTYPE Operation script: abc, on @user_script:{line}."))


def test_without_patience_a_lost_connection_is_told_at_once() -> None:
    with pytest.raises(ConnectionLost, match="redis://example cannot be reached"):
        conversation().answer(redis.ConnectionError("refused"))


def test_with_patience_a_lost_connection_is_tried_again_after_growing_pauses() -> None:
    server = conversation(patience=60)
    pauses = []
    for _ in range(8):
        server.answer(redis.ConnectionError("refused"))
        assert isinstance(server.last, float)
        pauses.append(server.last)
        server.answer(None)
        assert server.last == server.said[0]
    for at, pause in enumerate(pauses):
        middle = min(0.05 * 2**at, 1.0)
        assert 0.5 * middle <= pause <= 1.5 * middle
    assert server.answer(COUNTS).result == COUNTS


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    server = conversation(patience=3.0)
    clock[0] = 102.99
    server.answer(redis.ConnectionError("refused"))
    assert server.last <= 0.011
    server.answer(None)
    clock[0] = 103.0
    with pytest.raises(ConnectionLost):
        server.answer(redis.ConnectionError("refused"))


def test_a_server_that_is_not_ready_yet_is_waited_for() -> None:
    server = conversation(patience=60).answer(r.BusyLoadingError("loading"))
    assert isinstance(server.last, float)


def test_a_server_that_is_full_is_not_waited_for() -> None:
    with pytest.raises(ServerRefused, match="is out of memory") as caught:
        conversation(patience=60).answer(r.OutOfMemoryError("command not allowed"))
    assert caught.value.kind == "OOM"


def test_a_connection_lost_while_opening_is_tried_again_from_the_opening() -> None:
    server = conversation(patience=60, opened=False).answer(redis.ConnectionError("refused")).answer(None)
    assert server.last == server.said[0]


def test_replacing_settings_is_said_to_the_server() -> None:
    plain, replacing = commands.open_queue("{}", 1, {}), commands.open_queue("{}", 1, {}, replace=True)
    assert plain.args != replacing.args
    assert (
        Server(Dialogue(OPTIONS, "x").open(replace=True)).last[4]
        == commands.open_queue(OPTIONS.shared, 2, {}, replace=True).args
    )
