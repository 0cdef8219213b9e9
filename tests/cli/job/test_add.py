"""`groupmq job add`: the effects of its options on the job."""

from __future__ import annotations

import json
from pathlib import Path

from groupmq.sync import Queue
from tests.cli.conftest import finish
from tests.cli.operating import Command
from tests.support.workers import one_kind

pytestmark = one_kind


def test_an_id_stays_taken_after_its_job_has_ended(command: Command, orders: Queue, url: str) -> None:
    orders.reconfigure(keep_completed=0)
    words = ("job", "add", "--payload", "1", "--id", "nightly", "--unique-for", "1h")
    assert command(*words).code == 0
    finish(url)
    assert orders.get_job("nightly") is None
    again = command(*words)
    assert (again.code, again.err) == (0, "")
    assert again.out == "the id nightly is taken in orders: its job has ended and is not kept; nothing was added\n"
    answer = command(*words, "--json").json
    assert (answer["id"], answer["duplicate"], answer["state"]) == ("nightly", True, "gone")
    assert orders.get_job_counts().total == 0


def test_an_imported_id_stays_taken_too(command: Command, orders: Queue, url: str, tmp_path: Path) -> None:
    orders.reconfigure(keep_completed=0)
    file = tmp_path / "jobs.jsonl"
    file.write_text(json.dumps({"id": "nightly", "data": 1, "unique_for": 3600}) + "\n")
    assert command("job", "import", str(file)).code == 0
    finish(url)
    assert orders.add(2, job_id="nightly").state == "gone"
    assert command("job", "import", "--new-ids", str(file)).code == 0
    assert orders.get_job_counts().total == 1
