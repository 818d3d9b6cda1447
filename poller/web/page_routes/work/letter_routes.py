"""The pages of dead letters: groups, letters, a file of them, and actions that ask first."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from poller import errors, event_publisher
from poller.domain.failures.dead_letter import Reason
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation.history import spreadsheet_cells
from poller.service.operations import letter_actions, letter_overview, letter_plan, target_choice
from poller.service.operations.letter_actions import LetterPage, LetterQuery
from poller.service.operations.letter_overview import LetterOverview
from poller.service.operations.letter_plan import Action
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Editing, Reading
from poller.web.api.contract.target_ids import LARGEST_ID
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame
from poller.web.pages.work import letter_action_page, letters_page, letters_query
from poller.web.pages.work.letter_action_page import LetterActionView
from poller.web.pages.work.letters_query import LettersQuery, RequestedLetters

_CSV_COLUMNS = (
    *("device", "target", "site", "reason", "code", "message", "attempts"),
    *("parked_at", "first_at", "last_at"),
)
_CSV_PAGE = 1_000


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the pages of dead letters."""
    _add_list(app, page)
    _add_actions(app, page)


def _add_list(app: FastAPI, page: PageRenderer) -> None:
    @app.get("/letters", response_class=HTMLResponse)
    def list_letters(
        request: Request, call: Reading, frame: RequestedFrame, query: RequestedLetters
    ) -> Response:
        """Dead letters in groups, or one by one. A wrong filter keeps its text."""
        problem: errors.PollerError | None = None
        found, wanted, status = LetterOverview(), TargetFilter(), 200
        try:
            wanted = query.wanted
            found = _found(call, query)
        except (errors.InvalidInput, errors.NotFound) as error:
            problem, status = error, 422
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = letters_page.build_view(query, wanted, found, event_publisher.now_ms())
        return page.respond("work/letters.html", frame, status, view=view, problem=problem)

    @app.get("/letters/-/letters.csv")
    def export(call: Reading, query: RequestedLetters) -> StreamingResponse:
        """All letters that match, as a file that is streamed."""
        headers = {"Content-Disposition": 'attachment; filename="dead-letters.csv"'}
        # The first page is read at once: a wrong filter is an error, not a file that ends early.
        wanted = query.letters
        first = letter_actions.page(call.services, call.actor, wanted, _CSV_PAGE)
        lines = _lines(call, wanted, first)
        return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def _add_actions(app: FastAPI, page: PageRenderer) -> None:
    @app.post("/letters/-/act", response_class=HTMLResponse)
    def act_on_letters(
        request: Request, call: Reading, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Plan an action, or do it when the number is confirmed."""
        try:
            view = _acted(call, form)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        status = problems.status(view.refused) if view.refused else 200
        return page.respond("work/letter_action.html", frame, status, view=view)

    @app.post("/letters/-/undo", response_class=HTMLResponse)
    def undo_drop(
        request: Request, call: Editing, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Enable the targets of letters that were dropped."""
        try:
            number = letter_plan.take_back(call.services, call.author, _ids(form))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = letter_action_page.taken_back(number, event_publisher.now_ms())
        return page.respond("work/letter_action.html", frame, view=view)


def _found(call: Call, query: LettersQuery) -> LetterOverview:
    by = query.view.group_by
    if by is None:
        return letter_overview.one_by_one(
            call.services, call.actor, query.letters, letters_query.LIMIT, query.after_key
        )
    return letter_overview.in_groups(
        call.services, call.actor, query.letters, by, letters_page.MOST_GROUPS
    )


def _acted(call: Call, form: FormValues) -> LetterActionView:
    """The plan, or what was done. Another number than the confirmed one shows the plan again."""
    action, wanted = _action(form), _wanted(call, form)
    planned = letter_plan.plan(call.services, call.actor, action, wanted)
    asked = letter_action_page.Asked(planned, wanted, event_publisher.now_ms())
    try:
        number = form.number("confirm")
        if number is None and not form.one("go"):
            return letter_action_page.plan_view(asked)
        subject = letter_actions.text(wanted)
        done = letter_plan.carry_out(call.services, call.author, planned, subject, number)
    except (errors.NotConfirmed, errors.InvalidInput) as error:
        return letter_action_page.plan_view(asked, error)
    return letter_action_page.done_view(asked, done)


def _action(form: FormValues) -> Action:
    """The action of the form. Raises InvalidInput."""
    given = form.one("action")
    if given not in list(Action):
        raise errors.InvalidInput(
            f'action: there is no action "{given[:40]}"', hint=f"one of {', '.join(Action)}"
        )
    return Action(given)


def _wanted(call: Call, form: FormValues) -> LetterQuery:
    """The marked letters, or else all that match. Raises InvalidInput, NotFound."""
    if form.all("letter"):
        chosen = target_choice.with_ids(call.services, call.actor, _ids(form))
        return LetterQuery(named=[(each.device, each.name) for each in chosen.values()])
    reason = form.one("reason")
    if reason and reason not in list(Reason):
        raise errors.InvalidInput(
            f'reason: there is no reason "{reason[:40]}"', hint=f"one of {', '.join(Reason)}"
        )
    message = form.all("message")
    wanted = target_filter.parse(form.one("where"))
    return LetterQuery(reason, wanted, message=message[0] if message else "")


def _ids(form: FormValues) -> list[int]:
    """The ids of the marked letters. Raises InvalidInput."""
    texts = form.all("letter")
    if not texts or len(texts) > letter_plan.MOST_UNDONE:
        raise errors.InvalidInput(
            "letter: none is marked, or too many", hint=f"at most {letter_plan.MOST_UNDONE}"
        )
    if not all(text.isascii() and text.isdigit() and len(text) <= 19 for text in texts):
        raise errors.InvalidInput("letter: this is not the id of a target")
    return list(dict.fromkeys(min(int(text), LARGEST_ID) for text in texts))


def _lines(call: Call, wanted: LetterQuery, found: LetterPage) -> Iterator[str]:
    yield spreadsheet_cells.line(list(_CSV_COLUMNS))
    while True:
        rows = [letters_page.row(each) for each in found.items]
        texts = [[getattr(row, name) for name in _CSV_COLUMNS] for row in rows]
        yield "".join(map(spreadsheet_cells.line, texts))
        if found.next_key is None:
            return
        found = letter_actions.page(call.services, call.actor, wanted, _CSV_PAGE, found.next_key)
