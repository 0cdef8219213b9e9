"""Errors as pages that help. They never name the server's address, a secret or a line of our code."""

from __future__ import annotations

import logging

import msgspec
from starlette.exceptions import HTTPException

from groupmq import (
    ConfigurationError,
    ConnectionLost,
    GroupFull,
    GroupMQError,
    JobNotFound,
    PayloadTooLarge,
    QueueNotFound,
    ServerRefused,
    WrongState,
)
from groupmq.dashboard.documents.error import ErrorPage

_logger = logging.getLogger("groupmq.dashboard")


class Refused(Exception):
    """Raised for a request that is refused; says why."""

    def __init__(self, status: int, title: str, text: str, hint: str = "") -> None:
        super().__init__(title)
        self.status = status
        self.title = title
        self.text = text
        self.hint = hint
        self.headers: dict[str, str] = {}


def error_page(error: Exception, back: str) -> ErrorPage:
    """The content of an error page."""
    status, title, text, hint = _parts(error)
    return ErrorPage(
        status=status,
        title=title,
        text=text,
        hint=hint,
        unreachable=isinstance(error, ConnectionLost | ServerRefused),
        back=back,
    )


def _parts(error: Exception) -> tuple[int, str, str, str]:
    if isinstance(error, Refused):
        return error.status, error.title, error.text, error.hint
    if isinstance(error, HTTPException):
        return error.status_code, _TITLES.get(error.status_code, "That did not work"), "", ""
    if isinstance(error, msgspec.ValidationError):
        return 400, "The address is not valid", f"{error}.", "Go back and choose from the page."
    if isinstance(error, GroupMQError):
        return _parts_of_queue_error(error)
    _logger.error("a dashboard request failed; the reader gets an error page", exc_info=error)
    return 500, "Something went wrong here", "The error is in the log of the dashboard.", "Try again."


def _parts_of_queue_error(error: GroupMQError) -> tuple[int, str, str, str]:
    if isinstance(error, JobNotFound):
        text = f"There is no job {error.job_id!r}."
        return 404, "No such job", text, "It ended and is not kept, was removed, or never existed."
    if isinstance(error, QueueNotFound):
        return 404, "No such queue", "There is no queue of this name here.", "A queue exists from its first job on."
    if isinstance(error, WrongState):
        wanted = " or ".join(error.expected)
        text = f"Job {error.job_id!r} is {error.actual}; this works only if it is {wanted}."
        return 409, "Not in this state", text, ""
    if isinstance(error, GroupFull):
        return 409, "The group is full", "It has as many live jobs as it may have; nothing was added.", ""
    if isinstance(error, PayloadTooLarge):
        return 413, "That is too large", str(error), ""
    if isinstance(error, ConfigurationError):
        return 400, "That is not possible", str(error), ""
    if isinstance(error, ConnectionLost | ServerRefused):
        text = "The server that holds the queues does not answer, or refuses for now."
        return 503, "The server cannot be reached", text, "Jobs that are stored are safe. This page tries again."
    _logger.error("a call to the server failed (%s); the reader gets an error page", type(error).__name__)
    return 500, "Something went wrong", "The server refused a call; see the log of the dashboard.", "Try again."


_TITLES = {404: "There is no such page", 405: "This method is not allowed"}
