"""What an exception of the client library means. Decided by class names, so that redis-py and valkey-py both work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from groupmq.core.errors import ConfigurationError, ConnectionLost, GroupMQError, ScriptError, ServerRefused

_REFUSALS = {
    "LOADING": "is loading its data",
    "READONLY": "is a read-only replica",
    "OOM": "is out of memory",
    "BUSY": "is busy with a long script",
    "MISCONF": "cannot persist and refuses writes",
    "MASTERDOWN": "is a replica without its primary",
    "CLUSTERDOWN": "reports that the cluster is down",
    "TRYAGAIN": "is moving the queue's slot",
    "UNBLOCKED": "ended the blocking read",
    "NOREPLICAS": "has too few replicas to accept writes",
    "NOAUTH": "requires credentials",
    "WRONGPASS": "refuses the credentials",
    "NOPERM": "denies this user a command or key",
}
_BY_CLASS = {
    "BusyLoadingError": "LOADING",
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
    "AuthenticationWrongNumberOfArgsError": "NOAUTH",
    "AuthenticationError": "WRONGPASS",
    "NoPermissionError": "NOPERM",
    "TryAgainError": "TRYAGAIN",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
}
_OTHER_SLOT = (
    "is a node of a cluster and does not own the slot of this queue; write redis+cluster:// instead of redis://: "
    "the client then finds the owner of each slot"
)
# Errors of scripts in a slot that is being moved, or in a cluster that is down, do not begin with an error code.
_IN_SCRIPT = {"access a non local key in a cluster node": "TRYAGAIN", "while the cluster is down": "CLUSTERDOWN"}
_CLUSTER = {"MovedError": "MOVED", "AskError": "ASK", "ClusterCrossSlotError": "CROSSSLOT"}
# Where in a script the server refused a command: the hash of the script, and the line, which only script errors keep.
_SCRIPT = re.compile(r"\s*script: (?:\w+, )?on @?\w+:\d+\.?")
_HASH = re.compile(r"script: (?:\w+, )?(?=on @)")
_PASSING = frozenset({"LOADING", "READONLY", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED"})


_NO_DATABASE = "DB index is out of range"
_MOVED = frozenset({"READONLY", "MASTERDOWN", "LOADING"})


class ClosedHere(ConnectionError):
    """This process has closed the connection of a call that was under way. It says nothing about the server."""

    def __init__(self) -> None:
        super().__init__("this process has closed the connection")


def is_moved(error: BaseException) -> bool:
    """Whether the server is not a primary, or was not a moment ago: its address may lead to another server by now."""
    return _kind(error) in _MOVED


def is_lost(error: BaseException) -> bool:
    """Whether the connection is down, or the server did not answer in time."""
    names = _class_names(error)
    known = isinstance(error, ConnectionLost | OSError | EOFError | TimeoutError)
    return known or "ConnectionError" in names or "TimeoutError" in names


def is_away(error: BaseException) -> bool:
    """Whether the server seems to be away: the connection is down, and not because this process has closed it."""
    return is_lost(error) and not isinstance(error, ClosedHere)


def is_refusal(error: BaseException) -> bool:
    """Whether the error comes from the server or from the connection."""
    return is_lost(error) or "RedisError" in _class_names(error)


def is_reply(error: BaseException) -> bool:
    """Whether the server has answered this command with an error, so that the connection can still be used."""
    return "ResponseError" in _class_names(error)


def first_and_last(replies: list[Any]) -> tuple[Any, Any]:
    """The first and last reply to several commands in one write. Raises the first reply that is an error."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies[0], replies[-1]


def is_no_script(error: BaseException) -> bool:
    """Whether the server does not know the script, because it restarted, failed over, or was flushed."""
    return "NoScriptError" in _class_names(error) or str(error).startswith("NOSCRIPT")


def is_no_function(error: BaseException) -> bool:
    """Whether the server lacks our library, because it is new, was flushed, or was replaced by another server."""
    return "Function not found" in str(error)


