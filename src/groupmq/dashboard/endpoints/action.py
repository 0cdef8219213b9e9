"""The endpoints of an action: GET returns its plan, POST does it."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from groupmq import ConfigurationError, GroupMQError
from groupmq.dashboard.actions.action import Action, Done, Plan
from groupmq.dashboard.actions.catalogue import ACTIONS
from groupmq.dashboard.actions.given import BadField, Given
from groupmq.dashboard.documents.outcome import OutcomePage
from groupmq.dashboard.documents.plan import Field, PlanPage
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.endpoints.page import HttpEndpoint, read_ids, view_of
from groupmq.dashboard.errors import Refused, error_page
from groupmq.dashboard.security.csrf import FIELD, HEADER
from groupmq.dashboard.security.forms import is_json, read_fields
from groupmq.dashboard.visit import Heading, Services, Visit

_OURS = (FIELD, "back", "fragment", "queue", "action")


def action_endpoint(services: Services) -> HttpEndpoint:
    """One route for both, so that the answer to a wrong method names both."""
    plan, act = plan_endpoint(services), act_endpoint(services)

    async def endpoint(request: Request) -> Response:
        return await (act if request.method == "POST" else plan)(request)

    return endpoint


def plan_endpoint(services: Services) -> HttpEndpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, services)
        action, view = await _chosen(visit)
        given = Given(dict(request.query_params))
        return await answer_plan(visit, view, action, given)

    return endpoint


def act_endpoint(services: Services) -> HttpEndpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, services)
        action, view = await _chosen(visit)
        fields = await read_fields(request)
        require_token(visit, fields)
        given = Given(fields)
        try:
            done = await action.act(view, given)
        except BadField as error:
            services.shared.audit.record(visit.user, action.name, view.queue.name, fields, count=0, outcome="refused")
            return await answer_plan(visit, view, action, given, problem=error)
        except ConfigurationError as error:
            services.shared.audit.record(visit.user, action.name, view.queue.name, fields, count=0, outcome="refused")
            return await answer_outcome(visit, view, action, given, Done(str(error), 0, ok=False), status=400)
        except GroupMQError as error:
            services.shared.audit.record(visit.user, action.name, view.queue.name, fields, count=0, outcome="refused")
            page = error_page(error, "")
            refused = Done(f"{page.title}: {page.text}", 0, ok=False)
            return await answer_outcome(visit, view, action, given, refused, status=page.status)
        services.shared.acted()
        outcome = "begun" if done.task is not None else "done" if done.ok else "refused"
        services.shared.audit.record(
            visit.user, action.name, view.queue.name, fields, count=done.count, outcome=outcome
        )
        status = 202 if done.task is not None else 200 if done.ok else 409
        return await answer_outcome(visit, view, action, given, done, status=status)

    return endpoint


def stop_endpoint(services: Services) -> HttpEndpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, services)
        ids = read_ids(request)
        view = await view_of(visit, ids["queue"])
        fields = await read_fields(request)
        require_token(visit, fields)
        task = services.shared.tasks.require(view.queue.name, ids["task"])
        if not visit.can(task.action):
            raise Refused(403, "Not allowed", "You may not do this.")
        stopped = task.stop(visit.user)
        text = "It stops after the step under way." if stopped else "It had ended already."
        done = Done(text, task.done, task)
        return await answer_outcome(visit, view, ACTIONS[task.action], Given(fields), done)

    return endpoint


async def _chosen(visit: Visit) -> tuple[Action, View]:
    ids = read_ids(visit.request)
    action = ACTIONS.get(ids["action"])
    if action is None:
        raise Refused(404, "No such action", "There is no action of this name.")
    if not visit.can(action.name):
        if visit.request.method == "POST":
            visit.services.shared.audit.record(visit.user, action.name, ids["queue"], {}, count=0, outcome="refused")
        raise Refused(403, "Not allowed", "You may not do this.", "Ask those who run the dashboard.")
    return action, await view_of(visit, ids["queue"])


def require_token(visit: Visit, fields: dict[str, str]) -> None:
    """Refuse a form without a token of our pages. No form of another site can send JSON or a bearer token."""
    request, services = visit.request, visit.services
    if is_json(request) or not services.auth.is_ambient(request):
        return
    token = fields.get(FIELD) or request.headers.get(HEADER, "")
    if not services.csrf.accepts(request, token, visit.user):
        raise Refused(
            403, "The form is out of date", "It was not sent from a page of this dashboard.", "Reload the page."
        )


async def answer_plan(
    visit: Visit, view: View, action: Action, given: Given, problem: BadField | None = None
) -> Response:
    if problem is not None and visit.wants_json:
        raise _not_right(problem)
    plan, problems = await plan_with_problems(view, action, given, problem, strict=visit.wants_json)
    queue = view.queue.name
    document = PlanPage(
        queue=queue,
        action=action.name,
        title=plan.title or action.title,
        button=plan.button or action.button,
        danger=action.danger,
        bulk=action.bulk,
        jobs=plan.jobs,
        effects=plan.effects,
        order=plan.order,
        refused=plan.refused,
        fields=[_with_problem(one, problems.get(one.name), given) for one in plan.fields],
        hidden=_hidden(action, plan, given),
        review=plan.review,
        edit=plan.edit,
        sample=plan.sample,
        back=visit.back(given.fields.get("back"), visit.to("queue", queue=queue)),
    )
    status = 422 if problems else 200
    return await visit.answer(document, Heading(name="plan", title=document.title, queue=queue), status=status)


async def plan_with_problems(
    view: View, action: Action, given: Given, problem: BadField | None, *, strict: bool
) -> tuple[Plan, dict[str, str]]:
    """The plan, and what is wrong with fields, by name. If a field is wrong, the plan has only the form.

    `strict`: raise Refused instead.
    """
    problems = {} if problem is None else {problem.name: problem.problem}
    left = given
    while True:
        try:
            plan = await action.plan(view, left)
            break
        except BadField as error:
            if strict or error.name not in left.fields:
                raise _not_right(error) from None
            problems[error.name] = error.problem
            left = Given({name: value for name, value in left.fields.items() if name != error.name})
    shown = {field.name for field in plan.fields}
    for name, text in problems.items():
        if name not in shown:
            raise _not_right(BadField(name, text))
    if left is not given:
        plan.effects, plan.order, plan.sample, plan.jobs, plan.refused = [], "", [], None, None
    return plan, problems


def _not_right(problem: BadField) -> Refused:
    return Refused(422, "A field is invalid", f"{problem.name}: {problem.problem}.")


def _with_problem(field: Field, problem: str | None, given: Given) -> Field:
    """The field with the text as it was typed, and with the problem."""
    if problem is None:
        return field
    values = {name: getattr(field, name) for name in Field.__dataclass_fields__}
    return Field(**(values | {"error": problem, "value": given.fields.get(field.name, "")}))


def _hidden(action: Action, plan: Plan, given: Given) -> dict[str, str]:
    """The given fields that the form does not show, such as the job that the action is about."""
    shown = {field.name for field in plan.fields}
    if plan.hidden:
        return plan.hidden
    return {name: given.fields[name] for name in action.takes if name not in shown and given.fields.get(name)}


async def answer_outcome(
    visit: Visit, view: View, action: Action, given: Given, done: Done, *, status: int = 200
) -> Response:
    queue = view.queue.name
    back = visit.back(given.fields.get("back"), visit.to("queue", queue=queue))
    if done.gone and urlsplit(back).path == visit.to("job", queue=queue, job=given.text("job")):
        back = visit.to("jobs", queue=queue)
    task = None if done.task is None else done.task.row()
    level = "done" if done.ok else "error"
    document = OutcomePage(
        queue=queue,
        action=action.name,
        ok=done.ok,
        level=level,
        text=done.text,
        count=done.count,
        task=task,
        back=back,
    )
    if visit.wants_json or visit.by_script:
        heading = Heading(name="outcome", title=action.title, queue=queue)
        return await visit.answer(document, heading, status=status, block="outcome")
    if task is not None and done.ok:
        return visit.redirect(visit.to("task", queue=queue, task=task.id))
    return visit.redirect(back, level=level, text=done.text)
