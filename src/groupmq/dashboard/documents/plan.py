"""The document `plan`: what an action will do to how many jobs and to the order, before it does it."""

from __future__ import annotations

from groupmq.dashboard.documents.choice import Choice
from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.record import record


@record
class Field:
    """One input of the action's form."""

    name: str
    label: str
    kind: str = "text"
    """text, number, duration, json, select or checkbox."""
    value: str = ""
    required: bool = False
    hint: str = ""
    placeholder: str = ""
    options: list[Choice]
    error: str | None = None


@record
class PlanPage:
    queue: str
    action: str
    title: str
    button: str
    danger: bool
    bulk: bool
    """Whether it runs as a task that can be stopped."""
    jobs: int | None
    """How many jobs it concerns; None if that is not known or does not apply."""
    effects: list[str]
    order: str
    refused: str | None
    """Why it cannot be done now."""
    fields: list[Field]
    hidden: dict[str, str]
    sample: list[JobRow]
    review: str
    """If not empty: the text of a button that asks for the plan of the filled-in form. Nothing is done before."""
    edit: bool
    """Whether the reader can go back to the form: the same plan with `edit=1`."""
    back: str


def field(name: str, label: str, **rest: object) -> Field:
    return Field(name=name, label=label, **({"options": []} | rest))  # type: ignore[arg-type]