def is_unavailable(error: BaseException, command: str) -> bool:
    """Whether the server lacks the command, or denies it to this user. Denied keys do not count."""
    message = str(error).lower()
    named = f"'{command}" in message
    return named and (_kind(error) == "NOPERM" or "no permissions" in message or "unknown command" in message)


def is_out_of_memory(error: BaseException) -> bool:
    return _kind(error) == "OOM"


def understood(error: BaseException, where: str) -> GroupMQError:
    """Our error for an exception of the client library. `where` names the server, without secrets."""
    # The client library wraps an error that is raised while it connects.
    ours = next((one for one in _with_causes(error) if isinstance(one, GroupMQError)), None)
    if ours is not None:
        return ours
    names = _class_names(error)
    message = str(error)
    moved = next((_CLUSTER[name] for name in names if name in _CLUSTER), message.split(" ", 1)[0])
    if moved in ("MOVED", "ASK") and "+cluster://" in where:
        return ServerRefused("TRYAGAIN", f"the server at {where} {_REFUSALS['TRYAGAIN']}: {message}")
    if moved in _CLUSTER.values():
        return ServerRefused(moved, f"the server at {where} {_OTHER_SLOT}")
    kind = _kind(error)
    if kind == "WRONGPASS" and ("required" in message or "already authenticated" in message):
        kind = "NOAUTH"  # no password was given; the second text is how HELLO of RESP3 says so
    if kind in _REFUSALS:
        return ServerRefused(kind, f"the server at {where} {_REFUSALS[kind]}: {_SCRIPT.sub('', message)}")
    if _NO_DATABASE in message:
        return ConfigurationError(f"redis: the server at {where} has no database of this number: {message}")
    if "SELECT is not allowed in cluster mode" in message:
        return ConfigurationError(f"redis: the cluster at {where} has database 0 only; leave the number out of the URL")
    if "ResponseError" in names:
        return ScriptError(_HASH.sub("", message))
    if is_lost(error):
        return ConnectionLost(
            f"the server at {where} cannot be reached: {message or type(error).__name__}{_tls(error, where)}"
        )
    return ScriptError(f"unexpected {type(error).__name__} from the client library: {message}")


def speaks_no_tls(error: BaseException) -> bool:
    """Whether the error may be that of a handshake with a port that does not speak TLS."""
    names = _class_names(error)
    return "TimeoutError" in names or "SSLError" in names


def _tls(error: BaseException, where: str) -> str:
    """A hint about TLS: a server without it answers the handshake not at all, or with bytes that cannot be read."""
    if where.startswith("rediss") and any(map(speaks_no_tls, _with_causes(error))):
        return "; does that port speak TLS? If not, write redis:// instead of rediss://"
    return ""


def is_denied(error: BaseException) -> bool:
    """Whether the server does not let this user use the command."""
    return _kind(error) == "NOPERM"


def is_passing(error: BaseException) -> bool:
    """Whether waiting may help: the connection is down, or the server will be ready later."""
    return isinstance(error, ConnectionLost) or (isinstance(error, ServerRefused) and error.kind in _PASSING)


def may_pass(error: BaseException) -> bool:
    """Whether trying again may help: the server is away, or a person may fix it. Refused credentials stay refused."""
    if isinstance(error, ServerRefused):
        return error.kind not in ("NOAUTH", "WRONGPASS", "NOPERM")
    return isinstance(error, ConnectionLost)


def is_cluster_down(error: BaseException) -> bool:
    """Whether the node is cut off from most of its cluster, or no node serves a slot."""
    return _kind(error) == "CLUSTERDOWN"


def _kind(error: BaseException) -> str:
    """The first word of a refusal, which the client library may have turned into a class."""
    message = str(error)
    by_class = next((_BY_CLASS[name] for name in _class_names(error) if name in _BY_CLASS), None)
    in_script = next((kind for words, kind in _IN_SCRIPT.items() if words in message), None)
    return by_class or in_script or message.split(" ", 1)[0]


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    while error is not None and error not in seen:  # an error that is raised again may become its own cause
        yield error
        seen.append(error)
        error = error.__cause__


def _class_names(error: BaseException) -> list[str]:
    return [cls.__name__ for cls in type(error).__mro__]
