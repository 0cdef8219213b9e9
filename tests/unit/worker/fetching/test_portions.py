"""How many reports or items one call carries, by count, by bytes and by cost."""

from __future__ import annotations

from groupmq.client.job import Job
from groupmq.core.codec import JSON
from groupmq.core.record import Record
from groupmq.protocol import commands
from groupmq.worker.fetching.portions import portion_of
from groupmq.worker.running.outcome import RunReport


def job_of(group: str | None) -> Job:
    return Job(None, JSON, "j", "active", Record(0, 0, 0, 0, 0, False, group, {}, b"null"), 1)


def report(group: str | None, result: bytes | None = None) -> RunReport:
    return RunReport(job_of(group), commands.completed("j", 1, result), "completed", result=result)


def test_few_reports_go_out_together() -> None:
    assert portion_of([report(f"g{i}") for i in range(80)]) == 80


def test_reports_of_one_group_are_cheaper_than_those_of_many() -> None:
    many = portion_of([report(f"g{i}") for i in range(1000)])
    one = portion_of([report("g") for _ in range(1000)])
    assert 80 <= many < one < 1000


def test_jobs_without_a_group_count_as_one_group() -> None:
    assert portion_of([report(None) for _ in range(1000)]) == portion_of([report("g") for _ in range(1000)])


def test_completed_jobs_that_are_kept_cost_more() -> None:
    reports = [report("g") for _ in range(1000)]
    assert 80 <= portion_of(reports, kept=True) < portion_of(reports)


def test_failures_cost_more_than_completions() -> None:
    failed = [RunReport(job_of(f"g{i}"), commands.failed("j", 1, "boom", ""), "failed") for i in range(1000)]
    assert portion_of(failed) < portion_of([report(f"g{i}") for i in range(1000)])


def test_large_results_go_out_one_by_one() -> None:
    large = [report(f"g{i}", bytes(2 * 1024 * 1024)) for i in range(3)]
    assert portion_of(large) == 1
    assert portion_of([*large[:0], report("g")]) == 1


def test_a_portion_of_nothing_is_nothing() -> None:
    assert portion_of([]) == 0


def test_chunks_are_bounded_by_count_and_by_bytes() -> None:
    sizes = [10] * (2 * commands.CHUNK + 1)
    assert [len(chunk) for chunk in commands.chunked(sizes, int)] == [commands.CHUNK, commands.CHUNK, 1]
    large = [commands.CHUNK_BYTES // 2] * 5
    assert [len(chunk) for chunk in commands.chunked(large, int)] == [2, 2, 1]
    assert [len(chunk) for chunk in commands.chunked([10 * commands.CHUNK_BYTES] * 2, int)] == [1, 1]
