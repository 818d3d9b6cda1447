"""The forms of a device: actions on it and its targets, and the form of a target.

A form is answered by a redirect to the page that shows what it did; a wrong one by the form itself,
with the error and the texts that were typed.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from fastapi import FastAPI
from fastapi.responses import RedirectResponse, Response

from poller import errors
from poller.service import authors, site_limit
from poller.service.inventory import device_actions, target_actions
from poller.service.operations import (
    breaker_actions,
    letter_actions,
    poll_actions,
    target_choice,
)
from poller.service.operations.letter_actions import LetterQuery
from poller.service.operations.target_choice import Choice
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, Editing, Reading
from poller.web.api.operations import poll_wait
from poller.web.page_routes.device import device_settings
from poller.web.page_routes.device.device_tabs import now_ms
from poller.web.pages.device import device_head, target_form
from poller.web.pages.device.action_buttons import Act
from poller.web.pages.device.target_form import TargetForm
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the forms of a device."""

    @app.post("/devices/{name}/act")
    def act(call: Reading, name: str, form: SentForm) -> Response:
        """Act on a device or one of its targets."""
        wanted = _wanted(form)
        call.actor.require(wanted.scope)
        target = form.one("target")
        told = _acted(call, wanted, name, target)
        return RedirectResponse(f"../{quote(name, safe='')}?{urlencode(told)}", SEE_OTHER)

    @app.get("/devices/{name}/targets/{target}")
    def show_form(call: Editing, frame: RequestedFrame, name: str, target: str) -> Response:
        """The form of a target, made from the options of its collector."""
        _, form = device_settings.form_of(call, name, target)
        return _form_page(call, page, frame, form)

    @app.post("/devices/{name}/targets/{target}")
    def save_form(
        call: Editing, frame: RequestedFrame, name: str, target: str, form: SentForm
    ) -> Response:
        """Save a target, with the checks of the command line."""
        _, shown = device_settings.form_of(call, name, target)
        texts = {each.name: form.one(each.name) for each in shown.fields if form.all(each.name)}
        changed = target_form.changes(shown, texts)
        told = {"did": "same", "target": target}
        if not changed.is_empty:
            try:
                target_actions.edit(
                    call.services,
                    call.author,
                    name,
                    target,
                    changed.fields,
                    changed.options or None,
                    form.one(target_form.VERSION) or None,
                )
            except errors.ConfigError as error:
                field = getattr(error, "field", "")
                wrong = target_form.refused(shown, texts, str(error), error.hint, field)
                return _form_page(call, page, frame, wrong, problems.status(error))
            told = {"did": "edit", "target": target}
        return RedirectResponse(f"../../{quote(name, safe='')}?{urlencode(told)}", SEE_OTHER)


def _form_page(
    call: Call, page: PageRenderer, frame: Frame, form: TargetForm, status: int = 200
) -> Response:
    device = site_limit.visible_device(call.services, call.actor, form.device)
    return page.respond(
        "device/device_target.html",
        frame,
        status,
        head=device_head.of_device(device, "config", now_ms()),
        form=form,
    )


def _wanted(form: FormValues) -> Act:
    """The action of a form. Raises InvalidInput."""
    text = form.one("action")
    if text not in list(Act):
        known = ", ".join(Act)
        raise errors.InvalidInput(
            f'action: there is no action "{text[:40]}"', hint=f"one of {known}"
        )
    return Act(text)


def _acted(call: Call, wanted: Act, device: str, target: str) -> dict[str, str]:
    """Act, and return the parameters of the page that says so."""
    told = {"did": wanted.value, "target": target}
    if wanted in (Act.ENABLE, Act.DISABLE):
        _enable(call, device, target, wanted is Act.ENABLE)
        return told
    if wanted in (Act.REQUEUE, Act.DROP):
        return _act_on_letters(call, wanted, device, target)
    chosen = target_choice.named(call.services, call.actor, [(device, target or None)])
    subject = f"{device}/{target}" if target else device
    if wanted is Act.POLL:
        return {"polls": _poll(call, chosen, subject)}
    done = breaker_actions.reset(call.services, call.actor, chosen, subject)
    breaker_actions.refuse_unsettled(done)
    return told


def _enable(call: Call, device: str, target: str, enabled: bool) -> None:
    author = authors.author(call.services, call.actor)
    if target:
        target_actions.edit(call.services, author, device, target, {"enabled": enabled})
    else:
        device_actions.edit(call.services, author, device, {"enabled": enabled})


def _poll(call: Call, chosen: Choice, subject: str) -> str:
    """Request polls; return the ticket of their results."""
    asked = poll_actions.request(call.services, call.actor, chosen, subject)
    return poll_wait.ticket_of(call, asked.ids, asked.requested_ms) or ""


def _act_on_letters(call: Call, wanted: Act, device: str, target: str) -> dict[str, str]:
    query = LetterQuery(named=[(device, target or None)])
    letters = letter_actions.of_names(call.services, call.actor, query.named)
    subject = letter_actions.text(query)
    if wanted is Act.DROP:
        letter_actions.drop(call.services, call.author, call.actor, letters, subject)
        return {"did": wanted.value, "target": target}
    done = letter_actions.requeue(call.services, call.actor, letters, subject)
    ticket = poll_wait.ticket_of(call, done.ids, done.requested_ms)
    return {"did": wanted.value, "target": target, "polls": ticket or ""}
