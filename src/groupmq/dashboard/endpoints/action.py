"""GET of an action answers its plan; POST does it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from groupmq import ConfigurationError, GroupMQError
from groupmq.dashboard.actions.action import Action, Done, Plan
from groupmq.dashboard.actions.catalogue import ACTIONS
from groupmq.dashboard.actions.given import BadField, Given
from groupmq.dashboard.documents.outcome import OutcomePage
from groupmq.dashboard.documents.plan import Field, PlanPage
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.endpoints.page import Endpoint, read_ids, view_of
from groupmq.dashboard.errors import Refused, error_page
from groupmq.dashboard.security.csrf import FIELD, HEADER
from groupmq.dashboard.security.forms import is_json, read_fields
from groupmq.dashboard.visit import Heading, House, Visit

_OURS = (FIELD, "back", "fragment", "queue", "action")


def plan_endpoint(house: House) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, house)
        action, view = await _chosen(visit)
        given = Given(dict(request.query_params))
        return await answer_plan(visit, view, action, given)

    return endpoint


def act_endpoint(house: House) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, house)
        action, view = await _chosen(visit)
        fields = await read_fields(request)
        require_token(visit, fields)
        given = Given(fields)
        try:
            done = await action.act(view, given)
        except BadField as error:
            house.desk.audit.note(visit.user, action.name, view.queue.name, fields, count=0, outcome="refused")
            return await answer_plan(visit, view, action, given, problem=error)
        except ConfigurationError as error:
            house.desk.audit.note(visit.user, action.name, view.queue.name, fields, count=0, outcome="refused")
            return await answer_outcome(visit, view, action, given, Done(str(error), 0, ok=False), status=400)
        except GroupMQError as error:
            house.desk.audit.note(visit.user, action.name, view.queue.name, fields, count=0, outcome="refused")
            page = error_page(error, "")
            said = Done(f"{page.title}: {page.text}", 0, ok=False)
            return await answer_outcome(visit, view, action, given, said, status=page.status)
        house.desk.acted()
        outcome = "begun" if done.task is not None else "done" if done.ok else "refused"
        house.desk.audit.note(visit.user, action.name, view.queue.name, fields, count=done.count, outcome=outcome)
        status = 202 if done.task is not None else 200 if done.ok else 409
        return await answer_outcome(visit, view, action, given, done, status=status)

    return endpoint


def stop_endpoint(house: House) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        visit = Visit(request, house)
        ids = read_ids(request)
        view = await view_of(visit, ids["queue"])
        fields = await read_fields(request)
        require_token(visit, fields)
        task = house.desk.tasks.require(view.queue.name, ids["task"])
        if not visit.can(task.action):
            raise Refused(403, "Not allowed", "You may not do this.")
        stopped = task.stop()
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
        raise Refused(403, "Not allowed", "You may not do this.", "Ask those who run the dashboard.")
    return action, await view_of(visit, ids["queue"])


def require_token(visit: Visit, fields: dict[str, str]) -> None:
    """A form must come from one of our pages. JSON, and a bearer token, cannot come from a form of another site."""
    request, house = visit.request, visit.house
    if is_json(request) or not house.auth.is_ambient(request):
        return
    token = fields.get(FIELD) or request.headers.get(HEADER, "")
    if not house.csrf.accepts(request, token, visit.user):
        raise Refused(
            403, "The form is out of date", "It was not sent from a page of this dashboard.", "Reload the page."
        )


async def answer_plan(
    visit: Visit, view: View, action: Action, given: Given, problem: BadField | None = None
) -> Response:
    if problem is not None and visit.wants_json:
        raise Refused(422, "A field is not right", f"{problem.name}: {problem.problem}.")
    try:
        plan = await action.plan(view, given)
    except BadField as error:
        if problem is None or visit.wants_json:
            raise Refused(422, "A field is not right", f"{error.name}: {error.problem}.") from None
        plan = Plan([], "", fields=[], refused=f"{error.name}: {error.problem}")
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
        fields=[_with_problem(one, problem) for one in plan.fields],
        hidden=_hidden(action, plan, given),
        review=plan.review,
        edit=plan.edit,
        sample=plan.sample,
        back=visit.back(given.fields.get("back"), visit.to("queue", queue=queue)),
    )
    status = 200 if problem is None else 422
    return await visit.answer(document, Heading(name="plan", title=document.title, queue=queue), status=status)


def _with_problem(field: Field, problem: BadField | None) -> Field:
    if problem is None or problem.name != field.name:
        return field
    values = {name: getattr(field, name) for name in Field.__dataclass_fields__}
    return Field(**(values | {"error": problem.problem}))


def _hidden(action: Action, plan: Plan, given: Given) -> dict[str, str]:
    """What the action is about: the fields that its form does not show."""
    shown = {field.name for field in plan.fields}
    if plan.hidden:
        return plan.hidden
    return {name: given.fields[name] for name in action.takes if name not in shown and given.fields.get(name)}


async def answer_outcome(
    visit: Visit, view: View, action: Action, given: Given, done: Done, *, status: int = 200
) -> Response:
    queue = view.queue.name
    otherwise = visit.to("queue", queue=queue)
    back = visit.back(given.fields.get("back"), otherwise)
    if done.ok and done.back is not None:
        back = visit.to(done.back, queue=queue)
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
