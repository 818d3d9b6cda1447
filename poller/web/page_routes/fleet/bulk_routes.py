"""Acts on many devices: their values, a page that says how many and asks, and a way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service.fleet import act_runs, fleet_bulk
from poller.service.fleet.fleet_plan import Action, FleetPlan
from poller.service.operations import poll_actions
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Operating, ReadingAll
from poller.web.page_routes.inventory import inventory_choices
from poller.web.pages.fleet import bulk_page
from poller.web.pages.fleet.bulk_page import Asked, BulkView
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class ProgressView:
    """Polls on demand: how many are done, and the results so far."""

    as_of: str
    total: int
    results: tuple[poll_actions.PollResult, ...]

    @property
    def finished(self) -> int:
        return sum(each.state != poll_actions.WAITING for each in self.results)


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the routes of acts on many devices."""

    @app.post("/devices/-/bulk", response_class=HTMLResponse)
    def act_on_many(
        request: Request, call: ReadingAll, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Ask for the values of an act, plan it, or do it when the number is confirmed."""
        try:
            found = _acted(call, form)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        if isinstance(found, str):
            return RedirectResponse(f"acts/{found}", SEE_OTHER)
        status = problems.status(found.refused) if found.refused else 200
        return page.respond("fleet/bulk.html", frame, status, view=found)

    @app.get("/devices/-/acts/{name}", response_class=HTMLResponse)
    def show_act(request: Request, call: ReadingAll, frame: RequestedFrame, name: str) -> Response:
        """The progress of a large act, then its result."""
        try:
            run = act_runs.show(call.services, call.actor, name)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = bulk_page.run_view(run, call.services.board.now_ms())
        return page.respond("fleet/bulk.html", frame, view=view)

    @app.get("/devices/-/polls/{ticket}", response_class=HTMLResponse)
    def show_polls(
        request: Request, call: Operating, frame: RequestedFrame, ticket: str
    ) -> Response:
        """The progress of polls on demand."""
        try:
            found, chosen = poll_actions.ticket(call.services, call.actor, ticket[:64])
            done = poll_actions.newly_finished(call.services, list(chosen), found.requested_ms)
            results = poll_actions.results(call.services, chosen, done)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        as_of = formatting.instant(call.services.board.now_ms())
        view = ProgressView(as_of, len(chosen), tuple(results))
        return page.respond("fleet/polls.html", frame, view=view)


def _acted(call: Call, form: FormValues) -> BulkView | str:
    """The next step, or the name of a large act that runs from now on."""
    action = _action(form)
    call.actor.require(action.scope)
    texts = {name: form.one(name) for name in action.fields}
    asked = Asked(action, _wanted(form), call.services.board.now_ms(), texts)
    if action.fields and not form.one("go"):
        return _values(call, asked)
    try:
        plan = _plan(call, asked, form)
    except errors.InvalidInput as error:
        if error.field not in action.fields:
            raise
        return _values(call, asked, error)
    return _confirmed(call, asked, plan, form)


def _values(call: Call, asked: Asked, error: errors.InvalidInput | None = None) -> BulkView:
    count = fleet_bulk.count(call.services, call.author, asked.wanted)
    if count.is_exact and not count.number:
        raise errors.NotFound(f"no device matches {asked.where}", hint="widen the filter")
    credentials: Sequence[str] = ()
    if asked.action is Action.CREDENTIAL:
        credentials = inventory_choices.credentials(call)
    return bulk_page.values_view(asked, count, credentials, error)


def _plan(call: Call, asked: Asked, form: FormValues) -> FleetPlan:
    if asked.action is Action.UNDO:
        return fleet_bulk.plan_undo(call.services, call.author, form.one("undo"))
    return fleet_bulk.plan(call.services, call.author, asked.action, asked.wanted, asked.texts)


def _confirmed(call: Call, asked: Asked, plan: FleetPlan, form: FormValues) -> BulkView | str:
    """The plan, or what was done. Another number than the confirmed one shows the plan again."""
    undo = form.one("undo")
    try:
        number = form.number("confirm")
        if number is None and not form.one("sure"):
            return bulk_page.plan_view(asked, plan, undo)
        plan.refuse_unconfirmed(number)
        if len(plan.names) > act_runs.LARGE:
            return act_runs.begin(call.services, call.actor, plan, asked.where)
    except (errors.NotConfirmed, errors.InvalidInput) as error:
        return bulk_page.plan_view(asked, plan, undo, error)
    return bulk_page.done_view(asked, plan.confirmed(number))


def _action(form: FormValues) -> Action:
    """The action of the form. Raises InvalidInput."""
    given = form.one("action")
    if given not in list(Action):
        raise errors.InvalidInput(
            f'action: there is no action "{given[:40]}"', hint=f"one of {', '.join(Action)}"
        )
    return Action(given)


def _wanted(form: FormValues) -> TargetFilter:
    """The marked devices, or else all that match; without a filter every device."""
    names = form.all("name")
    if names:
        return TargetFilter(names=tuple(names))
    wanted = target_filter.parse(form.one("where"))
    return TargetFilter(names=("*",)) if wanted.is_empty else wanted
