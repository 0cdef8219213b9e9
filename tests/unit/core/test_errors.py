"""The errors of groupmq: every one can be imported from the path that stored jobs, filters and pickles name."""

from __future__ import annotations

import inspect

import pytest

import groupmq
from groupmq import errors
from groupmq.core import errors as defined

ERRORS = [
    one
    for one in vars(defined).values()
    if inspect.isclass(one) and issubclass(one, Exception) and not one.__name__.startswith("_")
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_an_error_is_where_its_path_says(error: type[Exception]) -> None:
    assert error.__module__ == "groupmq.errors"
    assert getattr(errors, error.__name__) is error
    assert getattr(groupmq, error.__name__) is error
    assert error.__name__ in errors.__all__
