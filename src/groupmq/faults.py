"""What an exception of the client library means for us. By class name, so that redis-py and valkey-py read alike."""

from __future__ import annotations

from groupmq.errors import ConnectionLost, GroupMQError, ScriptError, ServerRefused

_REFUSALS = {
    "LOADING": "is loading its data",
    "READONLY": "is a read-only replica",
    "OOM": "is out of memory",
    "BUSY": "is busy with a long script",
    "MISCONF": "cannot persist and refuses writes",
    "MASTERDOWN": "is a replica without its primary",
    "CLUSTERDOWN": "says the cluster is down",
    "TRYAGAIN": "is moving the queue's slot",
    "UNBLOCKED": "ended the blocking read",
    "NOREPLICAS": "has too few replicas to accept writes",
    "NOAUTH": "wants credentials",
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
_PASSING = frozenset({"LOADING", "READONLY", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED"})


def is_no_script(error: BaseException) -> bool:
    """The server does not know the script: restarted, failed over, or flushed."""
    return "NoScriptError" in _class_names(error) or str(error).startswith("NOSCRIPT")


def understood(error: BaseException, where: str) -> GroupMQError:
    """The error of ours that says what happened. `where` names the server, without secrets."""
    if isinstance(error, GroupMQError):
        return error
    names = _class_names(error)
    message = str(error)
    kind = next((_BY_CLASS[name] for name in names if name in _BY_CLASS), message.split(" ", 1)[0])
    if kind == "WRONGPASS" and ("required" in message or "already authenticated" in message):
        kind = "NOAUTH"  # no password was given; the latter is what the greeting of RESP3 says of it
    if kind in _REFUSALS:
        return ServerRefused(kind, f"the server at {where} {_REFUSALS[kind]}: {message}")
    if "ResponseError" in names:
        return ScriptError(message)
    if isinstance(error, OSError | EOFError | TimeoutError) or "ConnectionError" in names or "TimeoutError" in names:
        return ConnectionLost(f"the server at {where} cannot be reached: {message or type(error).__name__}")
    return ScriptError(f"unexpected {type(error).__name__} from the client library: {message}")


def is_passing(error: BaseException) -> bool:
    """Waiting may help: the connection is down, or the server will be ready later."""
    return isinstance(error, ConnectionLost) or (isinstance(error, ServerRefused) and error.kind in _PASSING)


def _class_names(error: BaseException) -> list[str]:
    return [cls.__name__ for cls in type(error).__mro__]
