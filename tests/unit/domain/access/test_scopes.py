"""Scopes, roles and actors."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.access import audit_entry, scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Role, Scope


def actor(*given: Scope, site: str | None = None) -> Actor:
    return Actor("ci", ActorKind.TOKEN, "127.0.0.1", scopes.granted(given), site)


def test_a_larger_scope_includes_the_smaller_ones() -> None:
    """The scope admin has all; the scope scrape has itself only."""
    assert scopes.granted([Scope.ADMIN]) == scopes.ALL
    assert scopes.granted([Scope.SCRAPE]) == {Scope.SCRAPE}
    assert scopes.granted([Scope.OPERATE]) == {Scope.OPERATE, Scope.READ, Scope.SCRAPE}
    assert Scope.OPERATE not in scopes.granted([Scope.INVENTORY])


def test_roles_grow() -> None:
    """Each role has more than the one before."""
    viewer, operator, admin = (scopes.of_role(role) for role in Role)
    assert viewer < operator < admin
    assert scopes.least_role(Scope.INVENTORY) is Role.OPERATOR


def test_an_actor_without_the_scope_is_refused_with_what_it_needs() -> None:
    """The error names the actor, the scope and the role."""
    actor(Scope.OPERATE).require(Scope.READ)
    with pytest.raises(errors.NotAllowed, match=r'token "ci" .* scope operate') as refused:
        actor(Scope.READ).require(Scope.OPERATE)
    assert "role operator" in refused.value.hint


def test_an_actor_of_one_site_is_refused_elsewhere() -> None:
    """A limited token may act in its site only, and never on all sites."""
    limited = actor(Scope.ADMIN, site="ams")
    limited.require_site("ams")
    for refused in (lambda: limited.require_site("fra"), limited.require_every_site):
        with pytest.raises(errors.NotAllowed, match='site "ams"'):
            refused()
    actor(Scope.READ).require_every_site()


def test_an_edit_is_recorded_with_the_fields_that_differ() -> None:
    """Equal fields are left out; a new field has no value before."""
    entry = audit_entry.differing(
        "device.edit", "sw1", {"address": "a", "site": "x"}, {"address": "b", "site": "x", "n": 1}
    )
    assert entry.before == {"address": "a"}
    assert entry.after == {"address": "b", "n": 1}
