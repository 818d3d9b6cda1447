"""The actor: the person or program that asks for something, and its rights."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller import errors
from poller.domain.access import scopes
from poller.domain.access.scopes import Scope


class ActorKind(enum.StrEnum):
    """How an actor was recognised."""

    CLI = "cli"  # a user of the host that runs the command
    LOCAL = "local"  # a request from loopback, where no login is asked for
    USER = "user"  # a session of a local user or of OpenID Connect
    TOKEN = "token"  # noqa: S105  an API token
    PROXY = "proxy"  # a user whom a trusted proxy names
    SYSTEM = "system"  # poller itself, such as the demo


@dataclass(frozen=True, slots=True)
class Actor:
    """A person or program that acts: its name, its address and its rights."""

    name: str
    kind: ActorKind
    address: str  # the IP address of a request, or the host of a command
    scopes: frozenset[Scope] = scopes.ALL
    site: str | None = None  # the one site that a token is limited to

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def require(self, scope: Scope) -> None:
        """Raise NotAllowed without this scope."""
        if self.may(scope):
            return
        role = scopes.least_role(scope)
        raise errors.NotAllowed(
            f'{self.kind.value} "{self.name}" may not do this: it needs the scope {scope.value}',
            hint=f"use a token with the scope {scope.value}, or a user with the role {role.value}",
        )

    def require_site(self, site: str) -> None:
        """Raise NotAllowed if the actor is limited to another site."""
        if self.site in (None, site):
            return
        raise errors.NotAllowed(
            f'{self.kind.value} "{self.name}" is limited to site "{self.site}"',
            hint="use a token that is not limited to a site",
        )

    def require_every_site(self) -> None:
        """Raise NotAllowed if the actor is limited to one site."""
        if self.site is not None:
            raise errors.NotAllowed(
                f'{self.kind.value} "{self.name}" is limited to site "{self.site}", '
                "and this concerns all sites",
                hint="use a token that is not limited to a site",
            )
