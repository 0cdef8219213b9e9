"""One call of a function, driven by hand: the commands that are sent, and the handling of the replies."""

from __future__ import annotations

import json
import re
import time
from importlib import resources
from typing import Any

import msgspec
import pytest
import redis
from redis import exceptions as r

from groupmq.client.connection.session import Session
from groupmq.core.errors import ConfigurationError, ConnectionLost, ScriptError, ServerRefused
from groupmq.core.queue_options import QueueOptions
from groupmq.core.settings import StoredQueue
from groupmq.protocol import commands, functions
from tests.support.by_hand import ClientByHand, Steps

OPTIONS = QueueOptions(name="orders", group_concurrency=2, given=frozenset({"group_concurrency", "exclusive"}))
HANDLING = OPTIONS.handling.encode()
FORMAT = commands.SCHEMA.encode()
OPENED = [FORMAT, json.dumps({"group_concurrency": 2}).encode(), HANDLING, b"7"]
COUNTS = [0] * 10
LISTED = ("SADD", "groupmq:queues", "orders")


def client_of(options: QueueOptions, where: str) -> ClientByHand:
    return ClientByHand(Session(options, where))


class Server:
    """Answers the commands of a call one by one and remembers them."""

    def __init__(self, steps: Steps[Any]) -> None:
        self.steps = steps
        self.sent: list[Any] = [steps.send(None)]
        self.result: Any = None

    @property
    def last(self) -> Any:
        return self.sent[-1]

    def answer(self, reply: Any) -> Server:
        try:
            if isinstance(reply, BaseException):
                self.sent.append(self.steps.throw(reply))
            else:
                self.sent.append(self.steps.send(reply))
        except StopIteration as stop:
            self.result = stop.value
        return self


def conversation(patience: float = 0.0, *, opened: bool = True, options: QueueOptions = OPTIONS) -> Server:
    talk = client_of(options, "redis://example")
    talk.session.opened = opened
    return Server(talk.call(commands.counts(), patience))


def opened() -> ClientByHand:
    talk = client_of(OPTIONS, "redis://example")
    talk.session.opened = True
    return talk


def test_a_first_call_opens_the_queue_and_then_asks() -> None:
    server = conversation(opened=False)
    assert server.last[:4] == ("FCALL", functions.load("open").function, 1, "groupmq:{orders}:meta")
    server.answer(OPENED)
    assert server.last == LISTED
    server.answer(1)
    assert server.last[:4] == ("FCALL_RO", functions.load("counts").function, 1, "groupmq:{orders}:meta")
    assert server.answer(COUNTS).result == COUNTS


def test_a_queue_is_opened_once() -> None:
    talk = client_of(OPTIONS, "x")
    assert Server(talk.call(commands.counts(), 0)).answer(OPENED).answer(1).answer(COUNTS).result == COUNTS
    assert len(Server(talk.call(commands.counts(), 0)).answer(COUNTS).sent) == 1


def test_opened_after_settings_are_known_to_agree_only() -> None:
    talk = client_of(OPTIONS, "x")
    with pytest.raises(ConfigurationError):
        Server(talk.call(commands.counts(), 0)).answer([FORMAT, b"{}", HANDLING, b"7"])
    assert not talk.session.opened


def test_a_missing_library_is_loaded_and_the_call_repeated() -> None:
    server = conversation().answer(r.ResponseError("Function not found")).answer(b"groupmq_x")
    script = functions.load("counts")
    assert [step[:2] for step in server.sent] == [
        ("FCALL_RO", script.function),
        ("FUNCTION", "LOAD"),
        ("FCALL_RO", script.function),
    ]
    assert server.sent[1][2] == script.library.text
    assert server.sent[0] == server.sent[2]
    assert server.answer(COUNTS).result == COUNTS


def test_a_library_that_another_client_has_loaded_meanwhile_is_used() -> None:
    server = conversation().answer(r.ResponseError("Function not found"))
    server.answer(r.ResponseError("Library 'groupmq_x' already exists"))
    assert server.last == server.sent[0]
    assert server.answer(COUNTS).result == COUNTS


