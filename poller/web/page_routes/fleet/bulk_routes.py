"""Actions on many devices: a page that says how many and asks, then the result, and a way back."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service.fleet import fleet_bulk
from poller.service.fleet.fleet_bulk import Action, FleetDone, FleetPlan
from poller.service.operations import breaker_actions, poll_actions
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract.bulk_bodies import SAMPLES
from poller.web.api.contract.needs import Call, Operating, ReadingAll
from poller.web.pages.fleet import devices_query
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

USUAL_PAUSE = "30m"
#: The words and the flag of the command of each action.
_COMMANDS = {
    Action.POLL: ("poll", ""),
    Action.RESET: ("breaker reset", ""),
    Action.PAUSE: ("breaker open", " --for {length}"),
    Action.ENABLE: ("device edit", " --enable"),
    Action.DISABLE: ("device edit", " --disable"),
}


@dataclass(frozen=True, slots=True)
class BulkView:
    """One step of an action: the plan, or what was done."""

    as_of: str
    where: str
    plan: FleetPlan
    command: str  # that does the same
    samples: tuple[str, ...]
    more: int
    length: str = ""  # of a pause
    problem: str = ""  # what was wrong with the length
    done: FleetDone | None = None


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
    """Add the routes of actions on many devices."""

    @app.post("/devices/-/bulk", response_class=HTMLResponse)
    def act_on_many(
        request: Request, call: ReadingAll, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Plan an action, or do it when the number is confirmed."""
        try:
            view = _acted(call, form)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return page.respond("fleet/bulk.html", frame, 422 if view.problem else 200, view=view)

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


def _acted(call: Call, form: FormValues) -> BulkView:
    wanted, action = _wanted(form), _action(form)
    length, problem = form.one("length") or USUAL_PAUSE, ""
    try:
        length_s = breaker_actions.parse_length_s("length", length)
    except errors.InvalidInput as error:
        length_s, problem = fleet_bulk.USUAL_PAUSE_S, f"{error}; {error.hint}"
    plan = fleet_bulk.plan(call.services, call.author, action, wanted, length_s)
    number = None if problem else form.number("confirm")
    words, flag = _COMMANDS[plan.action]
    done = plan.confirmed(number) if number is not None else None
    return BulkView(
        as_of=formatting.instant(call.services.board.now_ms()),
        where=target_filter.text(wanted),
        plan=plan,
        command=devices_query.command(words, wanted, flag.format(length=shlex.quote(length))),
        samples=tuple(plan.names[:SAMPLES]),
        more=max(0, len(plan.names) - SAMPLES),
        length=length if action is Action.PAUSE else "",
        problem=problem,
        done=done,
    )


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
