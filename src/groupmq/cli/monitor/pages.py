"""The pages besides the queue's: one job, and the help. Pure."""

from __future__ import annotations

import io
import json
from typing import Any

from rich.console import Console
from rich.text import Text

from groupmq import Job
from groupmq.cli.monitor.state import State
from groupmq.cli.monitor.text import BOLD, DIM, Glyphs
from groupmq.cli.options.target import UNSET_ATTEMPTS
from groupmq.cli.output import tables
from groupmq.cli.output.readable_data import NotJson

LONGEST = 8000
"""Characters of a job's data, stack or log that are shown; `groupmq job status` shows all."""

_HELP = """\
Keys
  {arrows}move the selection; scroll a page
  PgUp PgDn, g G   the same, in larger steps
  Enter            inspect the selected job: data, error, stack, log
  r                retry the selected job, if it has failed
  p                pause or resume the queue; asks first
  ? or h           this page
  q, Esc           back; from the queue, q leaves

The view
  oldest wait      of the jobs that could start now
  held             of the first jobs of groups that are busy, parked, paused
  RATES            jobs per second, mean of the last ten seconds; one bar
                   a refresh; 1 HOUR: how many since an hour ago
  BUSIEST GROUPS   most waiting and running jobs
  LONGEST WAITING  their first job has waited longest
  STATE            ready: may start a job. busy: all slots in use.
                   parked: its first job has to wait. paused: by an operator.
                   blocked: by a job that failed for good
  BLOCKED GROUPS   each waits until its failed job is retried, skipped
                   (groupmq job skip) or removed
  OPEN BREAKERS    their attempts fail in a row; RESTS: until one job is tried
  RECENT FAILURES  the newest failed attempt of each job; NOW: what became
                   of the job since
"""


def help_lines(width: int, glyphs: Glyphs) -> list[Text]:
    lines = _HELP.format(arrows=f"{glyphs.arrows}, j k".ljust(17)).splitlines()
    return [Text(one, BOLD if one and not one.startswith(" ") else "") for one in lines]


def job_lines(state: State, width: int) -> list[Text]:
    """All that is known of the job that is inspected."""
    if state.job is None:
        return [Text(f"job {tables.words(state.job_id)}", DIM)]
    return _rendered(tables.facts(_facts(state.job)), width)


def _facts(job: Job) -> list[tuple[str, Any]]:
    of = "" if job.max_attempts == UNSET_ATTEMPTS else f" of {job.max_attempts}"
    return [
        ("job", job.id),
        ("state", job.state),
        ("group", job.group_id),
        ("attempts", f"{job.attempts_made}{of}"),
        ("priority", job.priority or None),
        ("created", job.created_at),
        ("starts", job.run_at),
        ("started", job.started_at),
        ("finished", job.finished_at),
        ("worker", job.worker),
        ("stalls", job.stalls or None),
        ("reason", _block(job.failed_reason)),
        ("data", _json(job.data)),
        ("progress", None if job.progress is None else _json(job.progress)),
        ("result", _json(job.return_value) if job.state == "completed" else None),
        ("stack", _block(job.stacktrace)),
        ("log", _block("\n".join(f"{line.at:%H:%M:%S}  {line.text}" for line in job.logs))),
    ]


def _json(value: Any) -> Text:
    """In one line if it is short, else indented."""
    if isinstance(value, NotJson):
        return Text(str(value))
    line = json.dumps(value, ensure_ascii=False, default=str)
    if len(line) <= 60 or len(line) > LONGEST:
        return _block(line) or Text()
    return _block(json.dumps(value, ensure_ascii=False, indent=2, default=str)) or Text()


def _block(text: str | None) -> Text | None:
    if not text:
        return None
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n({len(text) - LONGEST:,} more characters; groupmq job status shows all)"
    return tables.lines(text)


def _rendered(table: Any, width: int) -> list[Text]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard", highlight=False)
    lines = console.render_lines(table, pad=False)
    return [Text.assemble(*((part.text, part.style or "") for part in one)) for one in lines]
