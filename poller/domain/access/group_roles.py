"""From groups of OpenID Connect or of a proxy to a role."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from poller import errors
from poller.domain.access.scopes import Role

#: The group of everybody.
ANYBODY = "*"
DEFAULT = ("poller-admin=admin", "poller-operator=operator", "poller-viewer=viewer")


def parse(words: Sequence[str]) -> dict[str, Role]:
    """Return role by group, from words `group=role`. Raises InvalidSetting."""
    found = {}
    for word in words:
        group, _, role = word.rpartition("=")
        if not group.strip() or role.strip() not in list(Role):
            raise errors.InvalidSetting(
                f'"{word}" is not of the form group=role',
                hint="for example netops=operator, with a role of viewer, operator or admin",
            )
        found[group.strip()] = Role(role.strip())
    return found


def highest(groups: Collection[str], roles: Mapping[str, Role]) -> Role | None:
    """Return the highest role that a group gives; None if none does."""
    given = {roles[group] for group in (*groups, ANYBODY) if group in roles}
    ranks = [role for role in Role if role in given]
    return ranks[-1] if ranks else None
