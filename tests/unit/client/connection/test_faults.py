"""Exceptions of the client library are translated to our errors."""

from __future__ import annotations

import asyncio
import ssl

import pytest
import redis
import valkey
from redis import exceptions as r

from groupmq.client.connection.faults import is_moved, is_no_script, is_passing, understood
from groupmq.core.errors import ConnectionLost, GroupMQError, JobNotFound, ScriptError, ServerRefused

WHERE = "redis://example:6379"

LOST = [
    redis.ConnectionError("Connection closed by server."),
    redis.TimeoutError("Timeout reading from socket"),
    valkey.exceptions.ConnectionError("Error 111 connecting to example:6379. Connection refused."),
    ConnectionRefusedError(111, "Connection refused"),
    ConnectionResetError(104, "Connection reset by peer"),
    BrokenPipeError(32, "Broken pipe"),
    asyncio.IncompleteReadError(b"", 5),
    TimeoutError(),
    EOFError(),
    OSError(113, "No route to host"),
]
REFUSED = [
    ("LOADING", True, r.BusyLoadingError("Redis is loading the dataset in memory")),
    ("READONLY", True, r.ReadOnlyError("You can't write against a read only replica.")),
    ("OOM", False, r.OutOfMemoryError("command not allowed when used memory > 'maxmemory'.")),
    ("OOM", False, r.ResponseError("OOM command not allowed when used memory > 'maxmemory'.")),
    ("BUSY", True, r.ResponseError("BUSY Redis is busy running a script.")),
    ("MISCONF", False, r.ResponseError("MISCONF Errors writing to the AOF file")),
    ("MASTERDOWN", True, r.ResponseError("MASTERDOWN Link with MASTER is down")),
    ("CLUSTERDOWN", True, r.ClusterDownError("CLUSTERDOWN Hash slot not served")),
    ("TRYAGAIN", True, r.ResponseError("TRYAGAIN Multiple keys request during rehashing of slot")),
    ("UNBLOCKED", True, r.ResponseError("UNBLOCKED force unblock from blocking operation")),
    ("NOREPLICAS", False, r.ResponseError("NOREPLICAS Not enough good replicas to write.")),
    ("NOPERM", False, r.NoPermissionError("this user has no permissions to run the 'evalsha' command")),
    ("WRONGPASS", False, r.AuthenticationError("invalid username-password pair or user is disabled.")),
]


@pytest.mark.parametrize("error", LOST, ids=lambda e: type(e).__name__)
def test_a_broken_connection_is_lost_and_worth_another_try(error: BaseException) -> None:
    known = understood(error, WHERE)
    assert isinstance(known, ConnectionLost)
    assert isinstance(known, ConnectionError)
    assert is_passing(known)
    assert str(known).startswith(f"the server at {WHERE} cannot be reached: ")
    assert not str(known).endswith(": ")


@pytest.mark.parametrize(("kind", "passing", "error"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_a_refusal_says_which_and_whether_waiting_helps(kind: str, passing: bool, error: BaseException) -> None:
    known = understood(error, WHERE)
    assert isinstance(known, ServerRefused)
    assert known.kind == kind
    assert is_passing(known) is passing
    assert str(known).startswith(f"the server at {WHERE} ")
    assert str(error) in str(known)


@pytest.mark.parametrize(
    "error",
    [
        r.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"),
        r.ResponseError("ERR user_script:5: attempt to index a nil value"),
        r.DataError("Invalid input of type: 'object'."),
        r.NoScriptError("No matching script."),
    ],
)
def test_an_error_of_the_script_or_the_caller_is_not_tried_again(error: BaseException) -> None:
    known = understood(error, WHERE)
    assert isinstance(known, ScriptError)
    assert not is_passing(known)


def test_an_exception_nobody_knows_names_itself() -> None:
    known = understood(KeyError("x"), WHERE)
    assert isinstance(known, ScriptError)
    assert "KeyError" in str(known)


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = JobNotFound("x")
    assert understood(error, WHERE) is error
    assert not is_passing(error)


@pytest.mark.parametrize(
    "error", [r.NoScriptError("No matching script."), r.ResponseError("NOSCRIPT No matching script.")]
)
def test_an_unknown_script_is_recognized_by_class_or_by_word(error: BaseException) -> None:
    assert is_no_script(error)


@pytest.mark.parametrize("error", [r.ResponseError("ERR NOSCRIPT"), redis.ConnectionError("x"), GroupMQError("x")])
def test_nothing_else_is_an_unknown_script(error: BaseException) -> None:
    assert not is_no_script(error)


SCRIPT = " script: 0123456789abcdef0123456789abcdef01234567, on @user_script:42."


@pytest.mark.parametrize(
    "error",
    [
        r.ReadOnlyError("You can't write against a read only replica." + SCRIPT),
        r.OutOfMemoryError("command not allowed when used memory > 'maxmemory'." + SCRIPT),
        r.ResponseError("OOM command not allowed when used memory > 'maxmemory'." + SCRIPT),
        r.ResponseError("MISCONF Errors writing to the AOF file" + SCRIPT),
    ],
)
def test_a_refusal_names_no_script(error: BaseException) -> None:
    known = str(understood(error, WHERE))
    assert "script" not in known
    assert "0123456789abcdef" not in known


def test_an_error_of_a_script_keeps_its_line_and_loses_its_hash() -> None:
    known = str(understood(r.ResponseError("WRONGTYPE Operation against a key." + SCRIPT), WHERE))
    assert known == "WRONGTYPE Operation against a key. on @user_script:42."


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("MOVED", r.MovedError("11958 127.0.0.1:7879")),
        ("ASK", r.AskError("11958 127.0.0.1:7879")),
        ("MOVED", r.ResponseError("MOVED 11958 127.0.0.1:7879")),
        ("CROSSSLOT", r.ClusterCrossSlotError("Keys in request don't hash to the same slot")),
    ],
)
def test_a_node_of_a_cluster_is_named_so(kind: str, error: BaseException) -> None:
    known = understood(error, WHERE)
    assert isinstance(known, ServerRefused)
    assert (known.kind, is_passing(known)) == (kind, False)
    assert "is a node of a cluster and does not own the slot of this queue" in str(known)
    assert "7879" not in str(known)


@pytest.mark.parametrize(
    "error", [redis.TimeoutError("Timeout connecting to server"), TimeoutError(), ssl.SSLError("x")]
)
def test_a_port_that_may_not_speak_tls_is_hinted_at(error: BaseException) -> None:
    assert str(understood(error, "rediss://example:6379")).endswith("If not, write redis:// instead of rediss://")
    assert "TLS" not in str(understood(error, WHERE))


@pytest.mark.parametrize(("kind", "passing", "error"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_a_server_that_is_no_primary_is_distinguished_from_one_that_is_busy_or_full(
    kind: str, passing: bool, error: BaseException
) -> None:
    assert is_moved(error) == (kind in ("READONLY", "MASTERDOWN", "LOADING"))


def test_a_broken_connection_says_nothing_about_the_primary() -> None:
    assert not any(is_moved(error) for error in LOST)
