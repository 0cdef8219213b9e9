"""The Python libraries, each installed from PyPI into its own virtual environment: their dependencies conflict."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.peers.library import Library

FOLDER = Path(__file__).resolve().parent.parent / ".envs"
INSTALL_TIMEOUT = 300.0
FAST = ("uvloop; sys_platform != 'win32'", "hiredis")
"""Packages that groupmq uses as well. They do no harm if a library cannot use them."""


@dataclass(frozen=True, slots=True)
class Peer:
    """`needs` are the packages for pip, the library itself first; its script is `bench.peers.python.<key>_peer`.

    Releases are pinned: the next one may need other calls, and a wrong measurement is worse than an old version.
    """

    key: str
    title: str
    needs: tuple[str, ...]
    most: int = 100


PEERS = (
    Peer("arq", "arq", ("arq==0.28.*",)),
    Peer("saq", "SAQ", ("saq[redis]==0.26.*", "typing_extensions")),
    Peer("taskiq", "taskiq", ("taskiq==0.13.*", "taskiq-redis==1.*")),
    Peer("streaq", "streaq", ("streaq==7.*",)),
    # A process runs one job at a time, and a run with 100 processes would measure only the machine.
    Peer("rq", "RQ", ("rq==2.*",), most=10),
    Peer("dramatiq", "dramatiq", ("dramatiq[redis]==2.*",)),
    Peer("huey", "huey", ("huey==3.*", "redis>=5")),
    Peer("celery", "Celery", ("celery[redis]==5.*",)),
    Peer("docket", "pydocket", ("pydocket==0.27.*",)),
    Peer("bullmq_py", "BullMQ (Python)", ("bullmq==3.*",)),
)


class NotInstalled(RuntimeError):
    """pip or the network failed."""


def install(folder: Path, say: Callable[[str], None]) -> tuple[list[Library], dict[str, str]]:
    """Install the Python libraries. Returns those that are ready, and why others are not. Environments are reused."""
    libraries = []
    failed: dict[str, str] = {}
    for peer in PEERS:
        try:
            libraries.append(_ready(peer, folder / peer.key, say))
        except NotInstalled as error:
            say(f"without {peer.title}: {error}")
            failed[peer.title] = f"not installed: {error}"
    return libraries, failed


def _ready(peer: Peer, folder: Path, say: Callable[[str], None]) -> Library:
    """Install a library unless its stamp shows that this was done. The stamp is written last, so an environment without
    it, or with another one, is created again."""
    stamp = folder / "installed.json"
    needs = [*peer.needs, *FAST]
    wanted = " ".join(needs)
    if _read(stamp).get("needs") != wanted:
        say(f"installing {peer.title} into {folder}")
        _make(folder, needs)
        stamp.write_text(json.dumps({"needs": wanted, "version": _version(peer, folder)}))
    command = (str(_python(folder)), "-m", f"bench.peers.python.{peer.key}_peer")
    return Library(peer.key, peer.title, _read(stamp)["version"], command, {"PYTHONPATH": ""}, "python", peer.most)


def _make(folder: Path, needs: list[str]) -> None:
    try:
        venv.create(folder, clear=True, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotInstalled(f"could not make {folder}: {error}") from error
    _run([str(_python(folder)), "-m", "pip", "install", "-q", "--disable-pip-version-check", *needs])


def _version(peer: Peer, folder: Path) -> str:
    name = peer.needs[0].partition("=")[0].partition("[")[0]
    code = f"import importlib.metadata; print(importlib.metadata.version({name!r}))"
    return _run([str(_python(folder)), "-c", code])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from error
    if done.returncode != 0:
        raise NotInstalled((done.stderr.strip().splitlines() or ["pip failed"])[-1])
    return done.stdout.strip()


def _python(folder: Path) -> Path:
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def _read(stamp: Path) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return {}
    return found
