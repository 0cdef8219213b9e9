"""Settings of a queue are checked when they are made. Errors name the argument, the expected and the given value."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from groupmq import Queue, Retention, Worker
from groupmq.core.backoff import Backoff
from groupmq.core.checks import text
from groupmq.core.codec import JSON
from groupmq.core.errors import ConfigurationError, GroupMQError
from groupmq.core.limits import Breaker, RateLimit
from groupmq.core.ordering import Ordering
from groupmq.core.queue_options import QueueOptions
from groupmq.core.settings import QueueSettings, StoredQueue, adopted, changed, differences
from groupmq.protocol.call import SCHEMA
from tests.support.hostile import Opaque

NOWHERE = "redis://127.0.0.1:1"
LONG = "x" * 4097

BAD_SETTINGS: list[tuple[str, Any, str]] = [
    ("name", "", "a non-empty string"),
    ("name", None, "a non-empty string"),
    ("name", 5, "a non-empty string"),
    ("name", b"orders", "a non-empty string"),
    ("name", True, "a non-empty string"),
    ("name", "a{b", "without braces"),
    ("name", "a}b", "without braces"),
    ("name", "{a}", "without braces"),
    ("name", LONG, "at most 4096 bytes"),
    ("name", "\ud800", "lone surrogates"),
    ("prefix", "", "a non-empty string"),
    ("prefix", None, "a non-empty string"),
    ("prefix", 7, "a non-empty string"),
    ("prefix", "p{", "without braces"),
    ("prefix", "}", "without braces"),
    ("job_timeout", 0, "between 0.05 s"),
    ("job_timeout", -1, "between 0.05 s"),
    ("job_timeout", 0.049, "between 0.05 s"),
    ("job_timeout", "30", "seconds"),
    ("job_timeout", True, "seconds"),
    ("job_timeout", None, "seconds"),
    ("job_timeout", math.nan, "between"),
    ("job_timeout", math.inf, "between"),
    ("job_timeout", timedelta(days=40_000), "between"),
    ("max_attempts", 0, "an integer from 1 to 65535"),
    ("max_attempts", -1, "an integer from 1"),
    ("max_attempts", 65_536, "an integer from 1"),
    ("max_attempts", 2.0, "an integer from 1"),
    ("max_attempts", True, "an integer from 1"),
    ("max_attempts", "3", "an integer from 1"),
    ("max_attempts", None, "an integer from 1"),
    ("backoff", -1, "a Backoff"),
    ("backoff", "fast", "a Backoff"),
    ("backoff", True, "a Backoff"),
    ("backoff", None, "a Backoff"),
    ("on_retry", "drop", "'hold' or 'yield'"),
    ("on_retry", True, "'hold' or 'yield'"),
    ("on_retry", None, "'hold' or 'yield'"),
    ("on_retry", ["hold"], "'hold' or 'yield'"),
    ("keep_completed", -1, "an integer from 0"),
    ("keep_completed", 1.5, "an integer from 0"),
    ("keep_completed", True, "an integer from 0"),
    ("keep_completed", None, "an integer from 0"),
    ("keep_failed", -1, "an integer from 0"),
    ("keep_failed", "all", "an integer from 0"),
    ("keep_failed", False, "an integer from 0"),
    ("group_concurrency", 0, "an integer from 1 to 65535"),
    ("group_concurrency", 65_536, "an integer from 1"),
    ("group_concurrency", True, "an integer from 1"),
    ("group_concurrency", 1.0, "an integer from 1"),
    ("ordering", "arrival", "Ordering.event_time(...), Ordering.arrival(...) or None"),
    ("ordering", 5, "Ordering.event_time"),
    ("ordering", True, "Ordering.event_time"),
    ("fairness", "random", "'oldest' or 'round-robin'"),
    ("fairness", "round_robin", "'oldest' or 'round-robin'"),
    ("fairness", None, "'oldest' or 'round-robin'"),
    ("fairness", ["oldest"], "'oldest' or 'round-robin'"),
    ("exclusive", 1, "True or False"),
    ("exclusive", "yes", "True or False"),
    ("exclusive", None, "True or False"),
    ("rate_limit", 5, "a RateLimit(count, per=seconds) or None"),
    ("rate_limit", "5/s", "a RateLimit"),
    ("rate_limit", True, "a RateLimit"),
    ("group_rate_limit", 5, "a RateLimit(count, per=seconds) or None"),
    ("group_rate_limit", (5, 1), "a RateLimit"),
    ("max_group_size", 0, "an integer from 1"),
    ("max_group_size", -1, "an integer from 1"),
    ("max_group_size", 1.0, "an integer from 1"),
    ("max_group_size", True, "an integer from 1"),
    ("max_group_size", 2**31 + 1, "an integer from 1"),
    ("priority_ageing", 0, "between"),
    ("priority_ageing", -1, "between"),
    ("priority_ageing", math.nan, "between"),
    ("priority_ageing", math.inf, "between"),
    ("priority_ageing", "60", "seconds"),
    ("priority_ageing", True, "seconds"),
    ("max_payload", 0, "an integer from 1"),
    ("max_payload", -1, "an integer from 1"),
    ("max_payload", True, "an integer from 1"),
    ("max_payload", 1e6, "an integer from 1"),
    ("serializer", None, "encode and decode"),
    ("serializer", object(), "encode and decode"),
    ("serializer", "json", "encode and decode"),
    ("redis", 5, "a URL"),
    ("redis", b"redis://127.0.0.1", "a URL"),
    ("redis", object(), "a URL"),
]


@pytest.mark.parametrize(
    ("argument", "value", "expected"), BAD_SETTINGS, ids=lambda v: repr(v).partition(" at 0x")[0][:25]
)
def test_a_bad_setting_names_argument_expectation_and_what_came(argument: str, value: Any, expected: str) -> None:
    arguments = {"name": "q", "redis": NOWHERE, argument: value}
    with pytest.raises(ConfigurationError) as caught:
        Queue(**arguments)
    message = str(caught.value)
    assert message.startswith(f"{argument}: expected ")
    assert expected in message
    assert f", got {repr(value)[:20]}" in message
    assert len(message) < 400


def test_a_configuration_error_is_a_value_error_and_of_our_family() -> None:
    with pytest.raises(ValueError, match=r"^name: "):
        Queue("", NOWHERE)
    assert issubclass(ConfigurationError, GroupMQError)


def test_a_value_that_cannot_be_shown_is_refused_by_name_as_well() -> None:
    with pytest.raises(ConfigurationError, match=r"^name: expected a non-empty string, got "):
        Queue(Opaque(), NOWHERE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "age", "named"),
    [
        (-1, None, "count"),
        (True, None, "count"),
        (1.0, None, "count"),
        (None, -1, "age"),
        (None, "1", "age"),
        (1, True, "age"),
    ],
)
def test_a_bad_retention_is_refused_by_name(count: Any, age: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^Retention\.{named}: expected "):
        Retention(count=count, age=age)


async def test_retention_bounds_number_age_or_both() -> None:
    options = Queue(
        "q", NOWHERE, keep_completed=Retention(age=60), keep_failed=Retention(5, timedelta(hours=1))
    ).options
    assert options.keep == {"completed": -1, "failed": 5}
    assert (options.keep_completed.age_ms, options.keep_failed.age_ms) == (60_000, 3_600_000)


async def test_the_defaults_are_those_of_the_contract() -> None:
    options = Queue("orders", NOWHERE).options
    assert options == QueueOptions(name="orders")
    assert (options.job_timeout_ms, options.max_attempts, options.on_retry) == (30_000, 3, "hold")
    assert options.keep == {"completed": 100, "failed": 10_000}
    assert options.keep_failed == Retention(count=10_000, age=30 * 24 * 3600)
    assert (options.group_concurrency, options.max_payload, options.prefix) == (1, 1024 * 1024, "groupmq")


@pytest.mark.parametrize("name", ["a", "a:b", "x y\n\x00*?[", "ö\U0001f600", "x" * 4096])
def test_any_other_text_is_a_name(name: str) -> None:
    assert text(name, "name") == name


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"handler": None}, "handler"),
        ({"handler": "module:function"}, "handler"),
        ({"handler": 5}, "handler"),
        ({"queue": "orders"}, "queue"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"concurrency": 1.5}, "concurrency"),
        ({"name": ""}, "name"),
        ({"heartbeat": 30}, "heartbeat"),
        ({"heartbeat": -1}, "heartbeat"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"backoff": "soon"}, "backoff"),
        ({"on_error": "print"}, "on_error"),
        ({"maintenance": 1}, "maintenance"),
        ({"cleanup_interval": 0}, "cleanup_interval"),
        ({"stalled_interval": -5}, "stalled_interval"),
        ({"max_stalled": -1}, "max_stalled"),
        ({"max_stalled": True}, "max_stalled"),
        ({"blocking_timeout": 0}, "blocking_timeout"),
        ({"blocking_timeout": math.nan}, "blocking_timeout"),
        ({"atomic_completion": "yes"}, "atomic_completion"),
        ({"prefetch": -1}, "prefetch"),
        ({"prefetch": True}, "prefetch"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": "all"}, "batch_size"),
        ({"executor": "fork"}, "executor"),
    ],
)
async def test_a_bad_setting_of_a_worker_is_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {"queue": Queue("q", NOWHERE, job_timeout=30), "handler": print} | arguments
    with pytest.raises(ConfigurationError, match=rf"^{re.escape(named)}: expected .*, got "):
        Worker(given.pop("queue"), given.pop("handler"), **given)


async def test_a_heartbeat_is_not_judged_by_a_lease_that_nobody_has_given() -> None:
    """The stored lease may be longer. The heartbeat is checked against it when the worker starts."""
    assert Worker(Queue("q", NOWHERE), print, heartbeat=60).heartbeat == 60


def test_what_cannot_be_combined_with_ageing_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"^priority_ageing: needs fairness='oldest'"):
        Queue("q", NOWHERE, priority_ageing=60, fairness="round-robin")
    with pytest.raises(ConfigurationError, match=r"^priority_ageing: cannot be combined with Ordering\.event_time$"):
        Queue("q", NOWHERE, priority_ageing=60, ordering=Ordering.event_time(1))


async def test_everything_else_can_be_combined() -> None:
    options = Queue(
        "q",
        NOWHERE,
        ordering=Ordering.arrival(1),
        exclusive=True,
        rate_limit=RateLimit(5, 1),
        group_rate_limit=RateLimit(1, timedelta(seconds=2)),
        max_group_size=7,
        priority_ageing=timedelta(minutes=1),
    ).options
    assert options.rules == {
        "arrival_window": 1000,
        "max_wait": 3000,
        "rate": [5, 1000],
        "group_rate": [1, 2000],
        "exclusive": True,
        "max_group": 7,
        "ageing": 60_000,
    }


async def test_a_queue_of_defaults_gives_the_scripts_no_rules_and_says_only_its_concurrency() -> None:
    options = Queue("q", NOWHERE).options
    assert options.rules == {}
    assert options.shared == '{"group_concurrency": 1}'
    assert QueueOptions("q", fairness="round-robin").rules == {"round_robin": True}


SHARED: list[dict[str, Any]] = [
    {},
    {"group_concurrency": 2},
    {"ordering": Ordering.event_time(1)},
    {"ordering": Ordering.arrival(1)},
    {"fairness": "round-robin"},
    {"exclusive": True},
    {"rate_limit": RateLimit(1, 1)},
    {"rate_limit": RateLimit(1, 2)},
    {"rate_limit": RateLimit(2, 1)},
    {"group_rate_limit": RateLimit(1, 1)},
    {"max_group_size": 5},
    {"priority_ageing_ms": 1000},
    {"on_failed": "hold"},
    {"breaker": Breaker(5, 60)},
    {"breaker": Breaker(5, 61)},
    {"breaker": Breaker(4, 60)},
]


def test_each_shared_setting_is_one_that_processes_can_disagree_on() -> None:
    assert len({QueueOptions("q", **settings).shared for settings in SHARED}) == len(SHARED)


def test_shared_settings_are_read_back_as_they_were_given() -> None:
    options = QueueOptions("q", on_failed="hold", breaker=Breaker(4, 2.5))
    assert options.rules == {"hold": True, "breaker": [4, 2500]}
    settings = QueueSettings.from_stored(json.loads(options.shared))
    assert (settings.on_failed, settings.breaker, settings.unknown) == ("hold", Breaker(4, 2.5), {})
    assert settings.to_dict()["breaker"] == {"failures": 4, "cooldown": 2.5}


def test_settings_that_the_scripts_do_not_act_on_are_stored_apart() -> None:
    """Processes of a release that did not store them compare the other settings, and must find nothing new there."""
    handled = QueueOptions("q", max_attempts=9, job_timeout_ms=1, keep_completed=Retention(count=1))
    assert handled.shared == QueueOptions("q").shared
    assert handled.handling != QueueOptions("q").handling


def test_settings_that_are_each_process_own_are_not_stored() -> None:
    own = QueueOptions("q", max_payload=5, backoff=lambda attempt: 1.0)
    assert (own.shared, own.handling) == (QueueOptions("q").shared, QueueOptions("q").handling)


@pytest.mark.parametrize(
    "given",
    [
        {"job_timeout": timedelta(minutes=2)},
        {"max_attempts": 9},
        {"backoff": Backoff.exponential(base=1, factor=3, max=60, jitter=0)},
        {"backoff": 5},
        {"on_retry": "yield"},
        {"keep_completed": 0},
        {"keep_failed": Retention(age=timedelta(days=7))},
        {"breaker": Breaker(4, 2.5), "ordering": Ordering.arrival(1), "events": False},
        {"priority_ageing": 60},
    ],
)
def test_every_setting_is_read_back_as_it_was_given(given: Any) -> None:
    options = QueueOptions.checked("q", given)
    stored = StoredQueue(SCHEMA, options.shared, options.handling)
    settings = QueueSettings.of(stored)
    assert settings.to_dict() == options.described() | {"unknown": {}}
    assert differences(options, settings) == []
    assert adopted(QueueOptions("q"), settings).described() == options.described()
    name = next(iter(given))
    told = differences(replace(QueueOptions("q"), given=frozenset(given)), settings)
    assert told[0 if len(given) == 1 else -1].startswith(f"{name if len(given) == 1 else 'ordering'} is ")


def test_a_setting_that_was_not_given_never_differs() -> None:
    stored = QueueSettings(max_attempts=9, exclusive=True)
    assert differences(QueueOptions.checked("q", {"max_payload": 5}), stored) == []
    assert differences(QueueOptions.checked("q", {"max_attempts": 3}), stored) == ["max_attempts is 9 there and 3 here"]


def test_a_callable_back_off_stays_the_process_own() -> None:
    options = QueueOptions.checked("q", {"backoff": lambda attempt: 1.0})
    stored = QueueSettings(backoff=Backoff.fixed(7))
    assert differences(options, stored) == []
    assert adopted(options, stored).backoff is options.backoff


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"serializer": JSON}, "serializer: belongs to each process"),
        ({"prefix": "other"}, "prefix: belongs to each process"),
        ({"max_payload": 5}, "max_payload: belongs to each process"),
        ({"backoff": lambda attempt: 1.0}, "backoff: a callable cannot be stored"),
        ({"max_attempts": 0}, "max_attempts: expected"),
        ({"priority_ageing": 5}, "priority_ageing: needs fairness='oldest'"),
    ],
)
def test_a_change_that_cannot_be_stored_is_refused(changes: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        changed(QueueSettings(fairness="round-robin"), "q", changes)


def test_an_unknown_setting_is_named_with_its_neighbour() -> None:
    unknown: Any = {"max_attempt": 5}
    with pytest.raises(TypeError, match="max_attempts"):
        changed(QueueSettings(), "q", unknown)


def test_settings_of_a_newer_release_are_not_overwritten() -> None:
    with pytest.raises(ConfigurationError, match="moon is 5 there, which this release of groupmq does not know"):
        changed(QueueSettings.from_stored({"moon": 5}), "q", {"max_attempts": 5})
