"""The Node libraries: installed from the npm registry into a folder outside the repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.peers.library import FOLDER, Library

# Major versions are pinned: the next one may need other calls, and a wrong measurement is worse than an old version.
PACKAGES = {"bullmq": "6", "groupmq": "1", "bee-queue": "2", "ioredis": "6"}
SCRIPTS = (
    ("bullmq", "BullMQ", "bullmq", "bullmq.js"),
    ("groupmq_node", "GroupMQ (Node)", "groupmq", "groupmq.js"),
    ("bee_queue", "bee-queue", "bee-queue", "bee_queue.js"),
)
INSTALL_TIMEOUT = 300.0


class PeersUnavailable(RuntimeError):
    """Node or npm is missing, or the registry could not be reached."""


def default_folder() -> Path:
    return Path(tempfile.gettempdir()) / "groupmq-bench-peers"


def node_version() -> str | None:
    node = shutil.which("node")
    if node is None:
        return None
    return subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def install(folder: Path) -> list[Library]:
    """Install the Node libraries, and return them. Packages that are already in `folder` are used as they are."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        raise PeersUnavailable("node is not installed")
    if any(_installed_version(folder, package) is None for package in PACKAGES):
        if npm is None:
            raise PeersUnavailable("npm is not installed")
        _npm_install(npm, folder)
    environment = {"NODE_PATH": str(folder / "node_modules"), "NODE_ENV": "production"}
    libraries = []
    for key, title, package, script in SCRIPTS:
        version = _installed_version(folder, package) or "unknown"
        libraries.append(Library(key, title, version, (node, str(FOLDER / script)), environment, "node"))
    return libraries


def _npm_install(npm: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "package.json"
    if not manifest.exists():  # without one, npm would look for a project in the parent folders
        manifest.write_text('{"private": true}\n')
    wanted = [f"{package}@{major}" for package, major in PACKAGES.items()]
    try:
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", *wanted],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PeersUnavailable(f"npm install took more than {INSTALL_TIMEOUT:g} s") from error
    if done.returncode != 0:
        raise PeersUnavailable(f"npm install failed: {done.stderr.strip()[-500:]}")


def _installed_version(folder: Path, package: str) -> str | None:
    manifest = folder / "node_modules" / package / "package.json"
    try:
        return str(json.loads(manifest.read_text())["version"])
    except (OSError, KeyError, ValueError):
        return None
