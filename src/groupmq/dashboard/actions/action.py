"""An action: first a plan, then the change itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from groupmq.dashboard.actions.given import Given
from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.plan import Field
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq.dashboard.actions.tasks import Task


@dataclass(slots=True)
class Plan:
    """The plan of an action: what it would do now."""

    effects: list[str]
    order: str
    jobs: int | None = None
    refused: str | None = None
    fields: list[Field] = field(default_factory=list)
    sample: list[JobRow] = field(default_factory=list)
    title: str = ""
    """Replaces the title of the action where it can name the job or the group."""
    button: str = ""
    """Replaces the text on the button of the action."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Hidden fields that the form sends, besides its own fields and those that the action was given."""
    review: str = ""
    """If not empty: the text of a button that asks for another plan first. Until then, nothing can be done."""
    edit: bool = False
    """The plan was made from a form, and the reader can go back to it."""


@dataclass(slots=True)
class Done:
    """The result of an action."""

    text: str
    count: int | None = None
    task: Task | None = None
    ok: bool = True
    gone: bool = False
    """The job that the action was about is gone, and so is its page."""


class Action(ABC):
    """Something that a reader can do to a queue. `plan` changes nothing and says what `act` would do."""

    name: ClassVar[str]
    title: ClassVar[str]
    button: ClassVar[str]
    words: ClassVar[str]
    """For the description of the API."""
    takes: ClassVar[tuple[str, ...]] = ()
    """Names of its fields."""
    danger: ClassVar[bool] = False
    bulk: ClassVar[bool] = False
    """Whether a task carries it out."""
    bulk_if_many: ClassVar[bool] = False
    """Whether a task carries it out if it concerns many jobs."""

    @abstractmethod
    async def plan(self, view: View, given: Given) -> Plan: ...

    @abstractmethod
    async def act(self, view: View, given: Given) -> Done: ...


def jobs_of(n: int, adjective: str = "") -> str:
    """`1 job`, `1,204 waiting jobs`."""
    word = f"{adjective} job" if adjective else "job"
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
