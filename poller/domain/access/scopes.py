"""Scopes and roles: the rights of tokens and users."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Scope(enum.StrEnum):
    """One right. A token has some of them; a role is a fixed set."""

    SCRAPE = "scrape"  # read metrics
    READ = "read"  # see everything but the audit log, users and tokens
    OPERATE = "operate"  # poll now, reset breakers, requeue letters, run and pause jobs
    INVENTORY = "inventory"  # add, change and remove sites, devices, targets and credentials
    ADMIN = "admin"  # everything, with users, tokens and the audit log


class Role(enum.StrEnum):
    """The role of a user."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


#: Every scope includes those on its right.
_INCLUDES = {
    Scope.SCRAPE: (),
    Scope.READ: (Scope.SCRAPE,),
    Scope.OPERATE: (Scope.READ, Scope.SCRAPE),
    Scope.INVENTORY: (Scope.READ, Scope.SCRAPE),
    Scope.ADMIN: (Scope.INVENTORY, Scope.OPERATE, Scope.READ, Scope.SCRAPE),
}

ALL = frozenset(Scope)

_OF_ROLE = {
    Role.VIEWER: (Scope.READ,),
    Role.OPERATOR: (Scope.OPERATE, Scope.INVENTORY),
    Role.ADMIN: (Scope.ADMIN,),
}


def granted(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Return the given scopes with all that they include."""
    found: set[Scope] = set()
    for scope in scopes:
        found.add(scope)
        found.update(_INCLUDES[scope])
    return frozenset(found)


def of_role(role: Role) -> frozenset[Scope]:
    """Return the scopes of a role, with all that they include."""
    return granted(_OF_ROLE[role])


def least_role(scope: Scope) -> Role:
    """Return the smallest role that has a scope, for texts."""
    return next(role for role in Role if scope in of_role(role))
