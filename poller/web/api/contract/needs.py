"""The right that a route needs. Every route of the API takes one of the types below.

`Reading`, `Operating` and `Editing` also admit a token of one site: the service functions limit
what it sees and changes. The types that end in `All` are for routes that concern every site.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from poller import errors
from poller.bootstrap import Services
from poller.db.inventory.inventory_feed import Author
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.service import authors


@dataclass(frozen=True, slots=True)
class Call:
    """One admitted request: who asks, and the services to answer with."""

    services: Services
    actor: Actor

    @property
    def author(self) -> Author:
        """The author of the changes of this request."""
        return authors.author(self.services, self.actor)


@dataclass(frozen=True, slots=True)
class Needs:
    """A dependency of FastAPI that admits actors with a scope. Raises NotLoggedIn, NotAllowed."""

    scope: Scope
    every_site: bool = False

    def __call__(self, request: Request) -> Call:
        return Call(request.app.state.services, self.admitted(request))

    def admitted(self, request: Request) -> Actor:
        """Return the actor of a request that has the right."""
        actor: Actor | None = getattr(request.state, "actor", None)
        if actor is None:
            raise errors.NotLoggedIn(
                "this needs a login or a token",
                hint="send `Authorization: Bearer TOKEN`; `poller token add` makes a token",
            )
        _refuse_nul(request)
        actor.require(self.scope)
        if self.every_site:
            actor.require_every_site()
        return actor


@dataclass(frozen=True, slots=True)
class PageNeeds:
    """The same for a page, which gets its data from the queries of the application."""

    needs: Needs

    def __call__(self, request: Request) -> None:
        self.needs.admitted(request)


#: For `dependencies=` of a page or an older route, which concern all sites.
READ_PAGE = Depends(PageNeeds(Needs(Scope.READ, every_site=True)))
SCRAPE_PAGE = Depends(PageNeeds(Needs(Scope.SCRAPE, every_site=True)))
#: For routes that any login may use.
AnyLogin = Annotated[Call, Depends(Needs(Scope.SCRAPE))]


def _refuse_nul(request: Request) -> None:
    """Raise InvalidInput for a character that PostgreSQL stores and compares nowhere."""
    if "\0" in request.scope["path"] or b"%00" in request.scope["query_string"]:
        raise errors.InvalidInput("the address has a NUL character", hint="leave it out")


Reading = Annotated[Call, Depends(Needs(Scope.READ))]
Operating = Annotated[Call, Depends(Needs(Scope.OPERATE))]
Editing = Annotated[Call, Depends(Needs(Scope.INVENTORY))]
ReadingAll = Annotated[Call, Depends(Needs(Scope.READ, every_site=True))]
OperatingAll = Annotated[Call, Depends(Needs(Scope.OPERATE, every_site=True))]
EditingAll = Annotated[Call, Depends(Needs(Scope.INVENTORY, every_site=True))]
Administering = Annotated[Call, Depends(Needs(Scope.ADMIN, every_site=True))]
Scraping = Annotated[Call, Depends(Needs(Scope.SCRAPE, every_site=True))]
