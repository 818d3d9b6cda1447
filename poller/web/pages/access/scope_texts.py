"""Roles and scopes in words: what each may do."""

from __future__ import annotations

from collections.abc import Collection

from poller.domain.access import scopes
from poller.domain.access.scopes import Role, Scope

MEANINGS = {
    Scope.SCRAPE: "read metrics, scrape devices",
    Scope.READ: "see everything but users, tokens, sessions and the audit log",
    Scope.OPERATE: "poll now, reset breakers, requeue dead letters, run jobs, silence alerts",
    Scope.INVENTORY: "add, change and remove sites, devices, targets and credentials",
    Scope.ADMIN: "manage users, tokens and sessions, read the audit log",
}
ROLES = "viewer sees, operator changes devices too, admin manages users too"


def role_of(granted: Collection[Scope]) -> str:
    """The role with exactly these scopes; "" if none has them."""
    return next((role.value for role in Role if scopes.of_role(role) == frozenset(granted)), "")
