"""The visitor of the page that is being rendered: whom the frame greets, and what is offered."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Scope
from poller.security import token_values


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whom the page greets. `form_token` is a field of every form that changes something."""

    name: str
    is_local: bool  # no login was asked for
    form_token: str = ""
    has_session: bool = False  # there is a session to end
    scopes: frozenset[Scope] = frozenset()
    sees_every_site: bool = True

    def may(self, scope: Scope, every_site: bool = False) -> bool:
        """Whether the visitor has a right, or has it for all sites together."""
        return scope in self.scopes and (self.sees_every_site or not every_site)


_visitor: ContextVar[Visitor | None] = ContextVar("visitor", default=None)


def welcome(actor: Actor | None, form_value: str, has_session: bool = False) -> None:
    """Set the visitor of this request. Form tokens follow from `form_value`."""
    if actor is None:
        _visitor.set(None)
        return
    token = token_values.form_token(form_value) if form_value else ""
    is_local = actor.kind is ActorKind.LOCAL
    _visitor.set(
        Visitor(actor.name, is_local, token, has_session, actor.scopes, actor.site is None)
    )


def current() -> Visitor | None:
    """Return the visitor of the request that is being answered."""
    return _visitor.get()
