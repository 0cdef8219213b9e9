"""Other users of the host can see a worker's processes and its log: neither may contain a password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from groupmq.sync import Queue
from tests.cli.programs import Programs, children
from tests.support.servers import Server
from tests.support.workers import one_kind

pytestmark = one_kind

PASSWORD = "not-for-the-neighbours"


def family(pid: int) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from family(child)


def test_a_password_is_in_no_list_of_processes_and_in_no_log(programs: Programs) -> None:
    """This covers a supervisor, its worker processes, their children for handlers, and an outage of the server."""
    server = Server.start("valkey", aof=True, config={"requirepass": PASSWORD})
    programs.url = f"redis://:{PASSWORD}@127.0.0.1:{server.port}/0"
    try:
        with Queue("orders", programs.url) as queue:
            jobs = [queue.add(n, group_id=f"g{n}") for n in range(4)]
            words = ("--processes", "2", "--executor", "process", "--log-level", "debug")
            program = programs.worker(*words, spec="tasks:plain")
            for job in jobs:
                job.result(timeout=60)
        seen = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in family(program.pid)}
        assert len(seen) >= 4, seen
        assert not any(PASSWORD in line for line in seen.values())
        said = len(program.log)
        server.kill()
        program.until(lambda: "127.0.0.1" in program.log[said:], "the outage is logged")
        assert PASSWORD not in program.log
    finally:
        server.stop()
