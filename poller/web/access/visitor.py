"""The visitor of the page that is being rendered, for the header of all pages."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from poller.domain.access.actor import Actor, ActorKind
from poller.security import token_values


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whom the page greets. `form_token` is for forms; "" where there is no session to end."""

    name: str
    is_local: bool  # no login was asked for
    form_token: str = ""


_visitor: ContextVar[Visitor | None] = ContextVar("visitor", default=None)


def welcome(actor: Actor | None, session_value: str) -> None:
    """Set the visitor of this request."""
    if actor is None:
        _visitor.set(None)
        return
    token = token_values.form_token(session_value) if session_value else ""
    _visitor.set(Visitor(actor.name, actor.kind is ActorKind.LOCAL, token))


def current() -> Visitor | None:
    """Return the visitor of the request that is being answered."""
    return _visitor.get()
