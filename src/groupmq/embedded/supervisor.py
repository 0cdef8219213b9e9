"""Keep one embedded server running for as long as a process holds on to it.

Started by `groupmq.embedded`, by path and isolated: it uses the standard library only, so watching a server
costs a bare interpreter instead of a whole client library. A process "holds on" by keeping a socket to this
process open; the kernel closes it even on kill -9, and when the last one is closed the server is stopped.

    supervisor.py RUN_DIR DATA_DIR COMMAND...    stdin: the first holder's socket; DATA_DIR may be empty
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 10.0
"""Seconds a former server gets to let go of the data, and ours to stop before it is killed."""


class Holders:
    """The processes that need the server, each by its open socket."""

    def __init__(self, first: socket.socket, run_dir: Path, data_dir: Path | None) -> None:
        self._open = {first}
        self._data_dir = data_dir
        self._control: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(first, selectors.EVENT_READ)
        if data_dir is not None:
            self._control = socket.socket(socket.AF_UNIX)
            self._control.bind(str(run_dir / "control"))
            self._control.listen(64)
            self._control.setblocking(False)
            self._selector.register(self._control, selectors.EVENT_READ)

    def watch(self, exited: int) -> bool:
        """Wait for the server's exit (True) or until the last holder has let go (False)."""
        self._selector.register(exited, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == exited:
                    return True
                if key.fileobj is self._control:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and has_let_go(key.fileobj):
                    if self._is_last(key.fileobj):
                        return False
                    self._forget(key.fileobj)

    def _accept(self) -> None:
        while self._control is not None:
            try:
                holder, _ = self._control.accept()
            except BlockingIOError:
                return
            self._open.add(holder)
            self._selector.register(holder, selectors.EVENT_READ)

    def _is_last(self, holder: socket.socket) -> bool:
        """Whether no other process is left; if so, none can join before this process has ended.

        A process joins while it holds the lock. So a process that joins finds either a server that stays or none.
        """
        if self._open != {holder}:
            return False
        if self._data_dir is None:
            return True
        descriptor = os.open(self._data_dir / "groupmq.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._accept()
        if self._open == {holder}:
            return True
        os.close(descriptor)
        return False

    def _forget(self, holder: socket.socket) -> None:
        self._selector.unregister(holder)
        self._open.discard(holder)
        holder.close()


def has_let_go(holder: socket.socket) -> bool:
    """Whether the other end is closed; data that it may have sent is ignored."""
    try:
        return not holder.recv(1024)
    except OSError:
        return True


def claim(data_dir: Path) -> int:
    """Lock the data; the server inherits the lock, so no two servers ever write the same files."""
    descriptor = os.open(data_dir / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(f"another server is still using {data_dir}") from None
            time.sleep(0.02)
        else:
            return descriptor


def start(command: list[str], log: Path, guard: int | None) -> tuple[subprocess.Popen[bytes], int]:
    """Start the server; return it and a descriptor that becomes readable when it has exited."""
    exited, alive = os.pipe()
    inherited = [alive] if guard is None else [alive, guard]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=inherited,
            preexec_fn=die_with_parent,  # safe in a process with one thread
        )
    for descriptor in inherited:
        os.close(descriptor)
    return server, exited


def die_with_parent() -> None:
    """Have the kernel stop the server should this process be killed; only Linux offers that."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def end(server: subprocess.Popen[bytes]) -> None:
    """Stop the server: by SIGTERM, so that it writes its data, then by SIGKILL."""
    server.terminate()
    try:
        server.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def supervise(run_dir: Path, data_dir: Path | None, command: list[str], first: socket.socket) -> None:
    """Run the server until it exits or no process needs it; notify the first holder if it exits on its own."""
    guard = claim(data_dir) if data_dir else None
    holders = Holders(first, run_dir, data_dir)
    log = run_dir / "server.log"
    server, exited = start(command, log, guard)
    try:
        if holders.watch(exited):
            first.sendall(log.read_bytes()[-4000:])
    finally:
        end(server)


def main() -> None:
    """Detach from the process that started us, so that it has no child to wait for, and supervise."""
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    run_dir, data_dir, *command = sys.argv[1:]
    first = socket.socket(fileno=0)
    try:
        supervise(Path(run_dir), Path(data_dir) if data_dir else None, command, first)
    except Exception as error:
        with contextlib.suppress(OSError):
            first.sendall(f"{type(error).__name__}: {error}".encode())
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)


if __name__ == "__main__":
    main()
