"""The rules of users and tokens: names, scopes in words, and who must remain able to log in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from poller import errors
from poller.domain.access.scopes import Role, Scope
from poller.domain.inventory import naming

#: Stands before the name of a user of OpenID Connect, so that it is no local user's.
OIDC_MARK = "oidc:"


class Account(NamedTuple):
    """The part of a user that decides about log-ins."""

    role: Role
    is_enabled: bool


def checked_user_name(text: str) -> str:
    """Return the name of a local user. Raises InvalidInput."""
    naming.checked_name(text, "user name")
    if ":" in text:
        raise errors.InvalidInput(f'the user name "{text}" contains :', hint="use - or . instead")
    return text


def checked_role(text: str) -> Role:
    """Return a role by its name. Raises InvalidInput."""
    if text not in list(Role):
        names = ", ".join(Role)
        raise errors.InvalidInput(f'there is no role "{text}"', hint=f"use one of {names}")
    return Role(text)


def checked_scopes(texts: Iterable[str]) -> list[Scope]:
    """Return scopes by their names, each once. Raises InvalidInput."""
    found: dict[Scope, None] = {}
    for text in texts:
        if text not in list(Scope):
            names = ", ".join(Scope)
            raise errors.InvalidInput(f'there is no scope "{text}"', hint=f"use {names}")
        found[Scope(text)] = None
    if not found:
        raise errors.InvalidInput("a token needs a scope", hint="for example read")
    return list(found)


def refuse_nobody_left(remaining: Sequence[Account], *, may_be_empty: bool) -> None:
    """Raise InvalidInput if no enabled admin would remain.

    `may_be_empty`: the last user may go, because then no login is asked for, or another log-in has
    admins.
    """
    enabled = [account for account in remaining if account.is_enabled]
    if any(account.role is Role.ADMIN for account in enabled):
        return
    if may_be_empty and not enabled:
        return
    raise errors.InvalidInput(
        "this is the last enabled user with the role admin, and nobody could log in to change that",
        hint="poller user add NAME --role admin",
    )
