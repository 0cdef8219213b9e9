"""Pauses between tries grow up to a longest one, and go on for ever."""

from __future__ import annotations

from itertools import islice

import pytest

from groupmq.runtime.pauses import growing


@pytest.mark.parametrize(
    ("factor", "expected"), [(2, [0.1, 0.2, 0.4, 0.5, 0.5]), (1.5, pytest.approx([0.1, 0.15, 0.225, 0.3375, 0.5]))]
)
def test_pauses_grow_up_to_the_longest(factor: float, expected: list[float]) -> None:
    assert list(islice(growing(0.1, 0.5, factor), 5)) == expected
