"""`/api/v1/tokens`: keys of scripts and scrapers. A token is in one response only: its first."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller.db.access.token_rows import StoredToken
from poller.domain.access.scopes import Scope
from poller.presentation import formatting
from poller.service.access import api_tokens
from poller.service.access.api_tokens import TokenDraft
from poller.web.api.contract import paging, problems, resources
from poller.web.api.contract.idempotency import HOLDS_SECRET
from poller.web.api.contract.needs import Administering
from poller.web.api.contract.paging import Cursor, Limit, Page

router = resources.router("tokens")

TokenName = Annotated[str, Path(max_length=200, description="The name of the token.")]


class TokenBody(BaseModel):
    """A token as it is read, without its value."""

    name: str
    scopes: list[Scope]
    site: str | None = Field(description="The one site that the token is limited to.")
    created_by: str
    created_at: datetime
    expires_at: datetime | None = Field(description="Null: never.")
    last_used_at: datetime | None = Field(description="To the minute; null: never.")


class MadeTokenBody(TokenBody):
    """A new token with its value."""

    token: str = Field(description="The value, which is not shown again.")


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=200)
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))
    site: str | None = Field(None, max_length=200)
    lives_s: int | None = Field(
        None, ge=1, le=api_tokens.LONGEST_MS // 1000, description="Seconds until its end."
    )


@router.get("")
def list_tokens(
    call: Administering,
    request: Request,
    response: Response,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[TokenBody]:
    """List all tokens by name, without their values."""
    listed = api_tokens.listing(call.services, call.actor)
    found = sorted(listed, key=attrgetter("name"))  # a database may have another order
    names = [each.name for each in found]
    start, end, following = paging.after_name(names, limit, cursor)
    paging.link_next(request, response, following)
    return Page(items=[TokenBody(**_fields(token)) for token in found[start:end]], next=following)


@router.get("/{name}")
def show_token(call: Administering, name: TokenName) -> TokenBody:
    """Show one token, without its value."""
    return TokenBody(**_fields(api_tokens.get(call.services, call.actor, name)))


@router.post("", status_code=201, responses=problems.CHANGING, openapi_extra=HOLDS_SECRET)
def add_token(call: Administering, new: NewToken) -> MadeTokenBody:
    """Make a token. The response is the only one that holds its value."""
    lives_ms = None if new.lives_s is None else new.lives_s * 1000
    scopes = list(dict.fromkeys(new.scopes))
    draft = TokenDraft(new.name, scopes, new.site, lives_ms)
    made = api_tokens.add(call.services, call.actor, draft)
    return MadeTokenBody(**_fields(made.token), token=made.value)


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def remove_token(call: Administering, request: Request, name: TokenName) -> None:
    """Remove a token; every web process refuses it within seconds."""
    api_tokens.remove(call.services, call.actor, name)
    request.app.state.finder.clear()


def _fields(token: StoredToken) -> dict[str, object]:
    return {
        "name": token.name,
        "scopes": list(token.scopes),
        "site": token.site,
        "created_by": token.created_by,
        "created_at": token.created_at,
        "expires_at": formatting.moment(token.expires_ms or 0),
        "last_used_at": formatting.moment(token.last_used_ms or 0),
    }