@pytest.mark.parametrize(
    "refusals",
    [
        [r.NoPermissionError("this user has no permissions to run the 'fcall_ro' command")],
        [r.ResponseError("unknown command 'FCALL_RO', with args beginning with: ")],
        [
            r.ResponseError("Function not found"),
            r.NoPermissionError("User app has no permissions to run the 'function|load' command"),
        ],
        [r.ResponseError("Function not found"), r.ResponseError("unknown command 'FUNCTION', with args beginning")],
    ],
    ids=["fcall denied", "no fcall", "function denied", "no function"],
)
def test_where_functions_are_refused_scripts_are_used_from_then_on(refusals: list[Exception]) -> None:
    talk, script = opened(), functions.load("counts")
    server = Server(talk.call(commands.counts(), 0))
    for refusal in refusals:
        server.answer(refusal)
    assert server.last[:2] == ("EVALSHA_RO", script.sha)
    server.answer(r.NoScriptError("No matching script."))
    assert server.last[:2] == ("EVAL_RO", script.text)
    assert server.last[2:] == server.sent[0][2:]
    assert server.answer(COUNTS).result == COUNTS
    assert talk.session.calls_by == "script"
    assert Server(talk.call(commands.counts(), 0)).last[:2] == ("EVALSHA_RO", script.sha)


DENIED = "User app has no permissions to run the '{}' command"


@pytest.mark.parametrize(
    "refusals",
    [
        [r.NoPermissionError(DENIED.format("fcall_ro"))],
        [r.ResponseError("Function not found"), r.NoPermissionError(DENIED.format("function|load"))],
    ],
    ids=["fcall denied", "function denied"],
)
def test_a_user_who_is_denied_scripts_too_keeps_to_functions_and_is_told_of_the_first_refusal(
    refusals: list[Exception],
) -> None:
    talk = opened()
    server = Server(talk.call(commands.counts(), 0))
    for refusal in refusals:
        server.answer(refusal)
    assert server.last[0] == "EVALSHA_RO"
    with pytest.raises(ServerRefused, match=re.escape(str(refusals[-1]))):
        server.answer(r.NoPermissionError(DENIED.format("evalsha_ro")))
    assert talk.session.calls_by == "function"
    assert Server(talk.call(commands.counts(), 0)).answer(COUNTS).result == COUNTS


def test_a_server_without_functions_that_denies_scripts_is_said_to_deny_scripts() -> None:
    server = conversation().answer(r.ResponseError("unknown command 'FCALL_RO', with args beginning with: "))
    with pytest.raises(ServerRefused, match="evalsha_ro"):
        server.answer(r.NoPermissionError(DENIED.format("evalsha_ro")))


def test_a_script_that_failed_for_another_reason_says_so() -> None:
    server = conversation().answer(r.NoPermissionError(DENIED.format("fcall_ro")))
    with pytest.raises(ServerRefused, match="access a key"):
        server.answer(r.NoPermissionError("No permissions to access a key"))


