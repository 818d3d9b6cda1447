"""The page of tokens. The value of a new token is in one answer only: that to its form."""

from __future__ import annotations

import time
from collections.abc import Collection
from operator import attrgetter
from typing import Annotated
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from poller import errors
from poller.domain.access import accounts
from poller.domain.inventory import duration
from poller.service import site_actions
from poller.service.access import api_tokens
from poller.service.access.api_tokens import MadeToken, TokenDraft
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.access.tokens_api import TokenName
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Administering, Call
from poller.web.pages.access import tokens_page
from poller.web.pages.access.input_fields import Refusal
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame

SEE_OTHER = 303
#: Sites that the form suggests.
MOST_SITES = 200
Word = Annotated[str, Query(max_length=200)]


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page of tokens, and the addresses that its forms are sent to."""

    @app.get("/tokens", response_class=HTMLResponse)
    def list_tokens(
        request: Request,
        call: Administering,
        frame: RequestedFrame,
        after: Word = "",
        did: Word = "",
        name: Word = "",
    ) -> Response:
        """The tokens by name, without their values, and the form of a new one."""
        said = f'Token "{name}" was removed.' if did == "remove" else ""
        try:
            return _page(call, frame, page, after, said=said)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/tokens", response_class=HTMLResponse)
    def make_token(
        request: Request, call: Administering, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Make a token, and show its value.

        The answer is no redirect: the value would have to be kept somewhere until the next page.
        Sending the form again makes no second token, because the name is taken then.
        """
        try:
            try:
                made = api_tokens.add(call.services, call.actor, _draft(form))
            except errors.ConfigError as error:
                names = (tokens_page.NAME, tokens_page.SITE, tokens_page.LIFE)
                refusal = Refusal("add", error, {each: form.one(each) for each in names})
                chosen = form.all(tokens_page.SCOPE)
                return _page(call, frame, page, refusal=refusal, chosen=chosen)
            request.app.state.finder.clear()
            return _page(call, frame, page, made=made, life=form.one(tokens_page.LIFE))
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

    @app.post("/tokens/{name}/remove", response_class=HTMLResponse)
    def remove_token(request: Request, call: Administering, name: TokenName) -> Response:
        """Remove a token, which ends its use."""
        try:
            api_tokens.remove(call.services, call.actor, name)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        request.app.state.finder.clear()
        told = urlencode({"did": "remove", "name": name})
        return RedirectResponse(f"../../tokens?{told}", SEE_OTHER)


def _draft(form: FormValues) -> TokenDraft:
    """The token that a form asks for. Raises InvalidInput."""
    scopes = accounts.checked_scopes(form.all(tokens_page.SCOPE))
    life = form.one(tokens_page.LIFE)
    lives_ms = _life_ms(life) if life else None
    return TokenDraft(
        form.one(tokens_page.NAME), scopes, form.one(tokens_page.SITE) or None, lives_ms
    )


def _life_ms(text: str) -> int:
    try:
        return duration.parse_ms(text)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(
            f"{tokens_page.LIFE}: {error.message}", hint=error.hint, field=tokens_page.LIFE
        ) from None


def _page(
    call: Call,
    frame: Frame,
    page: PageRenderer,
    after: str = "",
    *,
    said: str = "",
    made: MadeToken | None = None,
    life: str = "",
    refusal: Refusal | None = None,
    chosen: Collection[str] = (),
) -> Response:
    listed = sorted(api_tokens.listing(call.services, call.actor), key=attrgetter("name"))
    rest = [each for each in listed if each.name > after]
    sites = site_actions.listing(call.services, call.actor)
    view = tokens_page.build_view(
        rest[: tokens_page.LIMIT],
        [each.name for each in sites[:MOST_SITES]],
        time.time_ns() // 1_000_000,
        has_more=len(rest) > tokens_page.LIMIT,
        after=after,
        said=said,
        made=made,
        life=life,
        refusal=refusal,
        chosen=chosen,
    )
    status = problems.status(refusal.error) if refusal else 200
    return page.respond("access/tokens.html", frame, status, view=view)
