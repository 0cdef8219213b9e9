"""`groupmq job export` and `job import`: jobs as JSON lines."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any

import click

from groupmq.cli.exits import BAD_USAGE, NOT_FOUND, fail
from groupmq.cli.job.json_lines import item_of, line_of
from groupmq.cli.job.selection import ids_of, jobs_of
from groupmq.cli.options.shared import examples, group_option, states_option
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output.answers import as_line
from groupmq.cli.output.progress import LongWork
from groupmq.cli.output.tables import number
from groupmq.sync import Queue

AT_ONCE = 500
_IN_MEMORY = 16 * 1024 * 1024


@click.command(
    "export",
    short_help="Write jobs as JSON lines.",
    epilog=examples(
        "groupmq job export --queue orders --output orders.jsonl",
        "groupmq job export --queue orders --state failed | jq -c .data",
        "groupmq job export -q orders | groupmq job import -q orders --redis-url redis://new-host -",
    ),
)
@states_option("Jobs of this state; may be repeated.  [default: waiting, delayed]")
@group_option("Only jobs of this group.")
@click.option("--output", "-o", default="-", metavar="FILE", help="Where to write.  [default: - (stdout)]")
@target_options
def export_jobs(target: Target, states: tuple[str, ...], group_id: str | None, output: str) -> None:
    """Write jobs as JSON lines, one job each, in a form that `job import` reads.

    Nothing is changed. For an exact copy, pause the queue first: jobs that move while they are read may be missed.
    """
    with target.existing() as queue, _writable(output) as file:
        ids = {state: ids_of(queue, state, group_id=group_id) for state in states or ("waiting", "delayed")}
        with LongWork("exporting", sum(map(len, ids.values()))) as work:
            for state, found in ids.items():
                for job in jobs_of(queue, found, state, group_id):
                    try:
                        line = line_of(job)
                    except ValueError as error:
                        fail(f"{error}; {work.done:,} were exported before it", NOT_FOUND)
                    file.write(as_line(line) + "\n")
                    work.advance()
    if output == "-" and not work.interrupted:
        return
    text = f"exported {number(work.done, 'job')} to {output}"
    work.report(target, "exported", lambda: text, queue=queue.name, file=output)


def _writable(path: str) -> AbstractContextManager[IO[str]]:
    try:
        return click.open_file(path, "w", encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}", BAD_USAGE)


@click.command(
    "import",
    short_help="Add jobs from JSON lines.",
    epilog=examples(
        "groupmq job import --queue orders orders.jsonl",
        "groupmq job import --queue orders --check orders.jsonl",
        """echo '{"data": {"n": 1}, "group_id": "g"}' | groupmq job import --queue orders -""",
    ),
)
@click.argument("file", type=click.File("r", "utf-8"), metavar="FILE")
@click.option("--check", is_flag=True, help="Only check the file; nothing is added.")
@click.option("--new-ids", is_flag=True, help="Give every job a new id.")
@click.option("--max-payload", type=click.IntRange(1, 256 * 1024 * 1024), default=1024 * 1024, show_default=True)
@target_options
def import_jobs(target: Target, file: IO[str], check: bool, new_ids: bool, max_payload: int) -> None:
    """Add jobs from JSON lines (- = stdin), as `job export` or `job list --json` writes them.

    Every line is checked before anything is added. Each becomes a job that waits, whatever state it had, or that is
    delayed until its run_at; group, order, priority, options and id are kept. Ids that exist are skipped, so an import
    that was interrupted can be run again.
    """
    with target.open(max_payload=max_payload) as queue, _rewindable(file) as lines:
        total = sum(1 for _ in _items(queue, lines, new_ids))
        if check:
            work = LongWork("checking", total)
            work.done = total
            return work.report(target, "checked", lambda: f"{number(total, 'job')}, no mistake", queue=queue.name)
        existing = 0
        with LongWork("importing", total) as work:
            items: list[dict[str, Any]] = []
            for item in _items(queue, lines, new_ids):
                items.append(item)
                if len(items) == AT_ONCE:
                    existing += _add(queue, items, work)
                    items = []
            existing += _add(queue, items, work)
        text = f"imported {number(work.done - existing, 'job')}"
        text += f"; {number(existing, 'id')} existed already" if existing else ""
        work.done -= existing
        work.report(target, "imported", lambda: text, queue=queue.name, existing=existing)


@contextmanager
def _rewindable(file: IO[str]) -> Iterator[IO[str]]:
    """A copy of the lines that can be read twice, which standard input cannot."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8") as copy:
        try:
            shutil.copyfileobj(file, copy)
        except UnicodeDecodeError:
            fail(f"{getattr(file, 'name', 'stdin')}: it is not UTF-8 text; nothing was added", BAD_USAGE)
        yield copy


def _items(queue: Queue, lines: IO[str], new_ids: bool) -> Iterator[dict[str, Any]]:
    lines.seek(0)
    for at, line in enumerate(lines, 1):
        if line.strip():
            try:
                item = item_of(line, new_id=new_ids)
                queue.check_job(item)
            except ValueError as error:
                fail(f"line {at}: {error}; nothing was added", BAD_USAGE)
            yield item


def _add(queue: Queue, items: list[dict[str, Any]], work: LongWork) -> int:
    """Add jobs; returns how many existed already."""
    existing = sum(job.duplicate for job in queue.add_many(items))
    work.advance(len(items))
    return existing