def test_a_full_server_that_cannot_load_the_library_takes_this_call_as_a_script() -> None:
    talk = opened()
    server = Server(talk.call(commands.counts(), 0)).answer(r.ResponseError("Function not found"))
    server.answer(r.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."))
    assert server.last[0] == "EVALSHA_RO"
    assert server.answer(COUNTS).result == COUNTS
    assert talk.session.calls_by == "function"


def test_functions_that_are_flushed_again_and_again_do_not_stop_a_call() -> None:
    server, gone = conversation(), r.ResponseError("Function not found")
    for _ in range(3):
        server.answer(gone).answer(b"groupmq_x")
    assert server.last[0] == "EVALSHA_RO"


def test_a_denied_key_is_no_reason_to_use_scripts() -> None:
    talk = opened()
    with pytest.raises(ServerRefused, match="denies this user a command or key"):
        Server(talk.call(commands.counts(), 0)).answer(r.NoPermissionError("No permissions to access a key"))
    assert talk.session.calls_by == "function"


def test_a_blob_is_sent_only_if_there_is_one() -> None:
    talk = client_of(OPTIONS, "x")
    talk.session.opened = True
    assert len(Server(talk.call(commands.counts(), 0)).last) == 5
    assert Server(talk.call(commands.update("x", b"data"), 0)).last[5] == b"data"


def test_a_queue_that_is_gone_is_opened_again_and_the_call_repeated() -> None:
    server = conversation()
    server.answer(r.ResponseError("GROUPMQ_SCHEMA none stored, this script needs 1"))
    assert server.last[1] == functions.load("open").function
    server.answer(OPENED)
    assert server.last == LISTED
    server.answer(1)
    assert server.last == (*server.sent[0], b"", b"7")
    assert server.answer(COUNTS).result == COUNTS


def test_a_queue_that_vanishes_again_and_again_is_an_error_in_the_end() -> None:
    server, gone = conversation(), r.ResponseError("GROUPMQ_SCHEMA none stored")
    for _ in range(2):
        server.answer(gone).answer(OPENED).answer(1)
    server.answer(gone).answer(OPENED)
    with pytest.raises(ScriptError, match="'orders' was deleted each time it was opened"):
        server.answer(1)


@pytest.mark.parametrize("refusal", [r.ResponseError("WRONGTYPE Operation"), r.NoPermissionError("no rights")])
def test_a_queue_that_cannot_be_listed_is_used_all_the_same_and_not_tried_again(refusal: Exception) -> None:
    talk = client_of(OPTIONS, "x")
    assert Server(talk.call(commands.counts(), 0)).answer(OPENED).answer(refusal).answer(COUNTS).result == COUNTS
    assert len(Server(talk.call(commands.counts(), 0)).answer(COUNTS).sent) == 1


def test_a_queue_whose_listing_was_lost_is_listed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = client_of(OPTIONS, "x")
    lost = redis.ConnectionError("refused")
    assert Server(talk.call(commands.counts(), 0)).answer(OPENED).answer(lost).answer(COUNTS).result == COUNTS
    assert len(Server(talk.call(commands.counts(), 0)).answer(COUNTS).sent) == 1, "too early to list it again"
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 11)
    later = Server(talk.call(commands.counts(), 0))
    assert later.last == LISTED
    assert later.answer(0).answer(COUNTS).result == COUNTS
    assert len(Server(talk.call(commands.counts(), 0)).answer(COUNTS).sent) == 1, "done"


def test_who_only_looks_at_a_queue_does_not_list_it() -> None:
    talk = client_of(OPTIONS, "x")
    talk.session.accept_stored_settings(make=False)
    assert Server(talk.call(commands.counts(), 0)).answer(OPENED).answer(COUNTS).result == COUNTS


def test_a_process_with_other_settings_is_refused_with_what_differs_and_what_to_do() -> None:
    server = conversation(opened=False)
    with pytest.raises(ConfigurationError) as caught:
        server.answer([FORMAT, b'{"group_concurrency": 5, "exclusive": true}', HANDLING, b"7"])
    assert str(caught.value) == (
        "queue 'orders' exists with other settings: exclusive is True there and False here; "
        "group_concurrency is 5 there and 2 here. "
        "Leave out the options that should stay as stored; reconfigure() changes what is stored"
    )


def test_a_queue_of_another_format_is_refused_with_both_formats() -> None:
    server = conversation(opened=False)
    expected = f"'orders' is stored in format 99, this release of groupmq reads format {commands.SCHEMA}"
    with pytest.raises(ConfigurationError, match=expected):
        server.answer([b"99", b"{}", None, None])


def test_an_error_of_a_function_names_lua_file_and_line_and_is_not_repeated() -> None:
    script = functions.load("counts")
    written = "local active, delayed = redis.call('ZCARD', K.active), redis.call('ZCARD', K.delayed)"
    line = script.library.text.splitlines().index(written) + 1
    file = (resources.files("groupmq.protocol") / "lua" / "counts.lua").read_text("utf-8")
    place = file.splitlines().index(written) + 1
    server = conversation(patience=60)
    with pytest.raises(ScriptError, match=rf"^counts: WRONGTYPE Operation on @counts\.lua:{place}\.$"):
        server.answer(r.ResponseError(f"WRONGTYPE Operation script: abc, on @user_function:{line}."))


