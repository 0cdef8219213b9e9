"""The scripts behave like the model for any sequence of steps.

By default the tests try the same stories each time, so that a failure is due to a change. GROUPMQ_MODEL_EXAMPLES=5000
tries that many new ones.
"""

from __future__ import annotations

import os

import pytest
import redis

from tests.model.backlog import BacklogMachine
from tests.model.batching import BatchMachine
from tests.model.machine import QueueMachine
from tests.model.offering import OfferMachine
from tests.model.rowing import RowMachine
from tests.model.running import run

HUNT = os.environ.get("GROUPMQ_MODEL_EXAMPLES")
EXAMPLES = int(HUNT or 120)
FIRST = None if HUNT else 0


@pytest.mark.timeout(480 + EXAMPLES)  # a story that fails is shortened for up to five minutes
def test_replies_and_keyspace_equal_the_model_after_every_step(client: redis.Redis) -> None:
    run(QueueMachine, client, EXAMPLES, first=FIRST)


@pytest.mark.timeout(480 + EXAMPLES)  # a story that fails is shortened for up to five minutes
def test_the_same_where_most_jobs_are_taken_in_rows(client: redis.Redis) -> None:
    run(RowMachine, client, EXAMPLES, first=FIRST)


@pytest.mark.timeout(480 + EXAMPLES)  # a story that fails is shortened for up to five minutes
def test_the_same_where_more_is_due_than_one_call_lets_join(client: redis.Redis) -> None:
    run(BacklogMachine, client, EXAMPLES, first=FIRST)


@pytest.mark.timeout(480 + EXAMPLES)  # a story that fails is shortened for up to five minutes
def test_the_same_with_handlers_of_batches(client: redis.Redis) -> None:
    run(BatchMachine, client, EXAMPLES, first=FIRST)


@pytest.mark.timeout(480 + EXAMPLES)  # a story that fails is shortened for up to five minutes
def test_the_same_where_adds_grant_jobs_to_idle_workers(client: redis.Redis) -> None:
    run(OfferMachine, client, EXAMPLES, first=FIRST)
