"""A job before it is stored: the arguments of `add`, checked and encoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from groupmq.core import backoff as backoffs
from groupmq.core import codec, limits, record
from groupmq.core.backoff import Backoff
from groupmq.core.checks import text, whole
from groupmq.core.durations import epoch_millis, millis
from groupmq.core.errors import ConfigurationError
from groupmq.core.ids import new_id, new_ids
from groupmq.core.job_options import JOB_OPTIONS
from groupmq.core.limits import Debounce, Dedupe
from groupmq.core.queue_options import MAX_ATTEMPTS, MAX_PRIORITY, QueueOptions, on_failed, on_retry
from groupmq.core.tuples import of_class

FIELDS_OF_ITEMS = JOB_OPTIONS | {"data", "headers"}
"""`headers` is for code that copies jobs; an `add` gets its headers from the middleware."""
_STORED = frozenset({"timeout", "backoff", "on_retry", "on_failed"})
"""Options that are kept in `Draft.options`."""


class Draft(NamedTuple):
    """One checked item of an add."""

    id: str
    group_id: str | None
    priority: int
    order_ms: int | None
    delay_ms: int
    run_at_ms: int
    max_attempts: int
    options: dict[str, Any] | None
    data: bytes
    body: bytes
    ttl_ms: int = 0
    dedupe: Dedupe | None = None
    unique_ms: int = 0
    """How long the id stays taken after the job has ended; 0 = not at all."""

    @property
    def nonce(self) -> str | None:
        """Distinguishes this add from an older one with the same id; None if the id itself does."""
        return self.options.get("n") if self.options else None


def draft(
    queue: QueueOptions,
    data: Any,
    headers: Mapping[str, str] | None = None,
    ids: Iterator[str] | None = None,
    /,
    *,
    group_id: object = None,
    priority: object = 0,
    job_id: object = None,
    **others: Any,
) -> Draft:
    """Check and encode one job. Every mistake raises a ConfigurationError that names the argument.

    `others` are the other options of JobOptions. Those that are left out must cost next to nothing: thousands of drafts
    are made in a second. `ids` supplies the id of a job that was given none.
    """
    group = None if group_id is None else text(group_id, "group_id")
    urgency = whole(priority, "priority", 0, MAX_PRIORITY)
    own_id = text(job_id, "job_id") if job_id is not None else new_id() if ids is None else next(ids)
    raw = codec.encode(queue.serializer, data, queue.max_payload, "data")
    if not others and job_id is None and not headers:  # most jobs have a group and nothing else
        body = record.pack_body(0, False, (group or "").encode(), None, raw)
        return of_class(Draft, (own_id, group, urgency, None, 0, 0, 0, None, raw, body, 0, None, 0))
    if not JOB_OPTIONS.issuperset(others):
        raise TypeError(f"not options of a job: {', '.join(sorted(others.keys() - JOB_OPTIONS))}")
    given = others.get
    delay, run_at, dedupe, unique_for = given("delay"), given("run_at"), given("dedupe"), given("unique_for")
    if delay is not None and run_at is not None:
        raise ConfigurationError("delay, run_at: give one of them, not both")
    delay_ms = 0 if delay is None else millis(delay, "delay")
    once = None
    if dedupe is not None:
        once = limits.dedupe(dedupe)
        if isinstance(once, Debounce):
            if delay is not None or run_at is not None:
                raise ConfigurationError("dedupe: a Debounce brings its own delay; give neither delay nor run_at")
            delay_ms = once.delay_ms
    unique_ms = 0 if unique_for is None else millis(unique_for, "unique_for", minimum=0.001)
    if unique_ms and job_id is None:
        raise ConfigurationError("unique_for: needs a job_id; an id that groupmq makes is never used twice")
    ttl, order_ms, max_attempts = given("ttl"), given("order_ms"), given("max_attempts")
    ttl_ms = 0 if ttl is None else millis(ttl, "ttl", minimum=0.001)
    order = None if order_ms is None else whole(order_ms, "order_ms", -(2**63), 2**63 - 1)
    attempts = 0 if max_attempts is None else whole(max_attempts, "max_attempts", 1, MAX_ATTEMPTS)
    options: dict[str, Any] | None = None
    if job_id is not None or headers or not _STORED.isdisjoint(others):
        options = _stored_options(others, headers, named=job_id is not None)
    holds = options.get("f") if options else None
    terms = attempts, order is not None, (group or "").encode(), options
    body = record.pack_body(*terms, raw, has_ttl=ttl_ms > 0, holds=holds)
    time = 0 if run_at is None else max(0, epoch_millis(run_at, "run_at"))
    first = own_id, group, urgency, order, delay_ms, time, attempts
    return of_class(Draft, (*first, options, raw, body, ttl_ms, once, unique_ms))


def drafts_from(queue: QueueOptions, items: Iterable[Any], headers: dict[str, str] | None = None) -> list[Draft]:
    """Drafts from the items of an `add_many`."""
    ids = new_ids()
    return [_draft_from(queue, item, position, headers, ids) for position, item in enumerate(items)]


def _draft_from(
    queue: QueueOptions, item: object, position: int, headers: dict[str, str] | None, ids: Iterator[str]
) -> Draft:
    """A draft from a mapping with the arguments of `add`, or a JobDraft."""
    fields: Any = item
    if type(fields) is not dict:  # a dict is a Mapping, and asking takes a tenth of this function's time
        fields = getattr(item, "fields", item)
        if not isinstance(fields, Mapping):
            raise ConfigurationError.expected(f"items[{position}]", "a mapping or a JobDraft", item)
    if not fields.keys() <= FIELDS_OF_ITEMS:
        fields = _without_repeat(fields, position)
    if "data" not in fields:
        raise ConfigurationError(f"items[{position}]: data is missing")
    try:
        return _draft_of(queue, fields, headers, ids)
    except ConfigurationError as error:
        raise type(error)(f"items[{position}].{error}") from error.__cause__


def _without_repeat(fields: Mapping[str, Any], position: int) -> Mapping[str, Any]:
    """The fields without a `repeat` that is None. Any other field that an item cannot have is refused."""
    if fields.get("repeat") is not None:
        raise ConfigurationError(f"items[{position}].repeat: repeating jobs are added one by one, with add()")
    left = {name: value for name, value in fields.items() if name != "repeat"}
    unknown = sorted(str(name) for name in left if name not in FIELDS_OF_ITEMS)
    if unknown:
        known = ", ".join(sorted(FIELDS_OF_ITEMS))
        raise ConfigurationError(f"items[{position}]: unknown {', '.join(unknown)}; known: {known}")
    return left


def check(queue: QueueOptions, fields: Mapping[str, Any]) -> None:
    """Raise the error that `add_many` would raise for such an item; nothing is written."""
    if "data" not in fields:
        raise ConfigurationError("data is missing")
    _draft_of(queue, fields, None, None)


def _draft_of(
    queue: QueueOptions, fields: Mapping[str, Any], headers: dict[str, str] | None, ids: Iterator[str] | None
) -> Draft:
    options = {**fields}
    data = options.pop("data")
    if "headers" in options:
        own = options.pop("headers")
        if own is not None and not isinstance(own, Mapping):
            raise ConfigurationError.expected("headers", "a mapping of names to text", own)
        headers = {**(headers or {}), **(own or {})}
    return draft(queue, data, headers, ids, **options)


def _stored_options(
    given: Mapping[str, Any], headers: Mapping[str, str] | None, *, named: bool
) -> dict[str, Any] | None:
    """The rarely used options, as stored with the job; None if there are none."""
    stored: dict[str, Any] = {}
    if (timeout := given.get("timeout")) is not None:
        stored["t"] = millis(timeout, "timeout", minimum=0.001)
    if (backoff := given.get("backoff")) is not None:
        policy = backoffs.checked(backoff, "backoff")
        if not isinstance(policy, Backoff):
            raise ConfigurationError(
                "backoff: a callable cannot be stored with a job; give it to the Queue or the Worker"
            )
        stored["b"] = policy.packed()
    if (retry := given.get("on_retry")) is not None:
        stored["y"] = on_retry(retry) == "yield"
    if (failed := given.get("on_failed")) is not None:
        stored["f"] = on_failed(failed) == "hold"
    if named:
        stored["n"] = new_id()
    if headers:
        if not all(isinstance(part, str) for pair in headers.items() for part in pair):
            raise ConfigurationError.expected("headers", "text for names and values", headers)
        stored["h"] = headers
    return stored or None
