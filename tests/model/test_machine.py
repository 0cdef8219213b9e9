"""The scripts do what the model says, whatever is done in whatever order.

The size is for CI; GROUPMQ_MODEL_EXAMPLES=5000 looks longer.
"""

from __future__ import annotations

import os

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import QueueMachine

EXAMPLES = int(os.environ.get("GROUPMQ_MODEL_EXAMPLES", "250"))
STEPS = 50


@pytest.mark.timeout(120 + EXAMPLES)
def test_replies_and_keyspace_equal_the_model_after_every_step(client: redis.Redis) -> None:
    run_state_machine_as_test(
        lambda: QueueMachine(client),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
