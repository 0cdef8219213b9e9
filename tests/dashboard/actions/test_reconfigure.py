"""Settings of a queue are changed from the page: the form, the plan, mistakes, permissions and the audit."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest

from groupmq import Backoff, Breaker, Ordering, Queue, QueueSettings, RateLimit, Retention
from groupmq.dashboard.actions.settings import NAMES
from groupmq.wording import setting
from tests.dashboard.conftest import MakeSite
from tests.dashboard.visitor import Site


@pytest.fixture
async def queue(queue: Queue) -> Queue:
    await queue.add(1, group_id="g")
    return queue


def fields_of(plan: Any) -> dict[str, Any]:
    return {one["name"]: one for one in plan["fields"]}


async def test_the_form_has_every_setting_that_can_be_changed_with_its_value_and_its_unit(
    queue: Queue, site: Site
) -> None:
    plan = await site.plan("reconfigure", queue=queue.name)
    stored = await queue.get_settings()
    assert set(NAMES) == set(QueueSettings.names()) - {"partitions"}
    assert {name: one["value"] for name, one in fields_of(plan).items()} == {
        name: setting(name, getattr(stored, name)) for name in NAMES
    }
    assert "500ms, 10m, 2h" in fields_of(plan)["job_timeout"]["hint"]
    assert [one["value"] for one in fields_of(plan)["on_failed"]["options"]] == ["continue", "hold"]
    assert plan["review"]
    html = await site.page("action", queue=queue.name, action="reconfigure")
    assert 'method="get"' in html
    assert 'name="csrf"' not in html, "a form that is sent as an address must contain no token"
    assert "/actions/reconfigure" in await site.page("settings", queue=queue.name)


async def test_the_change_is_shown_from_what_to_what_before_it_is_made(queue: Queue, site: Site) -> None:
    form = fields_of(await site.plan("reconfigure", queue=queue.name))
    filled = {name: one["value"] for name, one in form.items()} | {"max_attempts": "7", "breaker": "5/1m"}
    plan = await site.plan("reconfigure", queue=queue.name, **filled)
    assert plan["effects"][:2] == ["max_attempts: 3 becomes 7.", "breaker: none becomes 5/1m."]
    assert (plan["fields"], plan["button"], plan["edit"]) == ([], "Change 2 settings", True)
    assert {name: plan["hidden"][name] for name in ("max_attempts", "breaker")} == {
        "max_attempts": "7",
        "breaker": "5/1m",
    }
    assert set(plan["hidden"]) == {"max_attempts", "breaker", "seen"}
    assert (await queue.get_settings()).max_attempts == 3, "showing the plan must change nothing"
    again = fields_of(await site.plan("reconfigure", queue=queue.name, **plan["hidden"], edit="1"))
    assert (again["max_attempts"]["value"], again["breaker"]["value"], again["backoff"]["value"]) == (
        "7",
        "5/1m",
        form["backoff"]["value"],
    )
    answer = await site.submit("reconfigure", queue=queue.name, back="/queues/q/settings", **plan["hidden"])
    assert answer.status_code == 303
    stored = await queue.get_settings()
    assert (stored.max_attempts, stored.breaker) == (7, Breaker(5, 60))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("job_timeout", "2m", 120),
        ("backoff", "1s..5m x3 jitter 0.1", Backoff.exponential(base=1, factor=3, max=300, jitter=0.1)),
        ("on_retry", "yield", "yield"),
        ("keep_completed", "0", Retention(count=0)),
        ("keep_failed", "5000,14d", Retention(count=5000, age=14 * 86_400)),
        ("group_concurrency", "3", 3),
        ("on_failed", "hold", "hold"),
        ("ordering", "arrival:500ms..4s", Ordering.arrival(0.5, 4)),
        ("fairness", "round-robin", "round-robin"),
        ("exclusive", "yes", True),
        ("rate_limit", "100/1s", RateLimit(100, 1)),
        ("group_rate_limit", "2/500ms", RateLimit(2, 0.5)),
        ("max_group_size", "1000", 1000),
        ("priority_ageing", "1m", 60),
        ("events", "no", False),
    ],
)
async def test_a_script_changes_one_setting_and_no_other(
    queue: Queue, site: Site, name: str, text: str, value: object
) -> None:
    before = await queue.get_settings()
    given: dict[str, Any] = {name: text}
    outcome = await site.act("reconfigure", queue=queue.name, **given)
    assert (outcome["count"], outcome["text"]) == (1, f"Changed: {name} {text}.")
    after = await queue.get_settings()
    assert getattr(after, name) == value
    assert {one for one in NAMES if getattr(after, one) != getattr(before, one)} == {name}
    again = await site.act("reconfigure", 409, queue=queue.name, **given)
    assert "nothing was changed" in again["text"]


@pytest.mark.parametrize(
    ("given", "name", "said"),
    [
        ({"max_attempts": "many"}, "max_attempts", "Expected a whole number, got 'many'; it is 3 now"),
        ({"max_attempts": "0"}, "max_attempts", "Expected an integer from 1 to 65535, got 0; it is 3 now"),
        (
            {"job_timeout": "soon"},
            "job_timeout",
            "Expected a duration: 30, 1.5, 500ms, 10m, 2h, 7d, got 'soon'; it is 30s now",
        ),
        (
            {"rate_limit": "0/1s"},
            "rate_limit",
            "RateLimit.count: expected an integer from 1 to 1000000, got 0; it is none now",
        ),
        ({"on_retry": "stop"}, "on_retry", "got 'stop'; it is hold now"),
        (
            {"priority_ageing": "1m", "fairness": "round-robin"},
            "priority_ageing",
            "Needs fairness='oldest'; with round-robin, groups do not age; it is none now",
        ),
    ],
)
async def test_a_mistake_is_said_beside_its_field_and_changes_nothing(
    queue: Queue, site: Site, given: dict[str, Any], name: str, said: str
) -> None:
    before = await queue.get_settings()
    await site.act("reconfigure", 422, queue=queue.name, **given)
    plan = await site.plan("reconfigure", queue=queue.name, **given)
    errors = {one: field["error"] for one, field in fields_of(plan).items() if field["error"]}
    assert list(errors) == [name]
    assert said in errors[name]
    assert fields_of(plan)[name]["value"] == given[name], "the user's input must stay in the field to be corrected"
    html = unescape((await site.submit("reconfigure", queue=queue.name, **given)).text)
    assert re.search(rf'<p class="error" id="field-{name}-error">[^<]*{re.escape(said)}', html)
    assert await queue.get_settings() == before


async def test_what_somebody_else_has_changed_meanwhile_is_not_undone(queue: Queue, site: Site) -> None:
    form = await site.plan("reconfigure", queue=queue.name)
    filled = {name: one["value"] for name, one in fields_of(form).items()} | form["hidden"]
    await queue.reconfigure(max_attempts=9, keep_completed=5)
    plan = await site.plan("reconfigure", queue=queue.name, **filled | {"on_failed": "hold"})
    assert plan["effects"][0] == "on_failed: continue becomes hold."
    await site.act("reconfigure", queue=queue.name, **filled | {"on_failed": "hold"})
    stored = await queue.get_settings()
    assert (stored.max_attempts, stored.keep_completed.count, stored.on_failed) == (9, 5, "hold")
    plan = await site.plan("reconfigure", queue=queue.name, **filled | {"max_attempts": "4"})
    said = "The form showed 3, and somebody has changed it since; it is 9 now"
    assert fields_of(plan)["max_attempts"]["error"] == said
    await site.act("reconfigure", 422, queue=queue.name, **filled | {"max_attempts": "4"})
    assert (await queue.get_settings()).max_attempts == 9
    again = {name: one["value"] for name, one in fields_of(plan).items()} | plan["hidden"]
    assert (await site.plan("reconfigure", queue=queue.name, **again))["effects"][0] == "max_attempts: 9 becomes 4."
    await site.act("reconfigure", 422, queue=queue.name, seen="[1]", max_attempts="4")
    await site.plan("reconfigure", 422, queue=queue.name, seen="{")


async def test_partitions_and_the_settings_of_a_newer_release_are_left_alone(
    queue: Queue, site: Site, client: Any
) -> None:
    assert "partitions" not in fields_of(await site.plan("reconfigure", queue=queue.name))
    await site.act("reconfigure", 409, queue=queue.name, partitions="4")
    key = f"groupmq:{{{queue.name}}}:meta"
    client.hset(key, "config", json.dumps({"tides": "high"}))
    plan = await site.plan("reconfigure", queue=queue.name)
    assert plan["refused"] == "A newer release of groupmq has stored tides; change settings with that release."
    await site.act("reconfigure", 409, queue=queue.name, max_attempts="4")


async def test_settings_need_a_permission_and_every_change_is_in_the_audit(
    queue: Queue, make_site: MakeSite, caplog: pytest.LogCaptureFixture
) -> None:
    noted: list[Any] = []
    for options in ({"read_only": True}, {"permissions": lambda user, action: action != "reconfigure"}):
        site = make_site(**options)
        await site.plan("reconfigure", 403, queue=queue.name)
        await site.act("reconfigure", 403, queue=queue.name, max_attempts="5")
        assert "/actions/reconfigure" not in await site.page("settings", queue=queue.name)
    site = make_site(audit=noted.append)
    forged = await site.post(site.at("action", queue=queue.name, action="reconfigure"), {"max_attempts": "5"})
    assert (forged.status_code, (await queue.get_settings()).max_attempts) == (403, 3)
    with caplog.at_level("INFO", "groupmq.dashboard.audit"):
        await site.act("reconfigure", queue=queue.name, max_attempts="5")
        await site.act("reconfigure", 422, queue=queue.name, max_attempts="x")
    assert [(one["action"], one["target"], one["outcome"]) for one in noted] == [
        ("reconfigure", {"max_attempts": "5"}, "done"),
        ("reconfigure", {"max_attempts": "x"}, "refused"),
    ]
    assert "action=reconfigure" in caplog.text
    assert "max_attempts='5'" in caplog.text


@pytest.mark.parametrize(
    ("name", "text", "effect", "order"),
    [
        ("rate_limit", "1/1m", "queue starts at most 1 in 60 s: 4 waiting jobs take at least 3 m 0 s.", "stays"),
        ("rate_limit", "100/1s", "The whole queue starts at most 100 in 1 s; 4 waiting jobs.", "stays"),
        ("group_rate_limit", "1/1s", "Each group starts at most 1 in 1 s, unless", "stays"),
        (
            "group_concurrency",
            "3",
            "Up to 3 jobs of a group run at once; 4 waiting jobs in 3 groups.",
            "may finish before",
        ),
        ("exclusive", "yes", "One worker at a time takes jobs", "stays"),
        ("on_failed", "hold", "from now on blocks its group", "stays"),
        ("on_retry", "yield", "", "jobs of its group behind it run first"),
        ("fairness", "round-robin", "", "put into the new order"),
        ("events", "no", "The event log is deleted", "stays"),
    ],
)
async def test_a_change_says_what_it_does_to_how_many_jobs_and_to_the_order(
    queue: Queue, site: Site, name: str, text: str, effect: str, order: str
) -> None:
    for n in range(3):
        await queue.add(n, group_id=f"user:{n % 2}" if n else "g")
    given: dict[str, Any] = {name: text}
    plan = await site.plan("reconfigure", queue=queue.name, **given)
    assert effect in " ".join(plan["effects"])
    assert order in plan["order"]


async def test_a_limit_that_is_taken_away_says_so(queue: Queue, site: Site) -> None:
    await queue.reconfigure(rate_limit=RateLimit(1, 1), group_rate_limit=RateLimit(1, 1), group_concurrency=2)
    given: dict[str, Any] = {"rate_limit": "none", "group_rate_limit": "none", "group_concurrency": "1"}
    effects = " ".join((await site.plan("reconfigure", queue=queue.name, **given))["effects"])
    for said in (
        "may start as fast as workers take them",
        "No group is limited any more",
        "One job of a group runs at",
    ):
        assert said in effects


async def test_the_limits_are_changed_from_the_page_of_the_queue(queue: Queue, site: Site) -> None:
    assert "/actions/reconfigure" in await site.page("queue", queue=queue.name)
