"""Each mistake of an operator is answered with one clear line on stderr and the documented exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from groupmq import RateLimit
from groupmq.core.codec import Serializer
from groupmq.sync import Queue
from tests.cli.operating import Command
from tests.support.workers import one_kind

pytestmark = one_kind

WRONG_STATE = [
    (["job", "retry", "a"], "job 'a' is waiting, expected failed"),
    (["job", "promote", "a"], "job 'a' is waiting, expected delayed"),
    (["job", "fail", "done"], "job 'done' is completed, expected waiting or delayed or active"),
    (["job", "cancel", "bad-1"], "job 'bad-1' is failed"),
    (["repeat", "remove", "hourly"], "there is no repeat 'hourly' without a group; there is one of group 'sweep'"),
    (["repeat", "remove", "daily", "--group", "sweep"], "there is no repeat 'daily' of group 'sweep'"),
]
BAD_USAGE = [
    (["job", "add", "--payload", "{bad"], "not JSON: Expecting property name"),
    (["job", "add", "--payload", "hello"], "Text needs quotes of its own"),
    (["job", "add", "--payload", "NaN"], "NaN is not JSON"),
    (["job", "add", "--payload", "[" * 100_000], "nested too deeply"),
    (["job", "add", "--payload", "@/no/such/file"], "cannot read /no/such/file"),
    (["job", "add"], "Missing option '--payload'"),
    (["job", "add", "--payload", "1", "--delay", "soon"], "'soon' is not a duration"),
    (["job", "add", "--payload", "1", "--delay", "-5"], "'-5' is not a duration"),
    (["job", "add", "--payload", "1", "--run-at", "2100-01-01"], "has no time zone"),
    (["job", "add", "--payload", "1", "--run-at", "noon"], "'noon' is not a time"),
    (["job", "add", "--payload", "1", "--delay", "1", "--run-at", "5"], "give one of them, not both"),
    (["job", "add", "--payload", "1", "--priority", "2000"], "priority: expected an integer from 0 to 1023"),
    (["job", "add", "--payload", "1", "--group", ""], "group_id: expected a non-empty string"),
    (["job", "add", "a{b", "--payload", "1"], "a name without braces"),
    (["job", "add", "--payload", '"' + "x" * 2**20 + '"'], "more than max_payload"),
    (["job", "add", "--payload", "1", "--unique-for", "1h"], "unique_for: needs a job_id"),
    (["job", "add", "--payload", "1", "--id", "a", "--unique-for", "soon"], "'soon' is not a duration"),
    (["job", "add", "other", "--queue", "orders", "--payload", "1"], "two queues are named, 'other' and 'orders'"),
    (["queue", "purge", "other", "--namespace", "orders", "--yes"], "two queues are named, 'other' and 'orders'"),
    (["queue", "purge", "", "--yes"], "the name of the queue is empty"),
    (["check", "other", "-q", "orders"], "two queues are named, 'other' and 'orders'"),
    (["job", "status"], "Missing argument 'ID'"),
    (["job", "retry"], "Give the ID of one job, or --all"),
    (["job", "retry", "a", "--all"], "Give the ID of one job, or --all"),
    (["job", "retry", "a", "--failed"], "go with --all"),
    (["job", "retry", "a", "--dry-run"], "go with --all"),
    (["job", "retry", "a", "--error", "ValueError"], "go with --all"),
    (["job", "retry", "--all", "--older", "soon"], "'soon' is not a duration"),
    (["job", "list", "--state", "lost"], "'lost' is not one of"),
    (["job", "list", "--limit", "0"], "Invalid value for '--limit'"),
    (["job", "import", "/no/such/file"], "No such file"),
    (["queue", "purge"], "not a terminal; give --yes"),
    (["queue", "purge", "--state", "active", "--yes"], "--force removes them all the same"),
    (["queue", "purge", "--state", "failed", "--all", "--yes"], "--state or --all, not both"),
    (["queue", "clean"], "Missing option '--older-than'"),
    (["queue", "clean", "--older-than", "0", "--state", "waiting"], "not a terminal; give --yes"),
    (["job", "list", "--redis-url", "http://x"], "redis: expected a URL"),
    (["job", "frobnicate"], "No such command 'frobnicate'"),
    (["job", "list", "--frob"], "No such option"),
    (["completion", "tcsh"], "'tcsh' is not one of"),
]


@pytest.mark.parametrize("verb", ["status", "retry", "fail", "remove", "promote", "cancel"])
def test_an_unknown_id_is_refused(command: Command, stocked: Queue, verb: str) -> None:
    assert command("job", verb, "nobody").line(1).startswith("job 'nobody' does not exist")


@pytest.mark.parametrize(("words", "said"), WRONG_STATE)
def test_a_wrong_state_is_refused_and_nothing_changes(
    command: Command, stocked: Queue, words: list[str], said: str
) -> None:
    before = stocked.get_jobs()
    assert said in command(*words).line(1)
    assert stocked.get_jobs() == before


@pytest.mark.parametrize(("words", "said"), BAD_USAGE)
def test_bad_usage_is_refused_and_nothing_changes(
    command: Command, stocked: Queue, words: list[str], said: str
) -> None:
    before = stocked.get_jobs()
    assert said in command(*words).line(2)
    assert stocked.get_jobs() == before


@pytest.mark.parametrize("words", [["queue", "stats", "oders"], ["job", "list", "--queue", "oders"]])
def test_a_queue_that_does_not_exist_is_refused_and_not_made(
    command: Command, client: redis.Redis, words: list[str]
) -> None:
    assert "queue 'oders' does not exist" in command(*words).line(1)
    assert client.dbsize() == 0


def test_a_missing_queue_name_is_refused(url: str) -> None:
    assert command_without_queue(url)("job", "list").line(2).startswith("which queue?")


def command_without_queue(url: str) -> Command:
    return Command(url, queue="")


def test_an_add_to_a_full_group_is_refused(command: Command, url: str) -> None:
    with Queue("orders", url, max_group_size=1, rate_limit=RateLimit(5, per=1)) as queue:
        queue.add(1, group_id="g")
    assert "group 'g' is full" in command("job", "add", "--payload", "1", "--group", "g").line(1)


class Upside:
    """A serializer that is not JSON."""

    def encode(self, value: object, /) -> bytes:
        return b"\xff" + str(value).encode()

    def decode(self, raw: bytes, /) -> object:
        return raw[1:].decode()


def test_data_that_is_not_json_can_be_looked_at_but_not_exported(command: Command, url: str) -> None:
    upside: Serializer = Upside()
    with Queue("orders", url, serializer=upside) as queue:
        queue.add("hello", job_id="a")
    assert "<6 bytes that are not JSON>" in command("job", "status", "a").out
    assert command("job", "status", "a", "--json").json["data"] == "<6 bytes that are not JSON>"
    assert "its data is not JSON" in command("job", "export").line(1)


def test_a_folder_that_cannot_be_written_is_named(command: Command, stocked: Queue, tmp_path: Path) -> None:
    assert "no/file" in command("job", "export", "--output", str(tmp_path / "no" / "file")).line(2)