def test_without_patience_a_lost_connection_raises_at_once() -> None:
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
        assert server.last == server.sent[0]
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
    assert server.last == server.sent[0]


def test_settings_are_replaced_only_if_they_are_still_what_was_read() -> None:
    was = StoredQueue(commands.SCHEMA, "{}", "", b"")
    assert commands.open_queue(OPTIONS).args != commands.open_queue(OPTIONS, was).args


def test_who_was_overtaken_by_another_change_keeps_both() -> None:
    talk = opened()
    server = Server(talk.reconfigure({"max_attempts": 7}))
    assert server.last[1] == functions.load("look_settings").function
    server.answer(OPENED)
    other = [FORMAT, b'{"group_concurrency": 4}', HANDLING, b"8"]
    server.answer(other)
    sent = msgspec.msgpack.decode(server.last[4])
    assert sent["was"] == ['{"group_concurrency": 4}', HANDLING.decode()]
    assert json.loads(sent["config"]) == {"group_concurrency": 4}
    assert json.loads(sent["handling"])["max_attempts"] == 7
    stored = [FORMAT, sent["config"].encode(), sent["handling"].encode(), b"9"]
    assert server.answer(stored).answer(1).result is False, "no setting that the scripts act on has changed"
    assert (talk.session.options.max_attempts, talk.session.options.group_concurrency) == (7, 4)


def test_a_call_says_by_which_settings_it_was_made_and_is_made_again_when_they_have_changed() -> None:
    talk = client_of(OPTIONS, "x")
    Server(talk.call(commands.counts(), 0)).answer(OPENED).answer(1).answer(COUNTS)
    server = Server(talk.call(commands.counts(), 0))
    assert server.last[5:] == (b"", b"7")
    server.answer(r.ResponseError("GROUPMQ_SETTINGS have changed: 8"))
    assert server.last[1] == functions.load("look_settings").function
    handling = HANDLING.replace(b'"max_attempts": 3', b'"max_attempts": 7')
    server.answer([FORMAT, b'{"group_concurrency": 2}', handling, b"8"])
    assert server.last[5:] == (b"", b"8")
    assert server.answer(COUNTS).result == COUNTS
    assert talk.session.options.max_attempts == 7


def changing(talk: ClientByHand) -> Server:
    talk.session.opened = True
    return Server(talk.call(commands.remove(["x"]), 60))


def test_a_call_that_changes_something_names_its_requester_and_counts() -> None:
    talk = client_of(OPTIONS, "x")
    first, second = changing(talk), changing(talk)
    assert first.last[7] != second.last[7], "two calls under way share a requester"
    first.answer([1])
    third = changing(talk)
    assert (third.last[5:7], third.last[7:]) == ((b"", b""), (first.sent[0][7], 2))


def test_a_call_that_may_have_arrived_is_sent_again_with_the_same_requester_and_says_so() -> None:
    talk = client_of(OPTIONS, "x")
    server = changing(talk).answer(redis.ConnectionError("lost")).answer(None)
    assert server.last == (*server.sent[0], b"again")
    server.answer(redis.ConnectionError("lost")).answer(None)
    assert server.last == (*server.sent[0], b"again")
    assert server.answer([1]).result == [True]
    assert changing(talk).last[7] != server.sent[0][7], "a request of that requester may still be under way"


def test_a_call_that_was_refused_did_not_arrive() -> None:
    server = changing(client_of(OPTIONS, "x")).answer(r.ReadOnlyError("replica")).answer(None)
    assert server.last == server.sent[0]


def test_calls_that_only_look_and_calls_of_workers_have_none() -> None:
    talk = client_of(OPTIONS, "x")
    talk.session.opened = True
    for call in (commands.counts(), commands.get(["x"]), commands.beat("w", None, 1000, []), commands.leave([], [])):
        assert len(Server(talk.call(call, 0)).last) == 5
