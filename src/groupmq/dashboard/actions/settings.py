"""Changing the settings that are stored with a queue: a form, then a list of the changes, then the write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from groupmq import ConfigurationError, JobCounts, QueueSettings
from groupmq.dashboard.actions import consequences
from groupmq.dashboard.actions.action import Action, Done, Plan
from groupmq.dashboard.actions.given import BadField, Given
from groupmq.dashboard.documents.choice import choices
from groupmq.dashboard.documents.plan import Field, field
from groupmq.dashboard.documents.settings import WORDS
from groupmq.dashboard.documents.view import View
from groupmq.wording import expected_setting, read_setting, setting

NAMES = tuple(name for name in QueueSettings.names() if name != "partitions")
"""Settings that can be changed while the queue is used. Another number of partitions means moving the jobs."""
SEEN, EDIT = "seen", "edit"
CHOICES = {
    "on_retry": {"hold": "hold: its group waits", "yield": "yield: its group goes on"},
    "on_failed": {"continue": "continue: its group goes on", "hold": "hold: it blocks its group"},
    "fairness": {"oldest": "oldest: the oldest first job", "round-robin": "round-robin: one group after the other"},
    "exclusive": {"no": "no", "yes": "yes"},
    "events": {"yes": "yes", "no": "no"},
}
WHOLE = ("max_attempts", "group_concurrency")


@dataclass(slots=True)
class WantedSettings:
    """The settings that a form or a caller asks for, compared with the stored ones."""

    shown: dict[str, str]
    """Each setting as it is in the form."""
    values: dict[str, Any]
    """The new values of those that change."""
    problems: dict[str, str]
    """Error messages, by setting."""


def wanted(stored: QueueSettings, given: Given) -> WantedSettings:
    """Only settings that the reader changed count: somebody else may have changed others since the form was shown."""
    now = {name: setting(name, getattr(stored, name)) for name in NAMES}
    seen = now | _seen(given)
    found = WantedSettings({name: given.text(name).strip() or now[name] for name in NAMES}, {}, {})
    for name, text in found.shown.items():
        if text in (seen[name], now[name]):
            found.shown[name] = now[name]
            continue
        try:
            if now[name] != seen[name]:
                raise ConfigurationError(f"{name}: the form showed {seen[name]}, and somebody has changed it since")
            value = read_setting(name, text)
            stored.changed(**{name: value})
            found.values[name] = value
        except ConfigurationError as error:
            found.problems[name] = _problem(name, error, now[name])
    if found.values and not found.problems:
        try:
            stored.changed(**found.values)
        except ConfigurationError as error:
            name = str(error).partition(":")[0]
            name = name if name in found.values else next(iter(found.values))
            found.problems[name] = _problem(name, error, now[name])
    return found


def _seen(given: Given) -> dict[str, str]:
    """The values that the form showed; empty for a caller without a form."""
    try:
        found = json.loads(given.text(SEEN) or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise BadField(SEEN, "not a value that this form sends")
    return {name: value for name, value in found.items() if name in NAMES}


def _problem(name: str, error: ConfigurationError, now: str) -> str:
    problem = str(error).removeprefix(f"{name}: ")
    return f"{problem[:1].upper()}{problem[1:]}; it is {now} now"


def _newer(stored: QueueSettings) -> str:
    return (
        f"A newer release of groupmq has stored {', '.join(sorted(stored.unknown))}; change settings with that release."
    )


def _field(name: str, changes: WantedSettings) -> Field:
    value, error = changes.shown[name], changes.problems.get(name)
    if name in CHOICES:
        labels = CHOICES[name]
        options = choices(labels if value in labels else {value: value, **labels}, value)
        return field(
            name, name, kind="select", value=value, options=options, hint=WORDS[name], required=True, error=error
        )
    kind = "number" if name in WHOLE else "text"
    hint = f"{WORDS[name]}; {expected_setting(name)}"
    return field(name, name, kind=kind, value=value, hint=hint, required=True, error=error)


class Reconfigure(Action):
    name = "reconfigure"
    title = "Change settings"
    button = "Change"
    words = "Change settings that are stored with the queue; those that are not given stay as they are."
    takes = (*NAMES, SEEN, EDIT)

    async def plan(self, view: View, given: Given) -> Plan:
        stored = await view.queue.get_settings()
        if stored.unknown:
            return Plan([], "", refused=_newer(stored))
        changes = wanted(stored, given)
        if changes.values and not changes.problems and not given.text(EDIT):
            return _confirmation(stored, changes, await view.queue.get_job_counts())
        seen = {name: setting(name, getattr(stored, name)) for name in NAMES}
        fields = [_field(name, changes) for name in NAMES]
        effects = ["Nothing changes yet: the next step shows what would change."]
        order = (
            "ordering, fairness and priority_ageing change the order of waiting jobs; group_concurrency and on_retry "
            "may let jobs of a group overtake each other."
        )
        return Plan(effects, order, fields=fields, hidden={SEEN: json.dumps(seen)}, review="Review the change")

    async def act(self, view: View, given: Given) -> Done:
        stored = await view.queue.get_settings()
        if stored.unknown:
            return Done(_newer(stored), 0, ok=False)
        changes = wanted(stored, given)
        for name, problem in changes.problems.items():
            raise BadField(name, problem)
        if not changes.values:
            return Done("Every setting has this value already; nothing was changed.", 0, ok=False)
        after = await view.queue.reconfigure(**changes.values)
        values = ", ".join(f"{name} {setting(name, getattr(after, name))}" for name in changes.values)
        return Done(f"Changed: {values}.", len(changes.values))


def _confirmation(stored: QueueSettings, changes: WantedSettings, counts: JobCounts) -> Plan:
    """The plan to confirm. It sends the new values as hidden fields, and nothing for the other settings."""
    after = stored.changed(**changes.values)
    was = {name: setting(name, getattr(stored, name)) for name in changes.values}
    effects = [f"{name}: {was[name]} becomes {setting(name, getattr(after, name))}." for name in changes.values]
    effects += consequences.effects(after, list(changes.values), counts)
    effects.append(
        "Running processes use it from their next call on. A process that starts with another value is refused."
    )
    order = consequences.order(after, list(changes.values))
    n = len(changes.values)
    hidden = {SEEN: json.dumps(was)} | {name: changes.shown[name] for name in changes.values}
    button = "Change it" if n == 1 else f"Change {n} settings"
    return Plan(effects, order, hidden=hidden, title="Change these settings?", button=button, edit=True)


ACTIONS: tuple[Action, ...] = (Reconfigure(),)
