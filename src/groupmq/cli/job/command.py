"""`groupmq job`: commands about one job or a selection of jobs."""

from __future__ import annotations

import click

from groupmq.cli.job.add import add
from groupmq.cli.job.change import cancel, fail_job, promote, remove, skip
from groupmq.cli.job.retry import retry
from groupmq.cli.job.show import list_jobs, status
from groupmq.cli.job.transfer import export_jobs, import_jobs
from groupmq.cli.options.shared import Ordered, examples


@click.group(
    cls=Ordered,
    epilog=examples(
        """groupmq job add orders --payload '{"amount": 999}' --group user:42""",
        "groupmq job list orders --state failed",
        "groupmq job retry --queue orders --all --failed",
    ),
)
def job() -> None:
    """Add, look at and change jobs.

    A job is waiting, delayed, active, completed or failed. Finished jobs are kept only as far as the workers'
    keep_completed and keep_failed say.
    """


for command in (add, status, list_jobs, retry, skip, promote, fail_job, cancel, remove, export_jobs, import_jobs):
    job.add_command(command)
