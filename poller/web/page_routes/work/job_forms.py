"""The forms of the pages of jobs: run, pause, resume and forget, with the checks of the API."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.domain.jobs import plan_text
from poller.service import job_actions
from poller.service.job_actions import Change
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, OperatingAll
from poller.web.api.operations.jobs_api import JobName
from poller.web.backend_queries import BackendQueries
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame
from poller.web.pages.work import job_page, jobs_page

SEE_OTHER = 303
_SWITCHES = {"pause": job_actions.pause, "resume": job_actions.resume}
_ACTIONS = ("run", *_SWITCHES, "forget")


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer) -> None:
    """Add the addresses that the forms of jobs are sent to."""

    @app.post("/jobs/-/act", response_class=HTMLResponse)
    def act_on_jobs(request: Request, call: OperatingAll, form: SentForm) -> Response:
        """Pause or resume the marked jobs."""
        verb, names = form.one("action"), list(dict.fromkeys(form.all("job")))
        try:
            _check(verb, tuple(_SWITCHES))
            if not names:
                raise errors.InvalidInput("job: none is marked", hint="mark jobs in the list")
            made = _SWITCHES[verb](call.services, names, call.actor)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        backend.expire_jobs()
        told = [("did", verb), ("number", str(len(made.names)))]
        told += [("job", each) for each in made.names[: jobs_page.FEW]]
        told.append(("others", str(len(names) - len(made.names))))
        return RedirectResponse(f"../../jobs?{urlencode(told)}", SEE_OTHER)

    @app.post("/jobs/{name}/act", response_class=HTMLResponse)
    def act_on_job(
        request: Request, call: OperatingAll, frame: RequestedFrame, name: JobName, form: SentForm
    ) -> Response:
        """Act on one job. A refused run is shown with what was typed, on the page of the job."""
        texts = {field: form.one(field) for field in ("scope", "plan")}
        try:
            try:
                path, told = _acted(call, name, form, texts)
            except errors.StoreError:
                raise
            except errors.PollerError as error:
                refused = (texts, error)
                view = job_page.build_view(backend.job(name), refused=refused)
                return page.respond("work/job.html", frame, problems.status(error), view=view)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        backend.expire_jobs()
        return RedirectResponse(f"{path}?{urlencode(told)}", SEE_OTHER)


def _acted(
    call: Call, name: str, form: FormValues, texts: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Act. Returns the path of the page that says so, and its parameters."""
    verb = form.one("action")
    _check(verb, _ACTIONS)
    own_page = f"../{quote(name, safe='')}"
    if verb == "forget":
        job_actions.forget(call.services, call.actor, name)
        return "../../jobs", {"did": verb, "job": name}
    if verb == "run":
        return own_page, _run(call, name, texts)
    made: Change = _SWITCHES[verb](call.services, [name], call.actor)
    return own_page, {"did": verb if made.names else "same"}


def _run(call: Call, name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Send a run. Returns the parameters of the page that follows it."""
    scope = plan_text.parse_scope("scope", texts["scope"]) if texts["scope"] else None
    plan_ms = plan_text.parse_instant_ms("plan", texts["plan"]) if texts["plan"] else None
    started = job_actions.start(call.services, call.actor, name, scope, plan_ms)
    plan = started.plan
    return {
        "did": "run",
        "plan": str(plan.plan_ms),
        "kind": plan.scope_kind,
        "scope": plan.scope_id,
        "since": str(started.requested_ms),
    }


def _check(verb: str, known: tuple[str, ...]) -> None:
    """Raise InvalidInput for another action than the known ones."""
    if verb not in known:
        raise errors.InvalidInput(
            f'action: there is no action "{verb[:40]}"', hint=f"one of {', '.join(known)}"
        )
